/* SPDX-License-Identifier: Apache-2.0 */
/* Joining profiles: equal contexts become one, everything else stays apart and keeps its place. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/builder.h"
#include "settle/join.h"

/* What differs between the profiles that the tests join. */
struct rank {
	int64_t pid, rank, start, wall, exit_code;
	const char *host, *uuid, *own_operator, *driver;
	int64_t busy, first, last, x;
};

static const struct rank rank0 = { .pid = 100,
	                           .rank = 0,
	                           .start = 1000,
	                           .wall = 500,
	                           .exit_code = 0,
	                           .host = "h",
	                           .uuid = "GPU-a",
	                           .own_operator = "only0",
	                           .driver = "580",
	                           .busy = 40,
	                           .first = 1100,
	                           .last = 1200,
	                           .x = 10 };
static const struct rank rank1 = { .pid = 101,
	                           .rank = 1,
	                           .start = 1100,
	                           .wall = 600,
	                           .exit_code = 7,
	                           .host = "h",
	                           .uuid = "GPU-b",
	                           .own_operator = "only1",
	                           .driver = "580",
	                           .busy = 50,
	                           .first = 1150,
	                           .last = 1300,
	                           .x = 20 };

static void
observe(struct plumb_builder *b, uint32_t context, uint32_t metric, uint32_t track, int64_t x)
{
	struct plumb_value value = { context, metric, track, x, 1, x, x, (double)x, 0 };
	assert_int_equal(plumb_builder_value(b, &value), 0);
}

static struct plumb_profile
build(const struct rank *r)
{
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_profile profile;
	struct plumb_error error;
	char unshared[32];
	assert_non_null(b);
	/* Strings in another order in each profile, so that ids differ. */
	snprintf(unshared, sizeof(unshared), "unshared %d", (int)r->rank);
	for (int64_t i = 0; i <= r->rank; i++)
		plumb_builder_text(b, unshared + i);
	struct plumb_process process = { .pid = r->pid,
		                         .ppid = 1,
		                         .rank = r->rank,
		                         .local_rank = PLUMB_UNKNOWN,
		                         .host = plumb_builder_text(b, r->host),
		                         .command = plumb_builder_text(b, "train"),
		                         .start_ns = r->start,
		                         .end_ns = r->start + r->wall,
		                         .exit_code = r->exit_code,
		                         .overhead_ns = r->x };
	uint32_t p = plumb_builder_process(b, &process);
	struct plumb_device device = { .name = plumb_builder_text(b, "H200"),
		                       .uuid = r->uuid ? plumb_builder_text(b, r->uuid)
		                                       : PLUMB_NONE,
		                       .ordinal = 0,
		                       .rank = r->rank,
		                       .kernels = 3,
		                       .kernel_ns = r->x,
		                       .busy_ns = r->busy,
		                       .first_ns = r->first,
		                       .last_ns = r->last,
		                       .copies = PLUMB_UNKNOWN };
	uint32_t d = plumb_builder_device(b, &device);
	struct plumb_track thread = { .kind = PLUMB_TRACK_THREAD,
		                      .process = p,
		                      .device = PLUMB_NONE,
		                      .name = plumb_builder_text(b, "main"),
		                      .tid = r->pid };
	struct plumb_track stream = { .kind = PLUMB_TRACK_STREAM,
		                      .process = p,
		                      .device = d,
		                      .name = PLUMB_NONE,
		                      .stream = 7 };
	uint32_t t = plumb_builder_track(b, &thread), s = plumb_builder_track(b, &stream);
	uint32_t file = plumb_builder_text(b, "train.py");
	uint32_t line = plumb_builder_context(
		b, 0,
		plumb_builder_frame(b, PLUMB_FRAME_PYTHON, plumb_builder_text(b, "step"), file, 12),
		0);
	uint32_t own = plumb_builder_context(
		b, line,
		plumb_builder_frame(b, PLUMB_FRAME_OPERATOR, plumb_builder_text(b, r->own_operator),
	                            PLUMB_NONE, 0),
		PLUMB_CONTEXT_BACKWARD);
	uint32_t frame = plumb_builder_frame(b, PLUMB_FRAME_KERNEL, plumb_builder_text(b, "_Z1kv"),
	                                     PLUMB_NONE, 0);
	plumb_builder_frame_display(b, frame, plumb_builder_text(b, "k()"));
	uint32_t kernel = plumb_builder_context(b, line, frame, 0);
	observe(b, own, PLUMB_METRIC_OP_CALLS, t, 1);
	observe(b, kernel, PLUMB_METRIC_GPU_TIME, s, r->x);
	struct plumb_variant variant = { .context = kernel,
		                         .track = s,
		                         .shapes = PLUMB_NONE,
		                         .grid = { 4, 1, 1 },
		                         .block = { 32, 1, 1 },
		                         .count = 1,
		                         .time = r->x,
		                         .min = r->x,
		                         .max = r->x };
	plumb_builder_variant(b, &variant);
	struct plumb_origin origin = { own, line, PLUMB_ORIGIN_OF_BACKWARD_CALL };
	plumb_builder_origin(b, &origin);
	struct plumb_finding finding = { .id = plumb_builder_text(b, "f1"),
		                         .rule = plumb_builder_text(b, "r"),
		                         .title = PLUMB_NONE,
		                         .advice = PLUMB_NONE,
		                         .evidence = PLUMB_NONE,
		                         .severity = 2,
		                         .context = kernel,
		                         .saving_ns = r->x,
		                         .confidence = 0.5 };
	plumb_builder_finding(b, &finding);
	struct plumb_code_object object = { p,
		                            plumb_builder_text(b, "elf"),
		                            plumb_builder_text(b, "/bin/x"),
		                            PLUMB_NONE,
		                            PLUMB_NONE,
		                            r->x };
	plumb_builder_code_object(b, &object);
	plumb_builder_code_object(b, &object); /* is there already */
	struct plumb_work_item work = { kernel, s, r->first, r->last };
	plumb_builder_work(b, &work);
	struct plumb_series_bin bin = { d, p, r->first, 100, r->busy, 3, 0 };
	plumb_builder_series(b, &bin);
	struct plumb_track pool = { .kind = PLUMB_TRACK_MEMORY,
		                    .process = p,
		                    .device = d,
		                    .name = plumb_builder_text(b, "cuda:0") };
	struct plumb_memory memory = { .track = plumb_builder_track(b, &pool), .peak_bytes = r->x };
	plumb_builder_memory(b, &memory);
	struct plumb_device_process share = { d, p, r->busy, r->first, r->last };
	plumb_builder_device_process(b, &share);
	struct plumb_clock clock = {
		.process = p, .device = d, .slope = 1e-9, .residual_ns = r->x
	};
	plumb_builder_clock(b, &clock);
	plumb_builder_ledger(b, p, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RECEIVED, PLUMB_NONE, 3);
	plumb_builder_ledger(b, PLUMB_NONE, PLUMB_SOURCE_REGION, PLUMB_FATE_RECEIVED, PLUMB_NONE,
	                     5);
	plumb_builder_environment(b, PLUMB_NONE, "os", "Linux");
	plumb_builder_environment(b, PLUMB_NONE, "driver", r->driver);
	plumb_builder_environment(b, p, "own", r->own_operator);
	struct plumb_run *run = plumb_builder_run(b);
	run->command = plumb_builder_text(b, r->own_operator);
	run->start_ns = r->start;
	run->wall_ns = r->wall;
	run->exit_code = r->exit_code;
	run->overhead_ns = r->x;
	assert_int_equal(plumb_builder_finish(b, &profile, &error), 0);
	plumb_builder_free(b);
	return profile;
}

/* Joins the COUNT ranks; the result must be freed when the code is 0. */
static int
join(const struct rank *const *ranks, size_t count, struct plumb_profile *out,
     struct plumb_error *error)
{
	struct plumb_profile parts[4];
	const struct plumb_profile *pointers[4] = { NULL };
	for (size_t i = 0; i < count; i++) {
		parts[i] = build(ranks[i]);
		pointers[i] = &parts[i];
	}
	int code = plumb_join(pointers, count, out, error);
	for (size_t i = 0; i < count; i++)
		plumb_profile_free(&parts[i]);
	return code;
}

/* The context of the frame that is shown as LABEL. */
static uint32_t
context_of(const struct plumb_profile *profile, const char *label)
{
	for (uint32_t i = 0; i < profile->contexts_count; i++)
		if (strcmp(plumb_frame_label(profile, profile->contexts[i].frame), label) == 0)
			return i;
	fail_msg("no context %s", label);
	return PLUMB_NONE;
}

static const char *
fact(const struct plumb_profile *profile, uint32_t process, const char *key)
{
	for (uint32_t i = 0; i < profile->environment_count; i++)
		if (profile->environment[i].process == process &&
		    strcmp(plumb_text(profile, profile->environment[i].key), key) == 0)
			return plumb_text(profile, profile->environment[i].value);
	return NULL;
}

static void
equal_contexts_become_one(void **state)
{
	(void)state;
	struct plumb_profile p;
	struct plumb_error error;
	assert_int_equal(join((const struct rank *const[]){ &rank0, &rank1 }, 2, &p, &error), 0);
	/* root, step, only0, only1, kernel */
	assert_int_equal(p.contexts_count, 5);
	uint32_t step = context_of(&p, "step"), kernel = context_of(&p, "k()");
	uint32_t own0 = context_of(&p, "only0"), own1 = context_of(&p, "only1");
	assert_int_equal(p.contexts[kernel].parent, step);
	assert_int_equal(p.contexts[own0].parent, step);
	assert_int_equal(p.contexts[own1].flags, PLUMB_CONTEXT_BACKWARD);
	assert_string_equal(plumb_text(&p, plumb_context_frame(&p, kernel)->name), "_Z1kv");
	assert_string_equal(plumb_text(&p, plumb_context_frame(&p, step)->file), "train.py");
	assert_int_equal(plumb_context_frame(&p, step)->line, 12);

	struct plumb_stat *inclusive = calloc(p.contexts_count, sizeof(*inclusive));
	plumb_inclusive(&p, PLUMB_METRIC_GPU_TIME, PLUMB_NONE, NULL, inclusive);
	assert_int_equal(inclusive[step].sum, 30);
	assert_int_equal(inclusive[step].count, 2);
	assert_int_equal(inclusive[step].min, 10);
	assert_int_equal(inclusive[step].max, 20);
	free(inclusive);
	plumb_profile_free(&p);
}

static void
tracks_processes_and_what_hangs_on_them_stay_apart(void **state)
{
	(void)state;
	struct plumb_profile p;
	struct plumb_error error;
	assert_int_equal(join((const struct rank *const[]){ &rank0, &rank1 }, 2, &p, &error), 0);
	assert_int_equal(p.processes_count, 2);
	assert_int_equal(p.processes[0].rank, 0);
	assert_int_equal(p.processes[1].rank, 1);
	assert_string_equal(plumb_text(&p, p.processes[1].host), "h");
	assert_int_equal(p.tracks_count, 6);
	assert_int_equal(p.memory_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct plumb_track *track = &p.tracks[p.memory[i].track];
		assert_int_equal(track->kind, PLUMB_TRACK_MEMORY);
		assert_int_equal(p.memory[i].peak_bytes,
		                 p.processes[track->process].rank ? 20 : 10);
	}
	assert_int_equal(p.devices_count, 2);
	for (uint32_t i = 0; i < p.values_count; i++) {
		const struct plumb_track *track = &p.tracks[p.values[i].track];
		if (p.values[i].metric != PLUMB_METRIC_GPU_TIME)
			continue;
		assert_int_equal(p.values[i].sum, p.processes[track->process].rank ? 20 : 10);
		assert_string_equal(plumb_text(&p, p.devices[track->device].uuid),
		                    p.processes[track->process].rank ? "GPU-b" : "GPU-a");
	}
	assert_int_equal(p.variants_count, 2);
	assert_int_equal(p.origins_count, 2);
	assert_int_equal(p.work_count, 2);
	assert_int_equal(p.series_count, 2);
	assert_int_equal(p.clocks_count, 2);
	assert_int_equal(p.findings_count, 2);
	assert_int_equal(p.code_objects_count, 2);
	assert_int_equal(p.code_objects[1].process, 1);
	assert_string_equal(plumb_text(&p, p.code_objects[1].kind), "elf");
	assert_int_equal(p.findings[0].context, context_of(&p, "k()"));
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(p.work[i].context, context_of(&p, "k()"));
		assert_int_equal(p.work[i].start_ns,
		                 p.processes[p.tracks[p.work[i].track].process].rank ? 1150 : 1100);
		assert_int_equal(p.origins[i].origin, context_of(&p, "step"));
	}
	int64_t kernels = 0, regions = 0;
	for (uint32_t i = 0; i < p.ledger_count; i++) {
		kernels += p.ledger[i].source == PLUMB_SOURCE_KERNEL ? p.ledger[i].count : 0;
		regions += p.ledger[i].source == PLUMB_SOURCE_REGION ? p.ledger[i].count : 0;
	}
	assert_int_equal(p.ledger_count, 3);
	assert_int_equal(kernels, 6);
	assert_int_equal(regions, 10);
	plumb_profile_free(&p);
}

static void
the_run_is_put_together(void **state)
{
	(void)state;
	struct plumb_profile p;
	struct plumb_error error;
	assert_int_equal(join((const struct rank *const[]){ &rank0, &rank1 }, 2, &p, &error), 0);
	assert_string_equal(plumb_text(&p, p.run.command), "only0");
	assert_int_equal(p.run.exit_code, 7);
	assert_int_equal(p.run.overhead_ns, 20);
	assert_int_equal(p.run.start_ns, 1000);
	assert_int_equal(p.run.wall_ns, 700);
	plumb_profile_free(&p);

	/* Clocks of two hosts have nothing to do with each other. */
	struct rank far = rank1;
	far.host = "other";
	assert_int_equal(join((const struct rank *const[]){ &rank0, &far }, 2, &p, &error), 0);
	assert_int_equal(p.run.wall_ns, 600);
	plumb_profile_free(&p);

	/* Unknown stays unknown, and gives way to what is known. */
	struct rank killed = rank1;
	killed.exit_code = PLUMB_UNKNOWN;
	assert_int_equal(join((const struct rank *const[]){ &killed }, 1, &p, &error), 0);
	assert_true(p.run.exit_code == PLUMB_UNKNOWN);
	plumb_profile_free(&p);
	assert_int_equal(join((const struct rank *const[]){ &killed, &rank0 }, 2, &p, &error), 0);
	assert_int_equal(p.run.exit_code, 0);
	plumb_profile_free(&p);
}

static void
one_gpu_of_two_processes_is_one_device(void **state)
{
	(void)state;
	struct plumb_profile p;
	struct plumb_error error;
	struct rank same = rank1;
	same.uuid = rank0.uuid;
	assert_int_equal(join((const struct rank *const[]){ &rank0, &same }, 2, &p, &error), 0);
	assert_int_equal(p.devices_count, 1);
	assert_int_equal(p.devices[0].kernels, 6);
	assert_int_equal(p.devices[0].kernel_ns, 30);
	assert_true(p.devices[0].copies == PLUMB_UNKNOWN);
	assert_true(p.devices[0].rank == PLUMB_UNKNOWN);
	assert_int_equal(p.devices[0].first_ns, 1100);
	assert_int_equal(p.devices[0].last_ns, 1300);
	/* They overlap: the union cannot be known. */
	assert_true(p.devices[0].busy_ns == PLUMB_UNKNOWN);
	plumb_profile_free(&p);

	/* One after the other: it is the sum. */
	same.first = 1200;
	assert_int_equal(join((const struct rank *const[]){ &rank0, &same }, 2, &p, &error), 0);
	assert_int_equal(p.devices[0].busy_ns, 90);
	plumb_profile_free(&p);

	/* Without UUIDs nobody knows. */
	struct rank nameless0 = rank0, nameless1 = rank1;
	nameless0.uuid = nameless1.uuid = NULL;
	assert_int_equal(
		join((const struct rank *const[]){ &nameless0, &nameless1 }, 2, &p, &error), 0);
	assert_int_equal(p.devices_count, 2);
	plumb_profile_free(&p);
}

/* Where each profile holds all work of a device, how it lies together is known. */
static void
contention_over_profiles(void **state)
{
	(void)state;
	struct plumb_profile parts[2], p;
	struct plumb_error error;
	struct rank second = rank1;
	second.uuid = rank0.uuid;
	for (int complete = 0; complete < 2; complete++) {
		parts[0] = build(&rank0);
		parts[1] = build(&second);
		for (int i = 0; i < 2; i++) {
			parts[i].devices[0].kernels = complete || i ? 1 : 2;
			parts[i].devices[0].copies = parts[i].devices[0].sets = 0;
		}
		const struct plumb_profile *both[] = { &parts[0], &parts[1] };
		assert_int_equal(plumb_join(both, 2, &p, &error), 0);
		assert_int_equal(p.devices_count, 1);
		if (complete) { /* 1100 to 1200 and 1150 to 1300 */
			assert_int_equal(p.devices[0].busy_ns, 200);
			assert_int_equal(p.devices[0].contended_ns, 50);
		} else {
			assert_true(p.devices[0].busy_ns == PLUMB_UNKNOWN);
			assert_true(p.devices[0].contended_ns == PLUMB_UNKNOWN);
		}
		assert_int_equal(p.device_processes_count, 2);
		assert_int_equal(p.device_processes[0].busy_ns, 40);
		assert_int_equal(p.device_processes[1].busy_ns, 50);
		assert_int_equal(p.device_processes[1].process, 1);
		plumb_profile_free(&p);
		plumb_profile_free(&parts[0]);
		plumb_profile_free(&parts[1]);
	}
	/* One after the other: there was none. */
	second.first = 2000;
	second.last = 2100;
	assert_int_equal(join((const struct rank *const[]){ &rank0, &second }, 2, &p, &error), 0);
	assert_int_equal(p.devices[0].contended_ns, 0);
	plumb_profile_free(&p);
}

static void
facts_that_differ_go_to_the_processes(void **state)
{
	(void)state;
	struct plumb_profile p;
	struct plumb_error error;
	struct rank other = rank1;
	other.driver = "570";
	assert_int_equal(join((const struct rank *const[]){ &rank0, &other }, 2, &p, &error), 0);
	assert_string_equal(fact(&p, PLUMB_NONE, "os"), "Linux");
	assert_null(fact(&p, PLUMB_NONE, "driver"));
	assert_string_equal(fact(&p, 0, "driver"), "580");
	assert_string_equal(fact(&p, 1, "driver"), "570");
	assert_string_equal(fact(&p, 0, "own"), "only0");
	assert_string_equal(fact(&p, 1, "own"), "only1");
	plumb_profile_free(&p);
}

static void
order_does_not_change_the_contexts(void **state)
{
	(void)state;
	struct plumb_profile a, b;
	struct plumb_error error;
	assert_int_equal(join((const struct rank *const[]){ &rank0, &rank1 }, 2, &a, &error), 0);
	assert_int_equal(join((const struct rank *const[]){ &rank1, &rank0 }, 2, &b, &error), 0);
	assert_int_equal(a.contexts_count, b.contexts_count);
	for (uint32_t i = 0; i < a.contexts_count; i++) {
		assert_int_equal(a.contexts[i].parent, b.contexts[i].parent);
		assert_int_equal(a.contexts[i].last, b.contexts[i].last);
		assert_string_equal(plumb_frame_label(&a, a.contexts[i].frame),
		                    plumb_frame_label(&b, b.contexts[i].frame));
	}
	plumb_profile_free(&a);
	plumb_profile_free(&b);
}

static void
wrong_use_is_an_error(void **state)
{
	(void)state;
	struct plumb_profile p = { 0 };
	struct plumb_error error = { 0 };
	assert_int_equal(plumb_join(NULL, 0, &p, &error), PLUMB_EUSAGE);
	error.message[0] = '\0';
	assert_int_equal(
		join((const struct rank *const[]){ &rank0, &rank1, &rank0 }, 3, &p, &error),
		PLUMB_EUSAGE);
	assert_non_null(strstr(error.message, "process 100 of h is given twice"));
	/* The same number on another host, or at another time, is another process. */
	struct rank later = rank0;
	later.start = 9000;
	struct rank elsewhere = rank0;
	elsewhere.host = "other";
	assert_int_equal(
		join((const struct rank *const[]){ &rank0, &later, &elsewhere }, 3, &p, &error), 0);
	assert_int_equal(p.processes_count, 3);
	plumb_profile_free(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_contexts_become_one),
		cmocka_unit_test(tracks_processes_and_what_hangs_on_them_stay_apart),
		cmocka_unit_test(the_run_is_put_together),
		cmocka_unit_test(one_gpu_of_two_processes_is_one_device),
		cmocka_unit_test(contention_over_profiles),
		cmocka_unit_test(facts_that_differ_go_to_the_processes),
		cmocka_unit_test(order_does_not_change_the_contexts),
		cmocka_unit_test(wrong_use_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
