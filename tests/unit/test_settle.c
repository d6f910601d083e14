/* SPDX-License-Identifier: Apache-2.0 */
/* Settling: regions written here by hand, and the profile that they must give. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "region/control.h"
#include "region/writer.h"
#include "settle/settle.h"

#define SECOND 1000000000ull
#define EPOCH (1700000000 * SECOND) /* where the test's GPU clock stands at monotonic 0 */

static char folders[3][64];
static char paths[32][128];
static unsigned path_count;

static int
setup(void **state)
{
	(void)state;
	path_count = 0;
	for (int i = 0; i < 3; i++) {
		snprintf(folders[i], sizeof folders[i], "/tmp/plumb-settle-XXXXXX");
		if (!mkdtemp(folders[i]))
			return -1;
	}
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < path_count; i++)
		unlink(paths[i]);
	for (int i = 0; i < 3; i++)
		rmdir(folders[i]);
	return 0;
}

/* ---- writing regions ---- */

static struct plumb_region region;
static struct plumb_arena arena, other; /* two arenas of that region */

static const char *
new_path(int folder, const char *name)
{
	char *path = paths[path_count++];
	snprintf(path, sizeof paths[0], "%s/%s.region", folders[folder], name);
	return path;
}

static void
begin(int folder, const char *name)
{
	struct plumb_error error = { 0 };

	if (plumb_region_create(&region, new_path(folder, name), 4 << 20, &error))
		fail_msg("%s", error.message);
	region.header->start_monotonic = 100 * SECOND;
	region.header->state = PLUMB_REGION_ENDED;
	plumb_arena_init(&arena, &region);
	plumb_arena_init(&other, &region);
}

static void
end(void)
{
	plumb_region_close(&region);
}

static plumb_id
text(const char *string)
{
	return string ? plumb_arena_string(&arena, string, strlen(string)) : 0;
}

static void *
record(struct plumb_arena *in, enum plumb_record_type type, size_t length)
{
	void *made = plumb_arena_append(in, type, length);

	assert_non_null(made);
	plumb_arena_commit(in, made);
	return made;
}
#define RECORD(TYPE, name)                                                                         \
	((struct plumb_record_##name *)record(&arena, PLUMB_RECORD_##TYPE,                         \
	                                      sizeof(struct plumb_record_##name)))

static struct plumb_record_process *
process(uint32_t pid, int rank)
{
	plumb_id command = text("python train.py"), host = text("node");
	struct plumb_record_process *p = RECORD(PROCESS, process);

	p->pid = pid;
	p->ppid = 1;
	p->rank = rank;
	p->local_rank = rank;
	p->command = command;
	p->host = host;
	p->start_monotonic = 100 * SECOND;
	p->end_monotonic = 110 * SECOND;
	return p;
}

static plumb_id
node_in(struct plumb_arena *in, plumb_id parent, enum plumb_frame_kind kind, const char *name,
        unsigned flags)
{
	plumb_id id = text(name);
	struct plumb_record_node *n = record(in, PLUMB_RECORD_NODE, sizeof *n);

	n->parent = parent;
	n->kind = (uint8_t)kind;
	n->name = id;
	n->flags = (uint8_t)flags;
	return plumb_region_id(&region, n);
}

static plumb_id
node(plumb_id parent, enum plumb_frame_kind kind, const char *name)
{
	return node_in(&arena, parent, kind, name, 0);
}

static plumb_id
thread(uint32_t tid)
{
	struct plumb_record_thread *t = RECORD(THREAD, thread);

	t->tid = tid;
	return plumb_region_id(&region, t);
}

static plumb_id
device(uint32_t ordinal, uint8_t uuid)
{
	struct plumb_record_device *d = RECORD(DEVICE, device);

	d->ordinal = ordinal;
	memset(d->uuid, uuid, sizeof d->uuid);
	d->clock_khz = UINT32_MAX;
	d->memory_bytes = UINT64_MAX;
	d->multiprocessors = 132;
	return plumb_region_id(&region, d);
}

static plumb_id
stream(plumb_id of, uint64_t number)
{
	struct plumb_record_stream *s = RECORD(STREAM, stream);

	s->device = of;
	s->context = 1;
	s->stream = number;
	return plumb_region_id(&region, s);
}

static struct plumb_record_value *
value(plumb_id at, plumb_id track, enum plumb_metric metric, int64_t a, int64_t b)
{
	struct plumb_record_value *v = RECORD(VALUE, value);

	v->node = at;
	v->track = track;
	v->metric = (uint16_t)metric;
	plumb_value_add(v, a);
	plumb_value_add(v, b);
	return v;
}

static void
clock_at(plumb_id of, uint64_t monotonic, uint64_t gpu)
{
	struct plumb_record_clock *c = RECORD(CLOCK, clock);

	c->device = of;
	c->monotonic = monotonic;
	c->realtime = EPOCH + monotonic;
	c->gpu = gpu;
	c->uncertainty = 50;
}

/* A total with COUNT open intervals of 1 ms, each at its second after START (monotonic). */
static struct plumb_record_device_total *
total(plumb_id of, uint64_t start, unsigned count)
{
	struct plumb_record_device_total *t = RECORD(DEVICE_TOTAL, device_total);

	t->device = of;
	t->kernels = count;
	t->kernel_ns = count * 1000000ull;
	t->first_start = EPOCH + start;
	t->open_count = count;
	for (unsigned i = 0; i < count; i++) {
		t->open[i].start = EPOCH + start + i * SECOND;
		t->open[i].end = t->last_end = t->open[i].start + 1000000;
	}
	return t;
}

/* ---- reading profiles ---- */

static struct plumb_profile profile;
static char *warnings;

static char *
shout(const char *name)
{
	char *made;

	return strncmp(name, "_Z", 2) || asprintf(&made, "demangled %s", name) < 0 ? NULL : made;
}

static int
settle(int count)
{
	const char *list[] = { folders[0], folders[1], folders[2] };
	const struct plumb_settle_options options = { .demangle = shout };
	struct plumb_error error = { 0 };
	int code = plumb_settle(list, (size_t)count, &options, &profile, &warnings, &error);

	assert_int_equal(code, error.code);
	assert_true(!code || error.message[0]);
	return code;
}

static void
done(void)
{
	plumb_profile_free(&profile);
	free(warnings);
	warnings = NULL;
}

/* The context by the labels from the root, parted by '|'; PLUMB_NONE when there is none. */
static uint32_t
find_flagged(const char *path, unsigned flags)
{
	char copy[256], *rest = copy, *name;
	uint32_t at = 0;

	snprintf(copy, sizeof copy, "%s", path);
	while ((name = strsep(&rest, "|"))) {
		uint32_t found = PLUMB_NONE;
		for (uint32_t i = at + 1; i <= profile.contexts[at].last; i++) {
			const struct plumb_context *c = &profile.contexts[i];
			if (c->parent == at && (rest || c->flags == flags) &&
			    !strcmp(plumb_frame_label(&profile, c->frame), name))
				found = i;
		}
		if (found == PLUMB_NONE)
			return PLUMB_NONE;
		at = found;
	}
	return at;
}

static uint32_t
find(const char *path)
{
	return find_flagged(path, 0);
}

/* All tracks together. */
static struct plumb_stat
stat_of(uint32_t context, enum plumb_metric metric)
{
	struct plumb_stat all = { 0 };

	assert_int_not_equal(context, PLUMB_NONE);
	for (uint32_t i = 0; i < profile.values_count; i++) {
		const struct plumb_value *v = &profile.values[i];
		struct plumb_stat one = { v->sum, v->count, v->min, v->max, v->mean, v->m2 };
		if (v->context == context && v->metric == metric)
			plumb_stat_merge(&all, &one);
	}
	return all;
}

/* The ledger's sum over all processes. */
static int64_t
ledger(enum plumb_source source, enum plumb_fate fate)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < profile.ledger_count; i++)
		if (profile.ledger[i].source == source && profile.ledger[i].fate == fate)
			sum += profile.ledger[i].count;
	return sum;
}

static const char *
environment(uint32_t of, const char *key)
{
	for (uint32_t i = 0; i < profile.environment_count; i++)
		if (profile.environment[i].process == of &&
		    !strcmp(plumb_text(&profile, profile.environment[i].key), key))
			return plumb_text(&profile, profile.environment[i].value);
	return NULL;
}

/* ---- the tree ---- */

static void
test_tree_over_arenas(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	plumb_id t = thread(11), u = thread(12);
	plumb_id line = node(0, PLUMB_FRAME_PYTHON, "main");
	/* In the other arena under this one's, and back. */
	plumb_id op = node_in(&other, line, PLUMB_FRAME_OPERATOR, "aten::mm", 0);
	plumb_id inner = node(op, PLUMB_FRAME_OPERATOR, "aten::empty");
	value(op, t, PLUMB_METRIC_OP_DURATION, 10, 30);
	value(inner, t, PLUMB_METRIC_OP_DURATION, 5, 5);
	/* The same path, made a second time by another thread. */
	plumb_id again = node_in(&other, node_in(&other, 0, PLUMB_FRAME_PYTHON, "main", 0),
	                         PLUMB_FRAME_OPERATOR, "aten::mm", 0);
	value(again, u, PLUMB_METRIC_OP_DURATION, 50, 70);
	/* Backward work is another context. */
	plumb_id back =
		node_in(&arena, op, PLUMB_FRAME_OPERATOR, "MmBackward0", PLUMB_CONTEXT_BACKWARD);
	value(back, u, PLUMB_METRIC_OP_DURATION, 1, 2);
	struct plumb_record_origin *o = RECORD(ORIGIN, origin);
	o->node = back;
	o->origin = line;
	o->kind = PLUMB_ORIGIN_BACKWARD_CALL;
	end();

	/* The same program's second process, its parent later in the file than the child. */
	begin(0, "2");
	process(2, -1);
	t = thread(21);
	plumb_id child = node(0, PLUMB_FRAME_OPERATOR, "aten::mm");
	plumb_id late = node_in(&other, 0, PLUMB_FRAME_PYTHON, "main", 0);
	((struct plumb_record_node *)plumb_region_at(&region, child))->parent = late;
	value(child, t, PLUMB_METRIC_OP_DURATION, 100, 100);
	end();

	assert_int_equal(settle(1), 0);
	assert_null(warnings);
	struct plumb_stat s = stat_of(find("main|aten::mm"), PLUMB_METRIC_OP_DURATION);
	assert_int_equal(s.count, 6);
	assert_int_equal(s.sum, 360);
	assert_int_equal(s.min, 10);
	assert_int_equal(s.max, 100);
	assert_true(s.mean == 60);
	/* Calls come from the durations. */
	s = stat_of(find("main|aten::mm"), PLUMB_METRIC_OP_CALLS);
	assert_int_equal(s.sum, 6);
	assert_int_equal(s.count, 6);
	assert_int_equal(stat_of(find("main|aten::mm|aten::empty"), PLUMB_METRIC_OP_CALLS).sum, 2);
	uint32_t backward = find_flagged("main|aten::mm|MmBackward0", PLUMB_CONTEXT_BACKWARD);
	assert_int_not_equal(backward, PLUMB_NONE);
	assert_int_equal(profile.origins_count, 1);
	assert_int_equal(profile.origins[0].context, backward);
	assert_int_equal(profile.origins[0].origin, find("main"));
	assert_int_equal(profile.contexts_count, 5);
	assert_int_equal(profile.tracks_count, 3);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_RECEIVED), 5);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_ATTRIBUTED), 5);
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_RECEIVED), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED), 0);
	done();
}

static void
test_deep_tree(void **state)
{
	plumb_id at = 0, name;

	(void)state;
	begin(0, "1");
	process(1, -1);
	name = text("f");
	for (int i = 0; i < 50000; i++) {
		struct plumb_record_node *n = RECORD(NODE, node);
		n->parent = at;
		n->kind = PLUMB_FRAME_PYTHON;
		n->name = name;
		at = plumb_region_id(&region, n);
	}
	/* Asked for from the innermost. */
	value(at, thread(1), PLUMB_METRIC_OP_TIME, 1, 1);
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.contexts_count, 50001);
	assert_int_equal(profile.contexts[50000].depth, 50000);
	assert_int_equal(profile.values[0].context, 50000);
	done();
}

static void
test_hostile_tree(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	plumb_id t = thread(1);
	plumb_id a = node(0, PLUMB_FRAME_OPERATOR, "a");
	plumb_id b = node(a, PLUMB_FRAME_OPERATOR, "b");
	plumb_id self = node(0, PLUMB_FRAME_OPERATOR, "self");
	plumb_id lost = node(0x7fffffff, PLUMB_FRAME_OPERATOR, "lost");
	plumb_id odd = node(t, PLUMB_FRAME_OPERATOR, "odd"); /* its parent is a thread */
	plumb_id kind = node(0, (enum plumb_frame_kind)200, "kind");
	plumb_id under = node(kind, PLUMB_FRAME_OPERATOR, "under");
	((struct plumb_record_node *)plumb_region_at(&region, a))->parent = b;
	((struct plumb_record_node *)plumb_region_at(&region, self))->parent = self;
	((struct plumb_record_node *)plumb_region_at(&region, under))->name = 3;
	const plumb_id all[] = { a, b, self, lost, odd, under };
	for (int i = 0; i < 6; i++)
		value(all[i], t, PLUMB_METRIC_OP_TIME, 1, 2);
	/* Values that cannot be. */
	value(0x1000, t, PLUMB_METRIC_OP_TIME, 1, 1);
	value(a, a, PLUMB_METRIC_OP_TIME, 1, 1);
	value(a, t, (enum plumb_metric)999, 1, 1);
	value(a, t, PLUMB_METRIC_OP_TIME, 1, 1)->mean = (double)NAN;
	value(a, t, PLUMB_METRIC_OP_TIME, 1, 1)->count = UINT64_MAX;
	value(a, t, PLUMB_METRIC_OP_TIME, 1, 1)->min = 2;
	end();
	assert_int_equal(settle(1), 0);
	/* Nothing that was measured is lost: what has no way up hangs under the root. */
	int64_t sum = 0;
	for (uint32_t i = 0; i < profile.values_count; i++)
		sum += profile.values[i].sum;
	assert_int_equal(sum, 6 * 3);
	assert_int_not_equal(find("lost"), PLUMB_NONE);
	assert_int_not_equal(find("self"), PLUMB_NONE);
	assert_int_not_equal(find("?"), PLUMB_NONE);
	/* a and b: one of them became the top. */
	assert_true((find("b|a") == PLUMB_NONE) != (find("a|b") == PLUMB_NONE));
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_DAMAGED), 5);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_UNKNOWN_LAYOUT), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_RECEIVED), 12);
	assert_true(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED) >= 4);
	done();
}

static void
test_torn_values(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	plumb_id t = thread(1), op = node(0, PLUMB_FRAME_OPERATOR, "op");
	value(op, t, PLUMB_METRIC_OP_TIME, 3, 4);
	value(op, t, PLUMB_METRIC_OP_DURATION, 3, 4)->sequence++;
	struct plumb_record_variant *v = RECORD(VARIANT, variant);
	v->node = op;
	v->track = t;
	v->count = 1;
	v->sequence = 1;
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(stat_of(find("op"), PLUMB_METRIC_OP_TIME).sum, 7);
	assert_int_equal(stat_of(find("op"), PLUMB_METRIC_OP_DURATION).count, 0);
	assert_int_equal(stat_of(find("op"), PLUMB_METRIC_OP_CALLS).count, 0);
	assert_int_equal(profile.variants_count, 0);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_TORN), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_ATTRIBUTED), 1);
	done();
}

static struct plumb_record_shape *
shape(plumb_id at, plumb_id track, const char *shapes, uint64_t count, int64_t time)
{
	plumb_id id = text(shapes);
	struct plumb_record_shape *s = RECORD(SHAPE, shape);

	s->node = at;
	s->track = track;
	s->text = id;
	s->count = count;
	s->time = s->max = time;
	return s;
}

static void
test_shapes(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	plumb_id t = thread(1), op = node(0, PLUMB_FRAME_OPERATOR, "op");
	value(op, t, PLUMB_METRIC_OP_TIME, 35, 50);
	shape(op, t, "(float32[2])", 3, 30);
	shape(op, t, "(float32[4])", 1, 5);
	shape(op, t, "(float32[2])", 2, 50); /* of another arena: the same variant */
	shape(op, t, "made, not used", 0, 0);
	shape(op, t, "torn", 1, 1)->sequence = 1;
	shape(op, t, NULL, 1, 1);
	shape(op, op, "no track", 1, 1);
	shape(0x1000, t, "no node", 1, 1);
	shape(op, t, "times", 1, 1)->min = 2;
	shape(op, t, "time", 1, 1)->time = -1;
	shape(op, t, "many", UINT64_MAX, 1);
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.variants_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct plumb_variant *v = &profile.variants[i];
		bool first = !strcmp(plumb_text(&profile, v->shapes), "(float32[2])");

		assert_int_equal(v->count, first ? 5 : 1);
		assert_int_equal(v->time, first ? 80 : 5);
		assert_int_equal(v->max, first ? 50 : 5);
		assert_true(v->grid[0] == PLUMB_UNKNOWN && v->registers == PLUMB_UNKNOWN &&
		            v->occupancy == PLUMB_UNKNOWN);
	}
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_TORN), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_DAMAGED), 6);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_ATTRIBUTED), 4);
	done();
}

/* ---- GPU ---- */

/* A process with one device of UUID, whose totals begin at START with COUNT pieces. */
static void
gpu_region(int folder, const char *name, uint32_t pid, int rank, uint8_t uuid, uint64_t start,
           unsigned count)
{
	begin(folder, name);
	process(pid, rank);
	plumb_id d = device(0, uuid);
	clock_at(0, 100 * SECOND, EPOCH + 100 * SECOND);
	clock_at(0, 110 * SECOND, EPOCH + 110 * SECOND);
	plumb_id s = stream(d, 7);
	plumb_id line = node(0, PLUMB_FRAME_PYTHON, "main");
	plumb_id kernel = node(node(line, PLUMB_FRAME_GPU_API, "cuLaunchKernel"),
	                       PLUMB_FRAME_KERNEL, "_Z3foov");
	value(kernel, s, PLUMB_METRIC_GPU_TIME, 1000000, 1000000);
	total(d, start, count);
}

static void
test_devices_join(void **state)
{
	(void)state;
	/* Two processes on one GPU, half a millisecond apart; one on its own. */
	gpu_region(0, "1", 1, 0, 0xab, 101 * SECOND, 3);
	end();
	gpu_region(0, "2", 2, 1, 0xab, 101 * SECOND + 500000, 3);
	end();
	gpu_region(1, "3", 3, 2, 0xcd, 105 * SECOND, 2);
	end();
	assert_int_equal(settle(2), 0);
	assert_int_equal(profile.devices_count, 2);
	const struct plumb_device *d = &profile.devices[0];
	assert_string_equal(plumb_text(&profile, d->uuid),
	                    "GPU-abababab-abab-abab-abab-abababababab");
	assert_int_equal(d->kernels, 6);
	assert_int_equal(d->kernel_ns, 6000000);
	assert_int_equal(d->busy_ns, 3 * 1500000); /* the union */
	assert_int_equal(d->contended_ns, 3 * 500000);
	assert_int_equal(profile.device_processes_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct plumb_device_process *share = &profile.device_processes[i];
		assert_int_equal(share->device, i == 2);
		assert_int_equal(share->process, i);
		assert_int_equal(share->busy_ns, i == 2 ? 2000000 : 3000000);
	}
	assert_int_equal(profile.devices[1].contended_ns, 0);
	assert_int_equal(d->first_ns, 101 * SECOND);
	assert_int_equal(d->last_ns, 103 * SECOND + 1500000);
	assert_true(d->rank == PLUMB_UNKNOWN);
	assert_true(d->clock_khz == PLUMB_UNKNOWN && d->memory_bytes == PLUMB_UNKNOWN);
	assert_int_equal(d->multiprocessors, 132);
	assert_null(environment(PLUMB_NONE, "gpu.busy.GPU-abababab-abab-abab-abab-abababababab"));
	assert_int_equal(profile.devices[1].busy_ns, 2000000);
	assert_int_equal(profile.devices[1].rank, 2);
	/* The three ranks' kernels are one context on three tracks. */
	uint32_t kernel = find("main|cuLaunchKernel|demangled _Z3foov");
	assert_int_equal(stat_of(kernel, PLUMB_METRIC_GPU_TIME).count, 6);
	assert_int_equal(profile.processes_count, 3);
	assert_int_equal(profile.processes[2].rank, 2);
	assert_string_equal(plumb_text(&profile, profile.processes[2].host), "node");
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_NO_PYTHON), 0);
	done();
}

static void
test_busy_not_exact(void **state)
{
	(void)state;
	gpu_region(0, "1", 1, 0, 0xab, 101 * SECOND, 3);
	end();
	gpu_region(0, "2", 2, 0, 0xab, 101 * SECOND + 500000, 3);
	plumb_id id = 0;
	struct plumb_record_device_total *t = NULL;
	/* Older work was folded: how it lies to the other process's is not known any more. */
	for (id = 1; !t; id++) {
		struct plumb_record *r = plumb_region_at(&region, id);
		if (r->type == PLUMB_RECORD_DEVICE_TOTAL && r->length == sizeof *t)
			t = (struct plumb_record_device_total *)r;
	}
	t->busy_ns = 7000;
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.devices[0].busy_ns, 6000000 + 7000);
	assert_int_equal(profile.devices[0].rank, 0);
	assert_true(profile.devices[0].contended_ns == PLUMB_UNKNOWN);
	assert_int_equal(profile.device_processes[0].busy_ns, 3000000);
	assert_int_equal(profile.device_processes[1].busy_ns, 3007000);
	assert_non_null(
		environment(PLUMB_NONE, "gpu.busy.GPU-abababab-abab-abab-abab-abababababab"));
	done();
}

static void
test_torn_total(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id d = device(0, 1);
	plumb_id s = stream(d, 7);
	clock_at(0, 100 * SECOND, EPOCH + 100 * SECOND);
	value(node(0, PLUMB_FRAME_KERNEL, "k"), s, PLUMB_METRIC_GPU_TIME, 10, 20);
	value(node(0, PLUMB_FRAME_SET, "set"), s, PLUMB_METRIC_GPU_COPY_TIME, 1, 2);
	total(d, 101 * SECOND, 2)->sequence = 3;
	end();
	assert_int_equal(settle(1), 0);
	/* What the values add up to; when it was is not known. */
	assert_int_equal(profile.devices[0].kernels, 2);
	assert_int_equal(profile.devices[0].kernel_ns, 30);
	assert_int_equal(profile.devices[0].sets, 2);
	assert_int_equal(profile.devices[0].copies, 0);
	assert_true(profile.devices[0].busy_ns == PLUMB_UNKNOWN);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_TORN), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_NO_PYTHON), 2);
	done();
}

static void
test_work_ring(void **state)
{
	const unsigned capacity = 8, written = 11;

	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id d = device(0, 1), s = stream(d, 7), k = node(0, PLUMB_FRAME_KERNEL, "k");
	/* A clock that runs 100 ppm fast. */
	clock_at(d, 100 * SECOND, EPOCH);
	clock_at(d, 101 * SECOND, EPOCH + SECOND + 100000);
	clock_at(d, 102 * SECOND, EPOCH + 2 * SECOND + 200000);
	value(k, s, PLUMB_METRIC_GPU_TIME, 10, 20);
	struct plumb_record_work_ring *ring =
		record(&arena, PLUMB_RECORD_WORK_RING,
	               sizeof *ring + capacity * sizeof(struct plumb_work));
	struct plumb_work *work = (struct plumb_work *)(ring + 1);
	ring->device = d;
	ring->capacity = capacity;
	for (unsigned i = 0; i < written; i++)
		work[i % capacity] = (struct plumb_work){ k, s, EPOCH + (written - i) * 100020,
			                                  EPOCH + (written - i) * 100020 + 7 };
	ring->written = written;
	work[9 % capacity].stream = k; /* not a stream */
	struct plumb_record_series *series = RECORD(SERIES, series);
	series->device = d;
	series->start = EPOCH;
	series->width = 1000;
	series->bins[2].busy_ns = 500;
	series->bins[2].kernels = 3;
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.work_count, 7);
	assert_int_equal(profile.work[0].start_ns, 100 * SECOND + 1 * 100020 - 10);
	assert_int_equal(profile.work[0].context, find("k"));
	for (uint32_t i = 1; i < profile.work_count; i++)
		assert_true(profile.work[i].start_ns > profile.work[i - 1].start_ns);
	assert_int_equal(profile.series_count, 3);
	assert_int_equal(profile.series[2].start_ns, 100 * SECOND + 2000);
	assert_int_equal(profile.series[2].kernels, 3);
	/* The GPU's clock and the time of day. */
	assert_int_equal(profile.clocks_count, 2);
	for (int i = 0; i < 2; i++) {
		const struct plumb_clock *c = &profile.clocks[i];
		assert_int_equal(c->readings, 3);
		assert_true(c->residual_ns <= 50);
		if (c->device == PLUMB_NONE)
			assert_true(c->offset_ns == -(int64_t)EPOCH);
		else
			assert_true(c->slope < -0.99e-4 && c->slope > -1.01e-4);
	}
	done();
}

static void
test_clock_outlier(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id d = device(0, 1);
	for (uint64_t i = 0; i < 10; i++)
		clock_at(0, (100 + i) * SECOND, EPOCH + i * SECOND);
	/* Interrupted between its clocks. */
	struct plumb_record_clock *c = RECORD(CLOCK, clock);
	c->monotonic = 105 * SECOND + 5000000;
	c->gpu = EPOCH + 5 * SECOND;
	c->uncertainty = 10000000;
	value(node(0, PLUMB_FRAME_KERNEL, "k"), stream(d, 7), PLUMB_METRIC_GPU_TIME, 10, 20);
	total(d, 0, 1);
	end();
	assert_int_equal(settle(1), 0);
	assert_true(profile.devices[0].first_ns >= (int64_t)(100 * SECOND - 100));
	assert_true(profile.devices[0].first_ns <= (int64_t)(100 * SECOND + 100));
	done();
}

static void
test_no_clock(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id d = device(0, 0); /* without a UUID, too */
	value(node(0, PLUMB_FRAME_KERNEL, "k"), stream(d, 7), PLUMB_METRIC_GPU_TIME, 10, 20);
	total(d, SECOND, 2);
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.devices[0].uuid, PLUMB_NONE);
	assert_int_equal(profile.devices[0].busy_ns, 2000000);
	assert_true(profile.devices[0].first_ns == PLUMB_UNKNOWN);
	done();
}

/* ---- the ledger ---- */

static void
test_ledger(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	plumb_id d = device(0, 1), s = stream(d, 7), t = thread(1);
	plumb_id op = node(node(0, PLUMB_FRAME_PYTHON, "main"), PLUMB_FRAME_OPERATOR, "op");
	value(node(op, PLUMB_FRAME_KERNEL, "k"), s, PLUMB_METRIC_GPU_TIME, 1, 1);
	value(node(0, PLUMB_FRAME_KERNEL, "alone"), s, PLUMB_METRIC_GPU_TIME, 1, 1);
	plumb_id back = node_in(&arena, op, PLUMB_FRAME_OPERATOR, "b", PLUMB_CONTEXT_BACKWARD);
	value(node(back, PLUMB_FRAME_KERNEL, "k"), s, PLUMB_METRIC_GPU_TIME, 1, 1);
	plumb_id gather = node_in(&arena, op, PLUMB_FRAME_OPERATOR, "a",
	                          PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION);
	value(node(gather, PLUMB_FRAME_KERNEL, "k"), s, PLUMB_METRIC_GPU_TIME, 1, 1);
	value(op, t, PLUMB_METRIC_OP_TIME, 1, 1);
	plumb_arena_count(&arena, PLUMB_SOURCE_LAUNCH, PLUMB_FATE_RECEIVED, 12);
	plumb_arena_count(&arena, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RECEIVED, 10);
	plumb_arena_count(&arena, PLUMB_SOURCE_KERNEL, PLUMB_FATE_ATTRIBUTED, 6);
	plumb_arena_count(&other, PLUMB_SOURCE_KERNEL, PLUMB_FATE_ATTRIBUTED, 2);
	plumb_arena_count(&arena, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RING_MISS, 1);
	plumb_arena_count(&arena, PLUMB_SOURCE_KERNEL, PLUMB_FATE_NO_LAUNCH, 1);
	plumb_arena_count(&arena, PLUMB_SOURCE_VALUE, PLUMB_FATE_REGION_FULL, 5);
	region.header->lost_full = 9;
	region.header->lost_no_space = 4;
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_ATTRIBUTED), 8);
	assert_int_equal(ledger(PLUMB_SOURCE_LAUNCH, PLUMB_FATE_NOT_DELIVERED), 3);
	assert_int_equal(ledger(PLUMB_SOURCE_LAUNCH, PLUMB_FATE_ATTRIBUTED), 9);
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_NO_PYTHON), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_FORWARD), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_ACCUMULATION), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_RECEIVED), 5 + 5);
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_RECEIVED), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_ATTRIBUTED), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_REGION_FULL), 9);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_NO_SPACE), 4);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_RECEIVED),
	                 ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_ATTRIBUTED) + 13);
	done();
}

static void
test_overhead(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	for (uint32_t i = 0; i < 2; i++) {
		plumb_id t = thread(i + 1);
		struct plumb_record_overhead *o = RECORD(OVERHEAD, overhead);
		o->thread = t;
		o->kinds[PLUMB_CALLBACK_OPERATOR_ENTER].calls = 6400 * (i + 1);
		o->kinds[PLUMB_CALLBACK_OPERATOR_ENTER].timed = 100;
		o->kinds[PLUMB_CALLBACK_OPERATOR_ENTER].timed_ns = 10000;
		o->kinds[PLUMB_CALLBACK_OPERATOR_ENTER].empty_ns_x1000 = 2500;
		o->kinds[PLUMB_CALLBACK_GPU_RECORDS].calls = 1000000;
		o->kinds[PLUMB_CALLBACK_GPU_RECORDS].timed = 1;
		o->kinds[PLUMB_CALLBACK_GPU_RECORDS].timed_ns = 1000000;
		value(node(0, PLUMB_FRAME_OPERATOR, "op"), t, PLUMB_METRIC_OP_TIME, 1, 1);
	}
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.tracks[0].overhead_ns, 656000);
	assert_int_equal(profile.tracks[1].overhead_ns, 1312000);
	assert_int_equal(profile.processes[0].overhead_ns, 1312000);
	assert_int_equal(profile.run.overhead_ns, 1312000);
	done();
}

/* ---- runs and processes ---- */

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

/* Writes the control file of a folder: paused at first, on from 102 s for 3 s and, unless it ENDED, from
 * 107 s on. */
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

/* A kernel of NCCL stands under its operation, wherever it was launched from. */
static void
test_collectives(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id t = thread(1), line = node(0, PLUMB_FRAME_PYTHON, "main");
	plumb_id call = node(line, PLUMB_FRAME_GPU_API, "cuLaunchKernelEx");
	value(node(call, PLUMB_FRAME_KERNEL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"), t,
	      PLUMB_METRIC_GPU_TIME, 1, 10);
	value(node(call, PLUMB_FRAME_KERNEL, "ncclDevKernel_AllReduce_Sum_f16_RING_LL"), t,
	      PLUMB_METRIC_GPU_TIME, 1, 5);
	value(node(call, PLUMB_FRAME_KERNEL, "gemm"), t, PLUMB_METRIC_GPU_TIME, 1, 1);
	value(node(0, PLUMB_FRAME_KERNEL, "ncclDevKernel_SendRecv"), t, PLUMB_METRIC_GPU_TIME, 1,
	      2);
	plumb_id own = node(call, PLUMB_FRAME_COLLECTIVE, "all_reduce");
	value(node(own, PLUMB_FRAME_KERNEL, "ncclDevKernel_Generic"), t, PLUMB_METRIC_GPU_TIME, 1,
	      3);
	end();
	assert_int_equal(settle(1), 0);
	static const char above[] = "main|cuLaunchKernelEx|AllReduce|ncclDevKernel_AllReduce";
	char path[128];
	snprintf(path, sizeof path, "%s_Sum_f32_RING_LL", above);
	assert_int_equal(stat_of(find(path), PLUMB_METRIC_GPU_TIME).sum, 11);
	snprintf(path, sizeof path, "%s_Sum_f16_RING_LL", above);
	assert_int_equal(stat_of(find(path), PLUMB_METRIC_GPU_TIME).sum, 6);
	assert_true(find("main|cuLaunchKernelEx|gemm") != PLUMB_NONE);
	assert_true(find("SendRecv|ncclDevKernel_SendRecv") != PLUMB_NONE);
	assert_true(find("main|cuLaunchKernelEx|all_reduce|ncclDevKernel_Generic") != PLUMB_NONE);
	done();
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_tree_over_arenas), T(test_deep_tree),
		T(test_hostile_tree),     T(test_torn_values),
		T(test_shapes),           T(test_devices_join),
		T(test_busy_not_exact),   T(test_torn_total),
		T(test_work_ring),        T(test_clock_outlier),
		T(test_no_clock),         T(test_ledger),
		T(test_overhead),         T(test_run),
		T(test_killed),           T(test_ranks),
		T(test_nothing_captured), T(test_bad_folders),
		T(test_bad_regions),
		T(test_control),
		T(test_collectives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
