/* SPDX-License-Identifier: Apache-2.0 */
/* Settling: what the processes of a run become together, and folders and regions that are none. */
#include "settle_regions.h"

#include "region/control.h"

static void
small_region(int folder, const char *name, uint32_t pid, int rank, const char *torch)
{
	begin(folder, name);
	process(pid, rank);
	plumb_arena_environment(&arena, "python.version", "3.11.2");
	plumb_arena_environment(&arena, "torch.version", torch);
	value(node(0, PLUMB_FRAME_OPERATOR, "op"), thread(1), PLUMB_METRIC_OP_DURATION, 1, 1);
	end();
}

static void
run_region(int folder, uint32_t child, int exit_status)
{
	begin(folder, "run");
	struct plumb_record_process *p = process(child, -1);
	p->start_monotonic = 99 * SECOND;
	p->end_monotonic = 112 * SECOND;
	p->exit_known = 1;
	p->exit_status = exit_status;
	plumb_arena_environment(&arena, "host.kernel", "6.1");
	end();
}

static void
test_run(void **state)
{
	(void)state;
	run_region(0, 11, 3);
	small_region(0, "a", 11, 0, "1.13");
	small_region(0, "b", 12, 1, "2.11");
	assert_int_equal(settle(1), 0);
	assert_string_equal(plumb_text(&profile, profile.run.command), "python train.py");
	assert_int_equal(profile.run.start_ns, 99 * SECOND);
	assert_int_equal(profile.run.wall_ns, 13 * SECOND);
	assert_int_equal(profile.run.exit_code, 3);
	assert_true(profile.run.overhead_ns == PLUMB_UNKNOWN);
	assert_int_equal(profile.processes_count, 2);
	assert_int_equal(profile.processes[0].exit_code, 3);
	assert_int_equal(profile.processes[0].end_ns, 110 * SECOND);
	assert_true(profile.processes[1].exit_code == PLUMB_UNKNOWN);
	assert_string_equal(environment(PLUMB_NONE, "host.kernel"), "6.1");
	assert_string_equal(environment(PLUMB_NONE, "python.version"), "3.11.2");
	assert_null(environment(0, "python.version"));
	assert_null(environment(PLUMB_NONE, "torch.version"));
	assert_string_equal(environment(0, "torch.version"), "1.13");
	assert_string_equal(environment(1, "torch.version"), "2.11");
	done();
}

static void
test_killed(void **state)
{
	(void)state;
	begin(0, "a");
	struct plumb_record_process *p = process(5, -1);
	p->end_monotonic = 0;
	region.header->state = PLUMB_REGION_RECORDING;
	clock_at(0, 107 * SECOND, 0);
	value(node(0, PLUMB_FRAME_OPERATOR, "op"), thread(1), PLUMB_METRIC_OP_DURATION, 1, 1);
	end();
	/* Neither the process nor plumb lived to write its end. */
	assert_int_equal(settle(1), 0);
	assert_true(profile.processes[0].end_ns == PLUMB_UNKNOWN);
	assert_int_equal(profile.run.wall_ns, 7 * SECOND);
	assert_true(profile.run.exit_code == PLUMB_UNKNOWN);
	assert_non_null(environment(0, "plumb.end"));
	done();
	/* Plumb did. */
	run_region(0, 5, 137);
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.processes[0].end_ns, 112 * SECOND);
	assert_int_equal(profile.processes[0].exit_code, 137);
	done();
}

static void
test_ranks(void **state)
{
	(void)state;
	/* The same numbers in each folder are other processes. */
	for (int i = 0; i < 3; i++) {
		run_region(i, 11, i == 1 ? 7 : 0);
		small_region(i, "a", 11, i, "1.13");
	}
	assert_int_equal(settle(3), 0);
	assert_int_equal(profile.processes_count, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(profile.processes[i].rank, i);
		assert_int_equal(profile.processes[i].exit_code, i == 1 ? 7 : 0);
	}
	assert_int_equal(profile.run.exit_code, 7);
	assert_int_equal(stat_of(find("op"), PLUMB_METRIC_OP_CALLS).sum, 6);
	assert_string_equal(environment(PLUMB_NONE, "torch.version"), "1.13");
	done();
}

static void
test_nothing_captured(void **state)
{
	(void)state;
	run_region(0, 11, 0);
	assert_int_equal(settle(1), PLUMB_EEMPTY);
	assert_int_equal(profile.run.exit_code, 0);
	assert_string_equal(environment(PLUMB_NONE, "host.kernel"), "6.1");
	assert_int_equal(profile.processes_count, 0);
	done();
}

static void
test_bad_folders(void **state)
{
	char kept[64];

	(void)state;
	assert_int_equal(settle(1), PLUMB_EINPUT);
	done();
	memcpy(kept, folders[0], sizeof kept);
	snprintf(folders[0], sizeof folders[0], "/nonexistent/plumb");
	assert_int_equal(settle(1), PLUMB_ESYSTEM);
	done();
	memcpy(folders[0], kept, sizeof kept);
}

static void
test_bad_regions(void **state)
{
	(void)state;
	FILE *file = fopen(new_path(0, "bad"), "w");
	fputs("this is not a region", file);
	fclose(file);
	assert_int_equal(settle(1), PLUMB_EINPUT);
	assert_non_null(strstr(warnings, "bad.region"));
	done();
	small_region(0, "good", 1, 0, "1.13");
	/* A record of no length: what follows in its chunk is lost, and that is said. */
	begin(0, "half");
	process(2, 1);
	value(node(0, PLUMB_FRAME_OPERATOR, "op"), thread(1), PLUMB_METRIC_OP_DURATION, 1, 1);
	plumb_id hurt = text("hurt");
	((struct plumb_record *)plumb_region_at(&region, hurt))->length = 0;
	end();
	assert_int_equal(settle(1), 0);
	assert_non_null(strstr(warnings, "bad.region"));
	assert_non_null(strstr(warnings, "half.region"));
	assert_null(strstr(warnings, "good.region"));
	assert_int_equal(stat_of(find("op"), PLUMB_METRIC_OP_CALLS).sum, 4);
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_RECEIVED), 3);
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_DAMAGED), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED), 1);
	done();
}

/* Writes the control file of a folder: paused at first, on from 102 s for 3 s and, unless it ENDED,
 * from 107 s on. */
static void
control_file(int folder, bool ended)
{
	struct plumb_error error;
	struct plumb_control *control;
	char *path = paths[path_count++];

	snprintf(path, sizeof paths[0], "%s/" PLUMB_CONTROL_NAME, folders[folder]);
	if (plumb_control_create(&control, path, true, &error))
		fail_msg("%s", error.message);
	plumb_control_start(control, 102 * SECOND);
	plumb_control_stop(control, 105 * SECOND);
	if (!ended)
		plumb_control_start(control, 107 * SECOND);
	atomic_store(&control->not_followed, 4);
	atomic_store(&control->forked, 2);
	plumb_control_unmap(control);
}

static void
test_control(void **state)
{
	(void)state;
	small_region(0, "1", 1, 0, "1.13");
	control_file(0, true);
	assert_int_equal(settle(1), 0);
	assert_string_equal(environment(PLUMB_NONE, "plumb.recorded_ns"), "3000000000");
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_RECEIVED), 7);
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_ATTRIBUTED), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_NOT_FOLLOWED), 4);
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_FORKED), 2);
	done();
	/* It went on to the end, which the process tells: 110 s. */
	small_region(1, "1", 1, 0, "1.13");
	control_file(1, false);
	const char *only = folders[1];
	struct plumb_error error = { 0 };
	assert_int_equal(plumb_settle(&only, 1, NULL, &profile, &warnings, &error), 0);
	assert_string_equal(environment(PLUMB_NONE, "plumb.recorded_ns"), "6000000000");
	done();
	/* A file of that name that is none of ours says nothing. */
	small_region(2, "1", 1, 0, "1.13");
	char *path = paths[path_count++];
	snprintf(path, sizeof paths[0], "%s/" PLUMB_CONTROL_NAME, folders[2]);
	FILE *file = fopen(path, "w");
	fputs("nothing", file);
	fclose(file);
	only = folders[2];
	assert_int_equal(plumb_settle(&only, 1, NULL, &profile, &warnings, &error), 0);
	assert_null(environment(PLUMB_NONE, "plumb.recorded_ns"));
	done();
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_run),         T(test_killed),      T(test_ranks),   T(test_nothing_captured),
		T(test_bad_folders), T(test_bad_regions), T(test_control),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
