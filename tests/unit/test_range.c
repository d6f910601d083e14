/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges, the program's own metrics and events, in the collector's core. A process records once in
 * its life, so each case runs in a process of its own: this program starts itself again with the
 * case's name and a folder for the region.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/context.h"
#include "collect/event.h"
#include "collect/range.h"
#include "collect/shape.h"
#include "collect/user_metric.h"

/* Fails the case: where, and not zero. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                    \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static const struct plumb_range_domain domain_a = { .bytes = 2, .text = "A/" };
static const struct plumb_range_domain domain_b = { .bytes = 2, .text = "B/" };

/* The current context, and the names on its path. */
static plumb_id
here(void)
{
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_GPU);
	plumb_id id = plumb_context_current(thread);
	plumb_leave(thread);
	return id;
}

static bool
path_is(const char *expected)
{
	struct plumb_region *region = plumb_region_of_process();
	char path[512] = "", longer[512];
	const struct plumb_record_node *node;
	for (plumb_id id = here(); id; id = node->parent) {
		node = plumb_region_at(region, id);
		const struct plumb_record_string *name = plumb_region_at(region, node->name);
		snprintf(longer, sizeof longer, "%.*s%s%.200s", (int)name->bytes,
		         (const char *)(name + 1), *path ? " " : "", path);
		strcpy(path, longer);
	}
	if (strcmp(path, expected))
		fprintf(stderr, "\"%s\" is not \"%s\"\n", path, expected);
	return !strcmp(path, expected);
}

/* What the ledger of all arenas says. */
static uint64_t
tally(enum plumb_source source, enum plumb_fate fate)
{
	struct plumb_region *region = plumb_region_of_process();
	uint64_t end = atomic_load(&region->header->next), sum = 0;
	for (uint64_t at = PLUMB_REGION_HEADER_SIZE; at < end;) {
		struct plumb_chunk_header *chunk = (void *)((char *)region->header + at);
		char *record = (char *)(chunk + 1), *last = record + atomic_load(&chunk->used);
		while (record < last) {
			const struct plumb_record_ledger *row = (void *)record;
			if (row->head.type == PLUMB_RECORD_LEDGER && row->source == source &&
			    row->fate == fate)
				sum += atomic_load(&row->count);
			record += row->head.length;
		}
		at += chunk->size;
	}
	return sum;
}

/* The values of METRIC together. */
static struct plumb_record_value
values(uint32_t metric)
{
	struct plumb_region *region = plumb_region_of_process();
	uint64_t end = atomic_load(&region->header->next);
	struct plumb_record_value all = { .count = 0 };
	for (uint64_t at = PLUMB_REGION_HEADER_SIZE; at < end;) {
		struct plumb_chunk_header *chunk = (void *)((char *)region->header + at);
		char *record = (char *)(chunk + 1), *last = record + atomic_load(&chunk->used);
		while (record < last) {
			const struct plumb_record_value *value = (void *)record;
			if (value->head.type == PLUMB_RECORD_VALUE && value->metric == metric) {
				all.sum += value->sum;
				all.count += value->count;
				all.node = value->node;
			}
			record += value->head.length;
		}
		at += chunk->size;
	}
	return all;
}

static struct plumb_ticket *
operator_begin(const char *name)
{
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	struct plumb_operator op = { .name = name, .sequence = -1 };
	struct plumb_ticket *ticket = plumb_operator_enter(thread, &op);
	plumb_leave(thread);
	return ticket;
}

static void
operator_end(struct plumb_ticket *ticket)
{
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_EXIT);
	plumb_operator_exit(thread, ticket);
	plumb_leave(thread);
}

/* ---- ranges ---- */

/* Domains close their own; what is inside stays, and nothing is counted twice or lost. */
static int
case_overlap(void)
{
	CHECK(plumb_ranges_push(&domain_a, "1", NULL) == 0);
	CHECK(plumb_ranges_push(&domain_b, "2", NULL) == 0);
	CHECK(plumb_ranges_push(NULL, "3", NULL) == 0);
	CHECK(path_is("A/1 B/2 3"));
	CHECK(plumb_ranges_pop(&domain_a) == 0);
	CHECK(path_is("A/1 B/2 3"));
	CHECK(plumb_ranges_push(&domain_a, "4", NULL) == 0);
	CHECK(path_is("A/1 B/2 3 A/4"));
	CHECK(plumb_ranges_pop(&domain_b) == 0);
	CHECK(plumb_ranges_pop(&domain_b) < 0);
	CHECK(plumb_ranges_pop(NULL) == 0);
	CHECK(path_is("A/1 B/2 3 A/4"));
	CHECK(plumb_ranges_pop(&domain_a) == 0);
	CHECK(path_is(""));
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_RECEIVED) == 5);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_ATTRIBUTED) == 4);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_UNBALANCED) == 1);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_ENDED_ELSEWHERE) == 0);
	CHECK(tally(PLUMB_SOURCE_OPERATOR, PLUMB_FATE_RECEIVED) == 0);
	return 0;
}

/* The self times of overlapping ranges and operators add up to the outermost one's duration. */
static int
case_self_times(void)
{
	struct plumb_ticket *whole = operator_begin("whole");
	for (int i = 0; i < 100; i++) {
		plumb_ranges_push(&domain_a, "a", NULL);
		usleep(50);
		plumb_ranges_push(&domain_b, "b", NULL);
		struct plumb_ticket *op = operator_begin("op");
		usleep(50);
		plumb_ranges_pop(&domain_a);
		usleep(50);
		operator_end(op);
		plumb_ranges_pop(&domain_b);
	}
	operator_end(whole);
	int64_t self = values(PLUMB_METRIC_OP_TIME).sum, whole_ns = 0;
	struct plumb_region *region = plumb_region_of_process();
	const struct plumb_thread *thread = plumb_thread_get();
	const struct plumb_record_node *node =
		plumb_region_at(region, thread->stack[1].node); /* as it was */
	for (plumb_id id = node->first_value; id;) {
		const struct plumb_record_value *value = plumb_region_at(region, id);
		if (value->metric == PLUMB_METRIC_OP_DURATION)
			whole_ns = value->sum;
		id = value->next;
	}
	CHECK(whole_ns > 100 * 150 * 1000);
	/* Rounding: 1 ns for each of 301 ends, twice. */
	CHECK(llabs(whole_ns - self) <= 700);
	return 0;
}

/* A range that is closed inside an operator that it was not opened in leaves the operator open. */
static int
case_operator_inside(void)
{
	plumb_ranges_push(NULL, "range", NULL);
	struct plumb_ticket *op = operator_begin("op");
	plumb_ranges_pop(NULL);
	CHECK(path_is("range op"));
	struct plumb_ticket *inner = operator_begin("inner");
	CHECK(path_is("range op inner"));
	operator_end(inner);
	operator_end(op);
	CHECK(path_is(""));
	CHECK(tally(PLUMB_SOURCE_OPERATOR, PLUMB_FATE_ATTRIBUTED) == 2);
	/* And one that an operator leaves open ends with it, and its own end ends nothing else. */
	op = operator_begin("op");
	plumb_ranges_push(NULL, "left", NULL);
	CHECK(path_is("op left"));
	operator_end(op);
	plumb_ranges_push(&domain_a, "other", NULL);
	CHECK(plumb_ranges_pop(NULL) == 0);
	CHECK(path_is("A/other"));
	plumb_ranges_pop(&domain_a);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_ENDED_ELSEWHERE) == 1);
	return 0;
}

/* Tickets come back whatever the order: many more rounds than there are tickets. */
static int
case_tickets(void)
{
	for (unsigned i = 0; i < 4 * PLUMB_OPERATORS_MAX; i++) {
		plumb_ranges_push(&domain_a, "a", NULL);
		struct plumb_ticket *op = operator_begin("op");
		plumb_ranges_push(&domain_b, "b", NULL);
		CHECK(op);
		if (i % 3 == 0)
			plumb_ranges_pop(&domain_a);
		if (i % 2)
			plumb_ranges_pop(&domain_b);
		operator_end(op);
		if (i % 2 == 0)
			plumb_ranges_pop(&domain_b);
		if (i % 3)
			plumb_ranges_pop(&domain_a);
		CHECK(plumb_thread_get()->operators == 0 && !plumb_thread_get()->ended_early);
	}
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_TOO_DEEP) == 0);
	CHECK(tally(PLUMB_SOURCE_OPERATOR, PLUMB_FATE_TOO_DEEP) == 0);
	CHECK(plumb_thread_get()->tickets_made <= 4);
	return 0;
}

/* What comes while we are at work ourselves (a signal handler that annotates) ends nothing of
 * ours. */
static int
case_not_recorded(void)
{
	plumb_ranges_push(NULL, "outer", NULL);
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_GPU);
	plumb_ranges_push(NULL, "not recorded", NULL);
	plumb_leave(thread);
	CHECK(path_is("outer"));
	plumb_ranges_pop(NULL); /* its end */
	CHECK(path_is("outer"));
	plumb_ranges_push(NULL, "inner", NULL);
	thread = plumb_enter(PLUMB_CALLBACK_GPU);
	plumb_ranges_pop(NULL); /* its time is unknown */
	plumb_leave(thread);
	CHECK(path_is("outer"));
	plumb_ranges_pop(NULL);
	CHECK(path_is("") && plumb_thread_get()->tickets_made <= 2);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_ENDED_ELSEWHERE) == 1);
	return 0;
}

static int
case_named(void)
{
	static const char a[] = "same", b[] = "same";
	plumb_ranges_push(NULL, a, NULL);
	plumb_ranges_push(NULL, b, NULL);
	struct plumb_thread *thread = plumb_thread_get();
	CHECK(thread->ranges_open == 2);
	CHECK(plumb_ranges_pop_named(NULL, a) == 0);
	CHECK(thread->ranges_open == 1 && thread->ranges[0].key == b);
	CHECK(plumb_ranges_pop_named(NULL, a) < 0);
	CHECK(plumb_ranges_pop_named(NULL, b) == 1);
	CHECK(path_is(""));
	return 0;
}

static void *
leaves_open(void *data)
{
	for (int i = 0; i < 3; i++)
		plumb_ranges_push(data, "left open", NULL);
	return NULL;
}

static void *
starts_clean(void *data)
{
	*(bool *)data =
		path_is("") && plumb_ranges_pop(NULL) < 0 && plumb_ranges_pop(&domain_a) < 0;
	return NULL;
}

/* Threads end with ranges open, and others take their part over. */
static int
case_threads(void)
{
	pthread_t thread;
	bool clean = true;
	plumb_ranges_push(NULL, "main", NULL);
	for (int i = 0; i < 6000; i++) { /* more tickets than there are */
		pthread_create(&thread, NULL, leaves_open, (void *)(uintptr_t)&domain_a);
		pthread_join(thread, NULL);
	}
	pthread_create(&thread, NULL, starts_clean, &clean);
	pthread_join(thread, NULL);
	CHECK(clean);
	CHECK(path_is("main"));
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_ENDED_ELSEWHERE) == 18000);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_TOO_DEEP) == 0);
	return 0;
}

/* ---- started ranges ---- */

static void *
end_them(void *data)
{
	uint64_t *ids = data;
	for (int i = 0; i < 1000; i++)
		plumb_ranges_end(ids[i]);
	return NULL;
}

static int
case_started(void)
{
	static uint64_t ids[4][1000];
	pthread_t threads[4];
	for (int i = 0; i < 4000; i++)
		ids[i % 4][i / 4] = plumb_ranges_start(&domain_a, "moved", NULL, 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, end_them, ids[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	struct plumb_record_value duration = values(PLUMB_METRIC_OP_DURATION);
	CHECK(duration.count == 4000 && values(PLUMB_METRIC_OP_TIME).count == 0);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_RECEIVED) == 4000);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_ATTRIBUTED) == 4000);
	/* Ids that somebody else chose; one that nobody started. */
	CHECK(plumb_ranges_start(NULL, "theirs", NULL, 17) == 17 && !plumb_ranges_is_own(17));
	CHECK(plumb_ranges_is_own(ids[0][0]));
	plumb_ranges_end(17);
	plumb_ranges_end(17);
	plumb_ranges_end(0);
	plumb_ranges_end(UINT64_MAX);
	CHECK(values(PLUMB_METRIC_OP_DURATION).count == 4001);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_UNBALANCED) == 3);
	return 0;
}

/* More than there is room for: each is counted once, none is given another's end. */
static int
case_started_full(void)
{
	enum { MANY = 100000 };
	static uint64_t ids[MANY];
	for (int i = 0; i < MANY; i++)
		ids[i] = plumb_ranges_start(NULL, "many", NULL, 0);
	uint64_t lost = tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_ENDED_ELSEWHERE);
	CHECK(lost >= MANY - 65536 && lost < MANY);
	for (int i = 0; i < MANY; i++)
		plumb_ranges_end(ids[i]);
	CHECK(values(PLUMB_METRIC_OP_DURATION).count == MANY - lost);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_ATTRIBUTED) == MANY - lost);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_UNBALANCED) == lost);
	return 0;
}

/* ---- names and numbers ---- */

static int
case_payloads(void)
{
	int64_t number = INT64_MIN;
	plumb_ranges_push(NULL, "least", &number);
	plumb_ranges_pop(NULL);
	number = INT64_MAX;
	for (int i = 0; i < 2; i++)
		plumb_ranges_mark(NULL, "most", &number);
	struct plumb_record_value payload = values(PLUMB_METRIC_RANGE_PAYLOAD);
	CHECK(payload.count == 3 && payload.sum == 0); /* -MAX + MAX, where it stopped */
	CHECK(values(PLUMB_METRIC_RANGE_MARKS).count == 2);
	return 0;
}

static int
case_long_names(void)
{
	static char name[5000];
	memset(name, 'x', sizeof name - 1);
	memcpy(name + PLUMB_RANGE_NAME_MAX - 1, "\xc3\xbc", 2); /* cut there */
	for (int i = 0; i < 3; i++) {
		plumb_ranges_push(NULL, name, NULL);
		const struct plumb_record_node *node =
			plumb_region_at(plumb_region_of_process(), here());
		const struct plumb_record_string *text =
			plumb_region_at(plumb_region_of_process(), node->name);
		CHECK(text->bytes == PLUMB_RANGE_NAME_MAX - 1);
		plumb_ranges_pop(NULL);
	}
	CHECK(values(PLUMB_METRIC_OP_DURATION).count == 3);
	return 0;
}

static bool
is_path_in(const struct plumb_range_domain *domain, const char *name,
           const struct plumb_range_domain *kept, const char *expected)
{
	bool is;
	if (kept)
		plumb_ranges_push_kept(domain, kept, NULL);
	else
		plumb_ranges_push(domain, name, NULL);
	is = path_is(expected);
	plumb_ranges_pop(domain);
	return is;
}

/* What plumb remembers of a name: neither its text, nor its domain, nor its context may be that of
 * an earlier time. */
static int
case_remembered(void)
{
	static const struct plumb_range_domain kept = { .bytes = 4, .text = "kept" };
	char text[16] = "one";
	for (int i = 0; i < 3; i++) {
		strcpy(text, "one");
		CHECK(is_path_in(NULL, text, NULL, "one"));
		strcpy(text, "two");
		CHECK(is_path_in(NULL, text, NULL, "two"));
		strcpy(text, "tw");
		CHECK(is_path_in(NULL, text, NULL, "tw"));
		CHECK(is_path_in(&domain_a, text, NULL, "A/tw"));
		CHECK(is_path_in(NULL, NULL, &kept, "kept"));
		CHECK(is_path_in(&domain_a, NULL, &kept, "A/kept"));
		plumb_ranges_push(&domain_b, "around", NULL);
		CHECK(is_path_in(NULL, text, NULL, "B/around tw"));
		CHECK(is_path_in(&domain_a, NULL, &kept, "B/around A/kept"));
		plumb_ranges_pop(&domain_b);
	}
	CHECK(values(PLUMB_METRIC_OP_DURATION).count == 27);
	return 0;
}

/* Names beyond those that there is room for are counted each time, also those that stay. */
static int
case_further_names(void)
{
	static const struct plumb_range_domain kept = { .bytes = 8, .text = "one more" };
	char text[16];
	for (unsigned i = 0; i < PLUMB_RANGE_NAMES_MAX; i++) {
		snprintf(text, sizeof text, "%u", i);
		plumb_ranges_push(NULL, text, NULL);
		plumb_ranges_pop(NULL);
	}
	for (int i = 0; i < 3; i++)
		CHECK(is_path_in(NULL, NULL, &kept, "(further names)"));
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_OVERFLOWED) == 3);
	return 0;
}

static int
case_metrics(void)
{
	char name[16] = "tokens", *copy = strdup("tokens");
	plumb_user_metric("at the root", 3);
	plumb_user_metric("at the root", 4);
	CHECK(values(PLUMB_METRIC_USER).sum == 7 && values(PLUMB_METRIC_USER).count == 2);
	CHECK(values(PLUMB_METRIC_USER).node == 0);
	plumb_ranges_push(NULL, "range", NULL);
	plumb_user_metric(name, 5);
	plumb_user_metric(copy, 6);
	CHECK(values(PLUMB_METRIC_USER + 1).sum == 11 && values(PLUMB_METRIC_USER + 1).node);
	strcpy(name, "other"); /* the same place, another name */
	plumb_user_metric(name, 100);
	CHECK(values(PLUMB_METRIC_USER + 1).sum == 11);
	CHECK(values(PLUMB_METRIC_USER + 2).sum == 100);
	plumb_user_metric("", 1);
	plumb_user_metric("most", INT64_MAX);
	plumb_user_metric("most", INT64_MAX);
	CHECK(values(PLUMB_METRIC_USER + 4).sum == INT64_MAX);
	plumb_user_metric("least", INT64_MIN);
	plumb_user_metric("least", INT64_MIN);
	CHECK(values(PLUMB_METRIC_USER + 5).sum == -INT64_MAX);
	free(copy);
	for (int i = 6; i < 100; i++) {
		snprintf(name, sizeof name, "m %d", i);
		plumb_user_metric(name, 1);
	}
	CHECK(tally(PLUMB_SOURCE_METRIC, PLUMB_FATE_OVERFLOWED) == 100 - PLUMB_USER_METRICS_MAX);
	CHECK(tally(PLUMB_SOURCE_METRIC, PLUMB_FATE_ATTRIBUTED) ==
	      tally(PLUMB_SOURCE_METRIC, PLUMB_FATE_RECEIVED) - (100 - PLUMB_USER_METRICS_MAX));
	return 0;
}

static void *
count_up(void *data)
{
	(void)data;
	for (int i = 0; i < 16000; i++) {
		char name[16];
		snprintf(name, sizeof name, "metric %d", i % 16);
		plumb_user_metric(name, 1);
	}
	return NULL;
}

/* Threads that name the same metrics at the same time lose nothing. */
static int
case_metrics_of_threads(void)
{
	pthread_t threads[8];
	uint64_t sum = 0;
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, count_up, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < PLUMB_USER_METRICS_MAX; i++)
		sum += (uint64_t)values(PLUMB_METRIC_USER + i).sum;
	CHECK(sum + tally(PLUMB_SOURCE_METRIC, PLUMB_FATE_OVERFLOWED) == 8 * 16000);
	return 0;
}

/* ---- events ---- */

static int told[PLUMB_MONITOR_CALLBACKS + 1];
static _Atomic int mixed_up;

static void
on_event(const struct plumb_monitor_event *event, void *data)
{
	(*(int *)data)++;
	if (!event->name || event->size != sizeof *event)
		mixed_up++;
}

static int
case_registering(void)
{
	uint32_t operators = 1u << PLUMB_MONITOR_OPERATOR;
	int handles[PLUMB_MONITOR_CALLBACKS];
	CHECK(plumb_monitor_register(0, on_event, told) == PLUMB_MONITOR_EARGUMENT);
	CHECK(plumb_monitor_register(operators, NULL, told) == PLUMB_MONITOR_EARGUMENT);
	CHECK(plumb_monitor_register(1u << PLUMB_MONITOR_KINDS, on_event, told) ==
	      PLUMB_MONITOR_EARGUMENT);
	for (int i = 0; i < PLUMB_MONITOR_CALLBACKS; i++)
		CHECK((handles[i] = plumb_monitor_register(operators, on_event, &told[i])) > 0);
	CHECK(plumb_monitor_register(operators, on_event, told) == PLUMB_MONITOR_EFULL);
	operator_end(operator_begin("op"));
	for (int i = 0; i < PLUMB_MONITOR_CALLBACKS; i++)
		CHECK(told[i] == 2);
	CHECK(plumb_monitor_unregister(handles[3]) == 0);
	CHECK(plumb_monitor_unregister(handles[3]) == PLUMB_MONITOR_EARGUMENT);
	CHECK(plumb_monitor_unregister(0) == PLUMB_MONITOR_EARGUMENT);
	CHECK(plumb_monitor_unregister(1000) == PLUMB_MONITOR_EARGUMENT);
	plumb_ranges_push(NULL, "nobody asked for ranges", NULL);
	operator_end(operator_begin("op"));
	plumb_ranges_pop(NULL);
	CHECK(told[3] == 2 && told[4] == 4);
	plumb_monitor_finalize();
	CHECK(!plumb_events);
	operator_end(operator_begin("op"));
	CHECK(told[4] == 4 && !mixed_up);
	return 0;
}

static struct plumb_monitor_event seen;
static struct plumb_monitor_frame seen_frames[8];
static size_t seen_count;

static void
keep_event(const struct plumb_monitor_event *event, void *data)
{
	if (event->phase == PLUMB_MONITOR_END)
		return;
	seen = *event;
	seen_count = plumb_monitor_path(*(uint32_t *)data, seen_frames, sizeof *seen_frames, 8);
	plumb_ranges_push(NULL, "what a callback does itself", NULL);
	plumb_ranges_pop(NULL);
}

static int
case_event_contents(void)
{
	uint32_t layers = PLUMB_MONITOR_ALL_LAYERS;
	struct {
		uint32_t kind;
		uint32_t guard;
	} small[2] = { { 0, 77 }, { 0, 78 } };
	CHECK(plumb_monitor_register((1u << PLUMB_MONITOR_KINDS) - 1, keep_event, &layers) > 0);
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	struct plumb_operator op = { .name = "aten::mul", .sequence = 12, .shape_bytes = 10 };
	CHECK(plumb_shape_of(thread, NULL));
	memcpy(plumb_shape_room(thread->shapes), "float32[2] and more", 19);
	struct plumb_ticket *outer = plumb_operator_enter(thread, &op);
	CHECK(seen.kind == PLUMB_MONITOR_OPERATOR && !strcmp(seen.name, "aten::mul"));
	CHECK(seen.sequence == 12 && !strcmp(seen.shapes, "float32[2]") && seen.time_ns);
	CHECK(seen.address == PLUMB_MONITOR_UNKNOWN && seen.bytes == PLUMB_MONITOR_UNKNOWN);
	CHECK(seen_count == 1 && !strcmp(seen_frames[0].name, "aten::mul"));
	op = (struct plumb_operator){ .name = "Torch-Compiled Region: 0/0", .sequence = -1 };
	struct plumb_ticket *inner = plumb_operator_enter(thread, &op);
	CHECK(seen.kind == PLUMB_MONITOR_COMPILED && seen_count == 2 && !seen.shapes);
	/* As the memory shim tells of a tensor: at the current context. */
	struct plumb_monitor_event tensor = PLUMB_EVENT(TENSOR_ALLOC, AT);
	tensor.name = "cuda";
	tensor.device = 1;
	tensor.address = 4096;
	tensor.bytes = 64;
	CHECK(plumb_event_wanted(PLUMB_MONITOR_TENSOR_ALLOC));
	plumb_event_emit(thread, 0, &tensor);
	CHECK(seen.kind == PLUMB_MONITOR_TENSOR_ALLOC && seen.bytes == 64 && seen.device == 1);
	CHECK(seen_count == 2 && !strcmp(seen_frames[1].name, "Torch-Compiled Region: 0/0"));
	plumb_operator_exit(thread, inner);
	plumb_operator_exit(thread, outer);
	plumb_leave(thread);
	/* Outside of callbacks, and into an older, smaller structure. */
	plumb_ranges_push(NULL, "range", NULL);
	CHECK(plumb_monitor_path(layers, (void *)small, sizeof small[0], 2) == 1);
	CHECK(small[0].kind == PLUMB_FRAME_RANGE && small[1].guard == 78);
	CHECK(plumb_monitor_path(layers, NULL, 0, 5) == 1);
	CHECK(plumb_monitor_path(PLUMB_MONITOR_LAYER_PYTHON, seen_frames, sizeof *seen_frames, 8) ==
	      0);
	plumb_ranges_pop(NULL);
	CHECK(plumb_monitor_path(layers, seen_frames, sizeof *seen_frames, 8) == 0);
	CHECK(tally(PLUMB_SOURCE_RANGE, PLUMB_FATE_RECEIVED) == 1);
	return 0;
}

static _Atomic bool stop;

static void
pair_event(const struct plumb_monitor_event *event, void *data)
{
	(void)event;
	if (*(int *)data != 1)
		mixed_up++;
}
static void
other_pair_event(const struct plumb_monitor_event *event, void *data)
{
	(void)event;
	if (*(int *)data != 2)
		mixed_up++;
}

static void *
come_and_go(void *data)
{
	static int one = 1, two = 2;
	(void)data;
	while (!stop) {
		uint32_t operators = 1u << PLUMB_MONITOR_OPERATOR;
		int a = plumb_monitor_register(operators, pair_event, &one);
		int b = plumb_monitor_register(operators, other_pair_event, &two);
		plumb_monitor_unregister(a);
		plumb_monitor_unregister(b);
	}
	return NULL;
}

/* Tools come and go while operators run: nobody's function gets somebody else's data. */
static int
case_come_and_go(void)
{
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, come_and_go, NULL);
	for (int i = 0; i < 200000; i++)
		operator_end(operator_begin("op"));
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(!mixed_up && !plumb_events);
	return 0;
}

/* Without `plumb run`: nothing is recorded until a tool asks, and then into memory. */
static int
case_alone(void)
{
	struct plumb_monitor_options options = { .size = sizeof options, .memory = 8 << 20 };
	CHECK(!plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER));
	CHECK(plumb_monitor_version() >= PLUMB_MONITOR_VERSION);
	CHECK(plumb_monitor_path(PLUMB_MONITOR_ALL_LAYERS, seen_frames, sizeof *seen_frames, 8) ==
	      0);
	CHECK(plumb_monitor_init(&(struct plumb_monitor_options){ .size = 1 }) ==
	      PLUMB_MONITOR_EARGUMENT);
	CHECK(plumb_monitor_init(&options) == 0);
	CHECK(plumb_monitor_init(NULL) == 0); /* another tool */
	plumb_ranges_push(&domain_a, "range", NULL);
	CHECK(path_is("A/range"));
	CHECK(plumb_region_of_process()->header->size == 8 << 20);
	CHECK(plumb_monitor_path(PLUMB_MONITOR_ALL_LAYERS, seen_frames, sizeof *seen_frames, 8) ==
	      1);
	CHECK(!strcmp(seen_frames[0].name, "A/range") && !seen_frames[0].file);
	plumb_ranges_pop(&domain_a);
	CHECK(getenv("NVTX_INJECTION64_PATH") && getenv("CUDA_INJECTION64_PATH"));
	return 0;
}

/* A forked child's ids are its own. */
static int
case_forked(void)
{
	uint64_t id = plumb_ranges_start(NULL, "parent's", NULL, 0);
	plumb_user_metric("parent's", 1);
	pid_t child = fork();
	if (!child) {
		plumb_ranges_end(id);
		plumb_user_metric("parent's", 1);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	plumb_ranges_end(id);
	CHECK(!status && values(PLUMB_METRIC_OP_DURATION).count == 1);
	CHECK(values(PLUMB_METRIC_USER).sum == 1);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
	bool alone; /* without a folder */
} cases[] = {
	{ "overlap", case_overlap, false },
	{ "self-times", case_self_times, false },
	{ "operator-inside", case_operator_inside, false },
	{ "tickets", case_tickets, false },
	{ "not-recorded", case_not_recorded, false },
	{ "named", case_named, false },
	{ "threads", case_threads, false },
	{ "started", case_started, false },
	{ "started-full", case_started_full, false },
	{ "payloads", case_payloads, false },
	{ "long-names", case_long_names, false },
	{ "metrics", case_metrics, false },
	{ "metrics-of-threads", case_metrics_of_threads, false },
	{ "registering", case_registering, false },
	{ "event-contents", case_event_contents, false },
	{ "come-and-go", case_come_and_go, false },
	{ "alone", case_alone, true },
	{ "forked", case_forked, false },
	{ "remembered", case_remembered, false },
	{ "further-names", case_further_names, false },
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- the tests ---- */

static void
run_case(size_t i)
{
	char folder[] = "/tmp/plumb-range-XXXXXX", command[64];
	int status;
	assert_non_null(mkdtemp(folder));
	pid_t child = fork();
	if (!child) {
		if (!cases[i].alone)
			setenv(PLUMB_ENV_FOLDER, folder, 1);
		setenv(PLUMB_ENV_LIMIT, "64000000", 1);
		setenv(PLUMB_ENV_LAYERS, "7", 1); /* PLUMB_LAYERS_LIGHT: no native frames */
		execl("/proc/self/exe", "test_range", cases[i].name, (char *)NULL);
		_exit(99);
	}
	waitpid(child, &status, 0);
	if (cases[i].alone) /* nothing was written */
		assert_int_equal(rmdir(folder), 0);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
	if (status)
		fail_msg("%s ended with status %#x", cases[i].name, status);
}

#define CASE(name, number)                                                                         \
	static void name(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		run_case(number);                                                                  \
	}
CASE(domains_close_their_own, 0)
CASE(self_times_add_up, 1)
CASE(a_range_closed_inside_an_operator, 2)
CASE(tickets_come_back, 3)
CASE(what_is_not_recorded_ends_nothing, 4)
CASE(closed_by_name, 5)
CASE(threads_that_leave_ranges_open, 6)
CASE(started_here_ended_there, 7)
CASE(more_started_than_there_is_room_for, 8)
CASE(payloads_at_the_ends_of_the_scale, 9)
CASE(long_names_are_cut, 10)
CASE(metrics_of_the_program, 11)
CASE(metrics_named_by_many_threads, 12)
CASE(registering_for_events, 13)
CASE(what_an_event_says, 14)
CASE(tools_come_and_go, 15)
CASE(a_tool_alone, 16)
CASE(forked_children, 17)
CASE(what_is_remembered_of_a_name, 18)
CASE(further_names_are_counted, 19)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(domains_close_their_own),
		cmocka_unit_test(self_times_add_up),
		cmocka_unit_test(a_range_closed_inside_an_operator),
		cmocka_unit_test(tickets_come_back),
		cmocka_unit_test(what_is_not_recorded_ends_nothing),
		cmocka_unit_test(closed_by_name),
		cmocka_unit_test(threads_that_leave_ranges_open),
		cmocka_unit_test(started_here_ended_there),
		cmocka_unit_test(more_started_than_there_is_room_for),
		cmocka_unit_test(payloads_at_the_ends_of_the_scale),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(metrics_of_the_program),
		cmocka_unit_test(metrics_named_by_many_threads),
		cmocka_unit_test(registering_for_events),
		cmocka_unit_test(what_an_event_says),
		cmocka_unit_test(tools_come_and_go),
		cmocka_unit_test(a_tool_alone),
		cmocka_unit_test(forked_children),
		cmocka_unit_test(what_is_remembered_of_a_name),
		cmocka_unit_test(further_names_are_counted),
	};
	if (argc > 1) {
		alarm(120);
		for (size_t i = 0; i < CASES; i++)
			if (!strcmp(argv[1], cases[i].name))
				return cases[i].run();
		return 98;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
