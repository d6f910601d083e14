/* SPDX-License-Identifier: Apache-2.0 */
/* What the file says of its GPUs. */
#include <stdio.h>
#include <string.h>

#include "import/kineto/kineto.h"

struct described {
	struct plumb_kineto_device device;
	int64_t warp, warps;
	struct plumb_slice name, uuid;
};

#define AT(member) PLUMB_PULL_AT(struct described, member)
static const struct plumb_pull_field device_fields[] = {
	PLUMB_PULL_FIELD("id", INTEGER, AT(device.id)),
	PLUMB_PULL_FIELD("name", TEXT, AT(name)),
	PLUMB_PULL_FIELD("totalGlobalMem", INTEGER, AT(device.memory)),
	PLUMB_PULL_FIELD("computeMajor", INTEGER, AT(device.major)),
	PLUMB_PULL_FIELD("computeMinor", INTEGER, AT(device.minor)),
	PLUMB_PULL_FIELD("maxThreadsPerMultiprocessor", INTEGER, AT(device.threads)),
	PLUMB_PULL_FIELD("warpSize", INTEGER, AT(warp)),
	PLUMB_PULL_FIELD("numSms", INTEGER, AT(device.multiprocessors)),
	/* plumb's own exports */
	PLUMB_PULL_FIELD("process", INTEGER, AT(device.process)),
	PLUMB_PULL_FIELD("uuid", TEXT, AT(uuid)),
	PLUMB_PULL_FIELD("warpsPerMultiprocessor", INTEGER, AT(warps)),
	{ 0 },
};
#undef AT

static void
take_device(struct plumb_kineto_devices *devices, struct described *row)
{
	struct plumb_kineto_device *device = &row->device;
	bool fits = row->uuid.bytes < sizeof device->uuid;
	if (devices->count == PLUMB_KINETO_DEVICES_MAX)
		return;
	if (row->name.at)
		snprintf(device->name, sizeof device->name, "%.*s", (int)row->name.bytes,
		         row->name.at);
	if (row->uuid.at && fits)
		snprintf(device->uuid, sizeof device->uuid, "%.*s", (int)row->uuid.bytes,
		         row->uuid.at);
	device->threads = device->threads != PLUMB_UNKNOWN && row->warp > 0
	                          ? device->threads / row->warp
	                          : row->warps;
	devices->has_uuids |= *device->uuid != '\0';
	devices->items[devices->count++] = *device;
}

void
plumb_kineto_devices_read(struct plumb_kineto_devices *devices, struct plumb_pull *pull)
{
	static const struct described initial = {
		.device = {
			.id = PLUMB_UNKNOWN,
			.process = PLUMB_UNKNOWN,
			.memory = PLUMB_UNKNOWN,
			.major = PLUMB_UNKNOWN,
			.minor = PLUMB_UNKNOWN,
			.multiprocessors = PLUMB_UNKNOWN,
			.threads = PLUMB_UNKNOWN,
		},
		.warp = PLUMB_UNKNOWN,
		.warps = PLUMB_UNKNOWN,
	};
	struct described row;
	bool list = plumb_pull_enter_long(pull, '[');
	while (list && plumb_pull_row(pull, device_fields, &row, &initial, sizeof row, NULL))
		take_device(devices, &row);
}

const char *
plumb_kineto_devices_uuid(const struct plumb_kineto_devices *devices, int64_t pid, int64_t ordinal)
{
	const char *uuid = NULL;

	for (uint32_t i = 0; i < devices->count && devices->has_uuids; i++)
		if (devices->items[i].id == ordinal && devices->items[i].process == pid &&
		    *devices->items[i].uuid)
			uuid = devices->items[i].uuid;
	return uuid;
}

static void
describe_device(struct plumb_builder *builder, uint32_t id, const struct plumb_kineto_device *p)
{
	uint32_t name = plumb_builder_text(builder, *p->name ? p->name : NULL);
	struct plumb_device *device = plumb_builder_get_device(builder, id);
	device->name = name;
	device->memory_bytes = p->memory;
	device->capability_major = p->major;
	device->capability_minor = p->minor;
	device->multiprocessors = p->multiprocessors;
	device->warps_per_multiprocessor = p->threads;
}

/* What is known of the device with this ordinal. A process that saw one GPU only lists that as 0,
 * whatever number its events have; equal ones need no number. */
static const struct plumb_kineto_device *
properties_of(const struct plumb_kineto_devices *devices, int64_t ordinal)
{
	const struct plumb_kineto_device *all = devices->items;
	for (uint32_t i = 0; i < devices->count; i++)
		if (all[i].id == ordinal && all[i].process == PLUMB_UNKNOWN)
			return &all[i];
	for (uint32_t i = 0; i < devices->count; i++)
		if (strcmp(all[i].name, all[0].name) != 0 || all[i].memory != all[0].memory ||
		    all[i].process != PLUMB_UNKNOWN)
			return NULL;
	return devices->count ? all : NULL;
}

void
plumb_kineto_devices_describe(const struct plumb_kineto_devices *devices, struct plumb_trace *trace)
{
	struct plumb_builder *builder = plumb_trace_builder(trace);
	for (uint32_t id = devices->first; id < plumb_builder_device_count(builder); id++) {
		const struct plumb_kineto_device *p =
			properties_of(devices, plumb_builder_get_device(builder, id)->ordinal);
		if (p)
			describe_device(builder, id, p);
	}
	for (uint32_t i = 0; i < devices->count; i++) {
		const struct plumb_kineto_device *p = &devices->items[i];
		uint32_t process = p->process == PLUMB_UNKNOWN
		                           ? PLUMB_NONE
		                           : plumb_trace_has_process(trace, p->process);
		uint32_t id = plumb_trace_has_device(trace, process, p->id);
		if (process != PLUMB_NONE && id != PLUMB_NONE)
			describe_device(builder, id, p);
	}
}
