/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of settling: regions written by hand, and the profile that they give.
 *
 *	begin(0, "1"); process(1, 0); …; end();      // a region in the first of three folders
 *	settle(1);                                   // the first folder gives `profile`
 *	…; done();
 */
#ifndef PLUMB_TESTS_SETTLE_REGIONS_H
#define PLUMB_TESTS_SETTLE_REGIONS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "region/writer.h"
#include "settle/settle.h"

#define SECOND 1000000000ull
#define EPOCH (1700000000 * SECOND) /* where the test's GPU clock stands at monotonic 0 */

static char folders[3][64];
static char paths[32][128];
static unsigned path_count;

static inline int
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

static inline int
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

static inline const char *
new_path(int folder, const char *name)
{
	char *path = paths[path_count++];
	snprintf(path, sizeof paths[0], "%s/%s.region", folders[folder], name);
	return path;
}

static inline void
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

static inline void
end(void)
{
	plumb_region_close(&region);
}

static inline plumb_id
text(const char *string)
{
	return string ? plumb_arena_string(&arena, string, strlen(string)) : 0;
}

static inline void *
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

static inline struct plumb_record_process *
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

static inline plumb_id
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

static inline plumb_id
node(plumb_id parent, enum plumb_frame_kind kind, const char *name)
{
	return node_in(&arena, parent, kind, name, 0);
}

static inline plumb_id
thread(uint32_t tid)
{
	struct plumb_record_thread *t = RECORD(THREAD, thread);

	t->tid = tid;
	return plumb_region_id(&region, t);
}

static inline plumb_id
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

static inline plumb_id
stream(plumb_id of, uint64_t number)
{
	struct plumb_record_stream *s = RECORD(STREAM, stream);

	s->device = of;
	s->context = 1;
	s->stream = number;
	return plumb_region_id(&region, s);
}

static inline struct plumb_record_value *
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

static inline void
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
static inline struct plumb_record_device_total *
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

static inline char *
shout(const char *name)
{
	char *made;

	return strncmp(name, "_Z", 2) || asprintf(&made, "demangled %s", name) < 0 ? NULL : made;
}

static inline int
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

static inline void
done(void)
{
	plumb_profile_free(&profile);
	free(warnings);
	warnings = NULL;
}

/* The context by the labels from the root, parted by '|'; PLUMB_NONE when there is none. */
static inline uint32_t
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

static inline uint32_t
find(const char *path)
{
	return find_flagged(path, 0);
}

/* All tracks together. */
static inline struct plumb_stat
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
static inline int64_t
ledger(enum plumb_source source, enum plumb_fate fate)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < profile.ledger_count; i++)
		if (profile.ledger[i].source == source && profile.ledger[i].fate == fate)
			sum += profile.ledger[i].count;
	return sum;
}

static inline const char *
environment(uint32_t of, const char *key)
{
	for (uint32_t i = 0; i < profile.environment_count; i++)
		if (profile.environment[i].process == of &&
		    !strcmp(plumb_text(&profile, profile.environment[i].key), key))
			return plumb_text(&profile, profile.environment[i].value);
	return NULL;
}

#endif
