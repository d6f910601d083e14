/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <string.h>

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

const char *
plumb_memory_kind_name(uint32_t kind)
{
	static const char *const names[] = {
		"unknown", "pageable", "pinned", "device", "array", "managed",
	};
	return kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}
