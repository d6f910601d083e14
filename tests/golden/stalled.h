/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The case `stalled`: a kernel whose warps wait for a load whose address they loaded before. Its
 * machine code is that of this kernel, compiled by nvcc 13 for sm_90 with -lineinfo:
 *
 *	extern "C" __global__ void walk(const int *next, int *out, int steps)
 *	{
 *		int at = threadIdx.x;
 *		#pragma unroll 1
 *		for (int i = 0; i < steps; i++)
 *			at = next[at];                       // line 6
 *		out[threadIdx.x] = at;
 *	}
 *
 * Included by profiles.h, after cases.h.
 */
#ifndef PLUMB_TESTS_STALLED_H
#define PLUMB_TESTS_STALLED_H

static const uint64_t stalled_walk[] = {
	0x00000a00ff017b82, 0x000ff00000000800, 0x00008800ff007b82, 0x000e220000000800,
	0x0000000000037919, 0x000e620000002100, 0x0000820000067ab9, 0x000fcc0000000a00,
	0x00008600ff047b82, 0x000e620000000a00, 0x000000010000780c, 0x001fe20003f06270,
	0x0000000403047825, 0x002fd800078e0004, 0x00000000001c8947, 0x000fea0003800000,
	0x00008400ff067b82, 0x000e220000000a00, 0x0000003f00047c82, 0x000fca0008000000,
	0x0000000104047890, 0x000fe2000fffe03f, 0x0000000403027825, 0x023fca00078e0206,
	0x0000000400007c0c, 0x000fe2000bf03270, 0x0000000602037981, 0x000358000c1e1900,
	0xfffffffc00ec8947, 0x000fea000383ffff, 0x0000000304007986, 0x020fe2000c101906,
	0x000000000000794d, 0x000fea0003800000,
};

static const struct plumb_code_line stalled_lines[] = {
	{ .offset = 0x00, .line = 1 }, { .offset = 0x10, .line = 5 },
	{ .offset = 0x20, .line = 3 }, { .offset = 0x40, .line = 7 },
	{ .offset = 0x50, .line = 5 }, { .offset = 0x60, .line = 7 },
	{ .offset = 0x70, .line = 5 }, { .offset = 0x80, .line = 6 },
	{ .offset = 0x90, .line = 3 }, { .offset = 0xa0, .line = 5 },
	{ .offset = 0xb0, .line = 6 }, { .offset = 0xc0, .line = 5 },
	{ .offset = 0xd0, .line = 6 }, { .offset = 0xe0, .line = 5 },
	{ .offset = 0xf0, .line = 7 }, { .offset = 0x100, .line = 8 },
};

static void
stalled_sample(struct sample *s, int64_t offset, const char *reason, bool issued, uint64_t count)
{
	struct plumb_code_sample sample = { .function = 0,
		                            .process = s->process,
		                            .device = s->device,
		                            .reason = sample_text(s, reason),
		                            .issued = issued,
		                            .context = PLUMB_NONE,
		                            .offset = offset,
		                            .launch_ns = PLUMB_UNKNOWN,
		                            .count = count };

	if (count)
		plumb_builder_code_sample(s->b, &sample);
}

static void
case_stalled(struct sample *s)
{
	uint32_t step = case_start(s);
	uint32_t line = case_python(s, step, "follow", "/home/ada/case.py", 44);
	struct plumb_code_object object = { .process = s->process,
		                            .kind = sample_text(s, "cubin"),
		                            .path = sample_text(s, "walk.cubin"),
		                            .build_id = PLUMB_NONE,
		                            .hash = PLUMB_NONE,
		                            .bytes = 4096 };
	struct plumb_code_function function = { .object = 0,
		                                .name = sample_text(s, "walk"),
		                                .architecture = sample_text(s, "sm_90"),
		                                .is_kernel = 1,
		                                .bytes = sizeof stalled_walk,
		                                .registers = 10,
		                                .stack_bytes = 0,
		                                .shared_bytes = 0 };

	if (the_case.walk_code)
		function.text = (struct plumb_blob){ stalled_walk, sizeof stalled_walk };
	case_kernel(s, line, "walk", the_case.walk / 10, 10, 0);
	plumb_builder_code_object(s->b, &object);
	plumb_builder_code_function(s->b, &function);
	for (size_t i = 0; i < sizeof stalled_lines / sizeof *stalled_lines; i++) {
		struct plumb_code_line row = stalled_lines[i];

		row.file = sample_text(s, "/home/ada/walk.cu");
		row.inlined = PLUMB_NONE;
		plumb_builder_code_line(s->b, &row);
	}
	stalled_sample(s, 0xb0, "long_scoreboard", false, the_case.walk_waits);
	stalled_sample(s, 0xb0, "long_scoreboard", true, 30);
	stalled_sample(s, 0xc0, "wait", false, the_case.walk_other);
	stalled_sample(s, 0xd0, "selected", false, the_case.walk_issues);
}

#endif
