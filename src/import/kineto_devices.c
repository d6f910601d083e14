/* SPDX-License-Identifier: Apache-2.0 */
/* What the file says of its GPUs. */
#include <stdio.h>
#include <string.h>

#include "import/kineto.h"

static void
read_device(struct plumb_pull *pull, struct plumb_kineto_device *device)
{
	struct plumb_slice key, name;
	*device = (struct plumb_kineto_device){
		.id = PLUMB_UNKNOWN,
		.process = PLUMB_UNKNOWN,
		.memory = PLUMB_UNKNOWN,
		.major = PLUMB_UNKNOWN,
		.minor = PLUMB_UNKNOWN,
		.multiprocessors = PLUMB_UNKNOWN,
		.threads = PLUMB_UNKNOWN,
	};
	int64_t warp = PLUMB_UNKNOWN, warps = PLUMB_UNKNOWN;
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_member(pull, &key)) {
		if (plumb_slice_is(key, "id"))
			plumb_pull_integer(pull, &device->id);
		else if (plumb_slice_is(key, "process"))
			plumb_pull_integer(pull, &device->process);
		else if (plumb_slice_is(key, "uuid") && plumb_pull_text(pull, &name))
			snprintf(device->uuid, sizeof device->uuid, "%.*s",
			         name.bytes < sizeof device->uuid ? (int)name.bytes : 0, name.at);
		else if (plumb_slice_is(key, "totalGlobalMem"))
			plumb_pull_integer(pull, &device->memory);
		else if (plumb_slice_is(key, "computeMajor"))
			plumb_pull_integer(pull, &device->major);
		else if (plumb_slice_is(key, "computeMinor"))
			plumb_pull_integer(pull, &device->minor);
		else if (plumb_slice_is(key, "numSms"))
			plumb_pull_integer(pull, &device->multiprocessors);
		else if (plumb_slice_is(key, "maxThreadsPerMultiprocessor"))
			plumb_pull_integer(pull, &device->threads);
		else if (plumb_slice_is(key, "warpSize"))
			plumb_pull_integer(pull, &warp);
		else if (plumb_slice_is(key, "warpsPerMultiprocessor")) /* plumb's own exports */
			plumb_pull_integer(pull, &warps);
		else if (plumb_slice_is(key, "name") && plumb_pull_text(pull, &name))
			snprintf(device->name, sizeof device->name, "%.*s", (int)name.bytes,
			         name.at);
		else if (!plumb_slice_is(key, "name") && !plumb_slice_is(key, "uuid"))
			plumb_pull_skip(pull);
	}
	device->threads =
		device->threads != PLUMB_UNKNOWN && warp > 0 ? device->threads / warp : warps;
}

void
plumb_kineto_devices_read(struct plumb_kineto_devices *devices, struct plumb_pull *pull)
{
	bool more = false;
	PLUMB_PULL_WHOLE(pull)
	more = plumb_pull_enter(pull, '[');
	if (!more)
		plumb_pull_skip_long(pull);
	while (more) {
		struct plumb_kineto_device device;
		PLUMB_PULL_WHOLE(pull)
		{
			more = plumb_pull_item(pull);
			if (more)
				read_device(pull, &device);
		}
		if (plumb_pull_failed(pull))
			return;
		if (more && devices->count < PLUMB_KINETO_DEVICES_MAX)
			devices->items[devices->count++] = device;
		devices->has_uuids |= more && *device.uuid;
	}
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
