/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What builder.c (taking rows in) and finish.c (putting them in order) share. Private to model/.
 */
#ifndef PLUMB_MODEL_BUILDER_PRIVATE_H
#define PLUMB_MODEL_BUILDER_PRIVATE_H

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "model/builder.h"

/* A context while it is built; its id is its place in `contexts`. */
struct plumb_builder_node {
	uint32_t parent, frame, flags;
};

struct plumb_builder {
	struct plumb_strtab *strings;
	PLUMB_VEC(struct plumb_frame) frames;
	PLUMB_VEC(struct plumb_builder_node) contexts;
	PLUMB_VEC(struct plumb_value) values;
	PLUMB_VEC(struct plumb_user_metric) user_metrics;
	PLUMB_VEC(struct plumb_variant) variants;
	PLUMB_VEC(struct plumb_origin) origins;
	PLUMB_VEC(struct plumb_process) processes;
	PLUMB_VEC(struct plumb_track) tracks;
	PLUMB_VEC(struct plumb_device) devices;
	PLUMB_VEC(struct plumb_device_process) device_processes;
	PLUMB_VEC(struct plumb_clock) clocks;
	PLUMB_VEC(struct plumb_ledger_row) ledger;
	PLUMB_VEC(struct plumb_environment_row) environment;
	PLUMB_VEC(struct plumb_finding) findings;
	PLUMB_VEC(struct plumb_code_object) code_objects;
	PLUMB_VEC(struct plumb_work_item) work;
	PLUMB_VEC(struct plumb_series_bin) series;
	PLUMB_VEC(struct plumb_memory) memory;
	PLUMB_VEC(struct plumb_span) spans;
	PLUMB_VEC(struct plumb_wait) waits;
	PLUMB_VEC(struct plumb_collective) collectives;
	PLUMB_VEC(struct plumb_cpu_sample) cpu_samples;
	struct plumb_map frame_map, context_map, value_map, variant_map, origin_map, ledger_map,
		environment_map, code_map;
	struct plumb_run run;
	/* The first thing that went wrong; finish reports it. 0: nothing. */
	int code;
	const char *failure;
};

#endif
