/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(id, number, name, what) [number] = name,
const char *const plumb_traffic_mode_names[PLUMB_TRAFFIC_MODE_COUNT] = { PLUMB_TRAFFIC_MODES(X) };
#undef X

bool
plumb_traffic_parse(const char *text, enum plumb_traffic_mode *mode, double *rate)
{
	for (unsigned m = 1; m < PLUMB_TRAFFIC_MODE_COUNT; m++) {
		const char *name = plumb_traffic_mode_names[m];
		size_t length = strlen(name);
		if (strncmp(text, name, length))
			continue;
		double part = 1;
		char *end = NULL;
		if (m == PLUMB_TRAFFIC_SAMPLED) {
			if (text[length] != ':' || !strchr("0123456789.", text[length + 1]))
				return false;
			part = strtod(text + length + 1, &end);
			if (*end || !(part > 0 && part <= 1))
				return false;
		} else if (text[length]) {
			return false;
		}
		*mode = (enum plumb_traffic_mode)m;
		*rate = part;
		return true;
	}
	return false;
}

#define X(id, number, name) [number] = name,
const char *const plumb_access_kind_names[PLUMB_ACCESS_KIND_COUNT] = { PLUMB_ACCESS_KINDS(X) };
const char *const plumb_route_names[PLUMB_ROUTE_COUNT] = { PLUMB_ROUTES(X) };
const char *const plumb_object_kind_names[PLUMB_OBJECT_KIND_COUNT] = { PLUMB_OBJECT_KINDS(X) };
const char *const plumb_link_kind_names[PLUMB_LINK_KIND_COUNT] = { PLUMB_LINK_KINDS(X) };
const char *const plumb_link_path_names[PLUMB_LINK_PATH_COUNT] = { PLUMB_LINK_PATHS(X) };
#undef X

const char *const plumb_frame_kind_names[PLUMB_FRAME_KIND_COUNT] = {
#define X(id, number, name) [number] = name,
	PLUMB_FRAME_KINDS(X)
#undef X
};

const struct plumb_metric_info plumb_metrics[PLUMB_METRIC_COUNT] = {
#define X(id, number, name, unit, aggregation, source, meaning)                                    \
	[number] = { name, unit, PLUMB_##aggregation, source, meaning },
	PLUMB_METRICS(X)
#undef X
};

const char *const plumb_source_names[PLUMB_SOURCE_COUNT] = {
#define X(id, number, name, unit) [number] = name,
	PLUMB_SOURCES(X)
#undef X
};

const char *const plumb_source_units[PLUMB_SOURCE_COUNT] = {
#define X(id, number, name, unit) [number] = unit,
	PLUMB_SOURCES(X)
#undef X
};

const char *const plumb_fate_reasons[PLUMB_FATE_COUNT] = {
#define X(id, number, drop, reason) [number] = reason,
	PLUMB_FATES(X)
#undef X
};

const unsigned char plumb_fate_is_drop[PLUMB_FATE_COUNT] = {
#define X(id, number, drop, reason) [number] = drop,
	PLUMB_FATES(X)
#undef X
};

uint32_t
plumb_metric_find(const char *name)
{
	for (uint32_t i = 1; i < PLUMB_METRIC_COUNT; i++)
		if (plumb_metrics[i].name && !strcmp(plumb_metrics[i].name, name))
			return i;
	return 0;
}

int
plumb_frame_kind_find(const char *name)
{
	for (int i = 0; i < PLUMB_FRAME_KIND_COUNT; i++)
		if (!strcmp(plumb_frame_kind_names[i], name))
			return i;
	return -1;
}

static const struct plumb_gpu_mode_info gpu_modes[] = {
#define X(id, number, name, what) { name, what, number },
	PLUMB_GPU_MODES(X)
#undef X
};
#define GPU_MODES (sizeof gpu_modes / sizeof *gpu_modes)

const struct plumb_gpu_mode_info *
plumb_gpu_mode_of(unsigned mode)
{
	for (size_t i = 0; i < GPU_MODES; i++)
		if (gpu_modes[i].mode == mode)
			return &gpu_modes[i];
	return NULL;
}

const struct plumb_gpu_mode_info *
plumb_gpu_mode_find(const char *name)
{
	for (size_t i = 0; i < GPU_MODES; i++)
		if (!strcmp(gpu_modes[i].name, name))
			return &gpu_modes[i];
	return NULL;
}

/* ---- copies and sets ---- */

#define ARROW "→"

static const char *const memory_kinds[] = {
	[PLUMB_MEMORY_PAGEABLE] = "pageable", [PLUMB_MEMORY_PINNED] = "pinned",
	[PLUMB_MEMORY_DEVICE] = "device",     [PLUMB_MEMORY_ARRAY] = "array",
	[PLUMB_MEMORY_MANAGED] = "managed",   [PLUMB_MEMORY_UNKNOWN] = "unknown",
	[PLUMB_MEMORY_HOST] = "host",
};

static const char *
memory_name(unsigned kind)
{
	kind &= ~(unsigned)PLUMB_MEMORY_PEER;
	return kind && kind <= PLUMB_MEMORY_HOST ? memory_kinds[kind] : "unknown";
}

static const char *
peer_word(unsigned kind)
{
	return kind & PLUMB_MEMORY_PEER ? "peer " : "";
}

const char *
plumb_transfer_name(char text[PLUMB_TRANSFER_NAME], struct plumb_transfer transfer)
{
	if (transfer.from)
		snprintf(text, PLUMB_TRANSFER_NAME, "copy %s%s" ARROW "%s%s",
		         peer_word(transfer.from), memory_name(transfer.from),
		         peer_word(transfer.to), memory_name(transfer.to));
	else
		snprintf(text, PLUMB_TRANSFER_NAME, "set %s%s", peer_word(transfer.to),
		         memory_name(transfer.to));
	return text;
}

static uint16_t
memory_named(const char *text, size_t bytes)
{
	uint16_t peer = 0;
	if (bytes > 5 && !memcmp(text, "peer ", 5)) {
		peer = PLUMB_MEMORY_PEER;
		text += 5;
		bytes -= 5;
	}
	for (uint16_t k = PLUMB_MEMORY_PAGEABLE; k <= PLUMB_MEMORY_HOST; k++)
		if (strlen(memory_kinds[k]) == bytes && !memcmp(memory_kinds[k], text, bytes))
			return k | peer;
	return PLUMB_MEMORY_NONE;
}

struct plumb_transfer
plumb_transfer_of(const char *name)
{
	const struct plumb_transfer nothing = { 0, 0 };
	struct plumb_transfer transfer = nothing;
	if (name && !strncmp(name, "set ", 4)) {
		transfer.to = memory_named(name + 4, strlen(name + 4));
		return transfer;
	}
	const char *arrow = name && !strncmp(name, "copy ", 5) ? strstr(name, ARROW) : NULL;
	if (!arrow)
		return nothing;
	const char *end = arrow + strlen(ARROW);
	transfer.from = memory_named(name + 5, (size_t)(arrow - name) - 5);
	transfer.to = memory_named(end, strlen(end));
	return transfer.from && transfer.to ? transfer : nothing;
}
