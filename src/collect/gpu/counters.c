/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/gpu/counters.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/hash.h"
#include "collect/comm/comm.h"
#include "collect/table.h"
#include "collect/thread.h"
#include "collect/user_metric.h"

#define PLACES 65536u      /* kernels at contexts that are told apart; a power of two */
#define PROBES 16u         /* places that are looked at for one */
#define FREE_NS 500000000u /* that counting may take in any case */

/* How often a kernel was launched at a context, and how many of these launches were counted. */
struct place {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint32_t launches, counted;
};

static struct place *places; /* PLACES of them */
static uint64_t kernels[PLUMB_COUNTERS_KERNELS_MOST];
static unsigned kernels_count;
static char without[512], refusal[400];
static _Atomic int refused; /* 0 no, 1 being written, 2 to be told, 3 told */
static _Atomic unsigned passes;
static _Atomic unsigned untimed;            /* counted launches of which the record has not come */
static _Atomic uint64_t begun_ns, spent_ns; /* the first launch, and the time of all counted ones */
static _Atomic bool without_set;
static bool told;

/* ---- what is asked for ---- */

/* Hashes of names, in hexadecimal digits and separated by commas: names of C++ can be long. */
static void
read_kernels(const char *text)
{
	kernels_count = 0;
	while (*text && kernels_count < PLUMB_COUNTERS_KERNELS_MOST) {
		char *end;
		kernels[kernels_count] = strtoull(text, &end, 16);
		if (end == text)
			return;
		kernels_count++;
		text = end + (*end == ',');
	}
}

bool
plumb_gpu_counters_begin(void)
{
	if (!plumb_collector_options()->counters[0])
		return false;
	if (!places) {
		read_kernels(plumb_collector_options()->counters_kernels);
		places = plumb_map(PLACES * sizeof *places, false);
	}
	if (!places)
		plumb_gpu_counters_refuse("kernels are not counted: there is not enough memory");
	return places;
}

void
plumb_gpu_counters_refuse(const char *why)
{
	int none = 0;
	if (!atomic_compare_exchange_strong(&refused, &none, 1))
		return;
	snprintf(refusal, sizeof refusal, "%s", why);
	atomic_store(&refused, 2);
}

void
plumb_gpu_counters_passes(unsigned number)
{
	atomic_store(&passes, number);
}

/* ---- plans ---- */

static void
leave_out(const char *name, size_t length)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* contexts of several threads */
	pthread_mutex_lock(&lock);
	size_t used = strlen(without);
	if (used + length + 3 <= sizeof without && !atomic_load(&without_set))
		snprintf(without + used, sizeof without - used, "%s%.*s", used ? ", " : "",
		         (int)length, name);
	pthread_mutex_unlock(&lock);
}

/* The number of the metric NAME in PLAN, added if it is not there; -1: no room. */
static int
metric_of(struct plumb_gpu_counters_plan *plan, const char *name, size_t length)
{
	for (unsigned i = 0; i < plan->metrics; i++)
		if (!strncmp(plan->names[i], name, length) && !plan->names[i][length])
			return (int)i;
	if (plan->metrics == PLUMB_COUNTERS_TERMS_MOST ||
	    !(plan->names[plan->metrics] = strndup(name, length)))
		return -1;
	return (int)plan->metrics++;
}

bool
plumb_gpu_counters_plan_add(struct plumb_gpu_counters_plan *plan, const char *name, size_t length,
                            const char *unit, const char *expression)
{
	struct plumb_counter_term term;
	unsigned number = plan->counters;
	if (number == PLUMB_COUNTERS_MOST || length >= sizeof plan->each->name)
		return false;
	for (unsigned i = 0; i < number; i++)
		if (!strncmp(plan->each[i].name, name, length) && !plan->each[i].name[length])
			return true; /* asked for twice */
	memcpy(plan->each[number].name, name, length);
	plan->each[number].unit = unit;
	plan->counters++;
	while (plumb_counter_term(&expression, &term)) {
		int metric = metric_of(plan, term.name, term.length);
		if (metric < 0 || plan->terms == PLUMB_COUNTERS_TERMS_MOST) {
			plan->each[number].dropped = true;
			return false;
		}
		plan->term[plan->terms].counter = number;
		plan->term[plan->terms].metric = (unsigned)metric;
		plan->term[plan->terms++].factor = term.factor;
	}
	return true;
}

static void
add_counter(struct plumb_gpu_counters_plan *plan, const char *name, size_t length, const char *unit,
            const char *expression)
{
	if (!plumb_gpu_counters_plan_add(plan, name, length, unit, expression))
		leave_out(name, length);
}

static void
add_ours(struct plumb_gpu_counters_plan *plan, const struct plumb_counter *counter,
         enum plumb_counter_family family)
{
	if (family < PLUMB_COUNTER_FAMILIES && counter->expressions[family])
		add_counter(plan, counter->name, strlen(counter->name), counter->unit,
		            counter->expressions[family]);
	else
		leave_out(counter->name, strlen(counter->name));
}

bool
plumb_gpu_counters_plan(struct plumb_gpu_counters_plan *plan, const char *chip)
{
	enum plumb_counter_family family = plumb_counter_family(chip);
	const char *at = plumb_collector_options()->counters, *name;
	size_t length;
	memset(plan, 0, sizeof *plan);
	while (plumb_counter_listed(&at, &name, &length)) {
		const struct plumb_counter *counter = plumb_counter_find(name, length);
		char own[sizeof plan->each->name];
		if (length == strlen(PLUMB_COUNTERS_ROOFLINE) &&
		    !memcmp(name, PLUMB_COUNTERS_ROOFLINE, length)) {
			for (counter = plumb_counters; counter->name; counter++)
				if (counter->roofline)
					add_ours(plan, counter, family);
		} else if (counter) {
			add_ours(plan, counter, family);
		} else if (length < sizeof own) {
			snprintf(own, sizeof own, "%.*s", (int)length, name);
			add_counter(plan, name, length, NULL, own);
		} else {
			leave_out(name, length);
		}
	}
	return plan->counters;
}

void
plumb_gpu_counters_drop(struct plumb_gpu_counters_plan *plan, unsigned number)
{
	for (unsigned i = 0; i < plan->terms; i++) {
		__typeof__(&plan->each[0]) counter = &plan->each[plan->term[i].counter];
		if (plan->term[i].metric != number || counter->dropped)
			continue;
		counter->dropped = true;
		leave_out(counter->name, strlen(counter->name));
	}
}

bool
plumb_gpu_counters_pack(struct plumb_gpu_counters_plan *plan)
{
	unsigned kept = 0, terms = 0, moved[PLUMB_COUNTERS_TERMS_MOST];
	for (unsigned m = 0; m < plan->metrics; m++) {
		bool used = false;
		for (unsigned i = 0; i < plan->terms && !used; i++)
			used = plan->term[i].metric == m &&
			       !plan->each[plan->term[i].counter].dropped;
		moved[m] = kept;
		if (used)
			plan->names[kept++] = plan->names[m];
		else
			free(plan->names[m]);
	}
	plan->metrics = kept;
	for (unsigned i = 0; i < plan->terms; i++) {
		if (plan->each[plan->term[i].counter].dropped)
			continue;
		plan->term[terms] = plan->term[i];
		plan->term[terms].metric = moved[plan->term[terms].metric];
		terms++;
	}
	plan->terms = terms;
	if (without[0])
		atomic_store(&without_set, true);
	return kept;
}

void
plumb_gpu_counters_sum(const struct plumb_gpu_counters_plan *plan, const double *values,
                       double *sums)
{
	memset(sums, 0, PLUMB_COUNTERS_MOST * sizeof *sums);
	for (unsigned i = 0; i < plan->terms; i++)
		sums[plan->term[i].counter] += plan->term[i].factor * values[plan->term[i].metric];
}

void
plumb_gpu_counters_plan_free(struct plumb_gpu_counters_plan *plan)
{
	for (unsigned i = 0; i < plan->metrics; i++)
		free(plan->names[i]);
	plan->metrics = plan->terms = plan->counters = 0;
}

/* ---- the filter ---- */

static bool
is_wanted(uint64_t hash)
{
	for (unsigned i = 0; i < kernels_count; i++)
		if (kernels[i] == hash)
			return true;
	return !kernels_count;
}

/* The place of KEY, which has one launch more; NULL: there are more kinds than places. */
static struct place *
place_of(uint64_t key)
{
	key += !key;
	for (unsigned i = 0; i < PROBES; i++) {
		struct place *place = &places[(key + i) & (PLACES - 1)];
		uint64_t held = atomic_load_explicit(&place->key, memory_order_relaxed);
		if (!held && atomic_compare_exchange_strong(&place->key, &held, key))
			held = key;
		if (held != key)
			continue;
		atomic_fetch_add_explicit(&place->launches, 1, memory_order_relaxed);
		return place;
	}
	return NULL;
}

/* Is this the first launch, the second, the fourth, and so on? If one was passed over, the next one
 * after it takes its place. */
static bool
is_next(const struct place *place)
{
	uint32_t counted = atomic_load_explicit(&place->counted, memory_order_relaxed);
	uint32_t next = counted < 32 ? 1u << counted : UINT32_MAX;
	return next <= plumb_collector_options()->counters_launches &&
	       atomic_load_explicit(&place->launches, memory_order_relaxed) >= next;
}

/* Counting may take (N - 1) times the time of the rest, so that the run takes N times as long. Half
 * of it is kept back: the rest is slower, too, as it is recorded and waits for counted launches. Of
 * the other half, kernels that were counted before take half at most, so that every kernel gets its
 * turn. Half a second is free, or a short program would tell next to nothing. */
static bool
is_affordable(uint64_t now, bool first)
{
	unsigned cost = plumb_collector_options()->counters_cost;
	uint64_t none = 0, spent = atomic_load(&spent_ns);
	atomic_compare_exchange_strong(&begun_ns, &none, now);
	uint64_t all = now - (none ? none : now), rest = all > spent ? all - spent : 0;
	return !cost || spent < FREE_NS || spent <= (cost - 1) * rest / (first ? 2 : 4);
}

void
plumb_gpu_counters_spent(uint64_t ns)
{
	atomic_fetch_add(&spent_ns, ns);
}

bool
plumb_gpu_counters_untimed(void)
{
	unsigned now = atomic_load_explicit(&untimed, memory_order_relaxed);
	while (now && !atomic_compare_exchange_weak(&untimed, &now, now - 1))
		;
	return now;
}

enum plumb_fate
plumb_gpu_counters_choose(struct plumb_thread *thread, struct plumb_gpu_counted *launch,
                          plumb_id node, const char *kernel)
{
	if (atomic_load(&refused))
		return PLUMB_FATE_NOT_COUNTED;
	if (!kernel || plumb_comm_is_kernel(kernel))
		return PLUMB_FATE_NO_REPLAY;
	if (!node || node == PLUMB_LOST)
		return PLUMB_FATE_REGION_FULL;
	uint64_t hash = plumb_hash_bytes(kernel, strlen(kernel));
	if (!is_wanted(hash))
		return PLUMB_FATE_NOT_HOT;
	struct place *of_kernel = place_of(hash);
	struct place *place = place_of(plumb_hash_mix(hash, node));
	if (!of_kernel || !place)
		return PLUMB_FATE_OVERFLOWED;
	if (!is_next(place))
		return PLUMB_FATE_ENOUGH;
	if (!is_affordable(plumb_clock_ns(), !atomic_load(&of_kernel->counted)))
		return PLUMB_FATE_TOO_SLOW;
	atomic_fetch_add(&of_kernel->counted, 1);
	atomic_fetch_add(&place->counted, 1);
	atomic_fetch_add(&untimed, 1);
	launch->node = node;
	launch->kernel = plumb_intern(thread, kernel, strlen(kernel));
	launch->track = plumb_thread_track(thread);
	return launch->kernel ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_REGION_FULL;
}

void
plumb_gpu_counters_left(struct plumb_thread *thread, enum plumb_fate fate)
{
	plumb_count(thread, PLUMB_SOURCE_COUNTER, PLUMB_FATE_RECEIVED, 1);
	plumb_count(thread, PLUMB_SOURCE_COUNTER, fate, 1);
}

/* ---- the reading thread ---- */

void
plumb_gpu_counters_add(struct plumb_thread *thread, const struct plumb_gpu_counters_plan *plan,
                       const struct plumb_gpu_counted *launch, const double *values)
{
	const struct plumb_record_string *name =
		plumb_region_at(plumb_region_of_process(), launch->kernel);
	struct plumb_key key = {
		.kind = PLUMB_FRAME_KERNEL,
		.name = plumb_intern(thread, (const char *)(name + 1), name->bytes),
	};
	plumb_id node = plumb_child(thread, launch->node, &key);
	if (node == PLUMB_LOST) {
		plumb_gpu_counters_left(thread, plumb_thread_arena(thread)->fate);
		return;
	}
	double sums[PLUMB_COUNTERS_MOST];
	bool known = false;
	plumb_gpu_counters_sum(plan, values, sums);
	for (unsigned i = 0; i < plan->counters; i++) {
		/* What is unknown is left out, never 0; 2^63 would not be a whole number. */
		if (plan->each[i].dropped || !(fabs(sums[i]) < 0x1p62))
			continue;
		known |= plumb_user_metric_at(thread, node, launch->track, plan->each[i].name,
		                              plan->each[i].unit,
		                              (int64_t)(sums[i] + (sums[i] < 0 ? -0.5 : 0.5)));
	}
	plumb_gpu_counters_left(thread, known ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_CUPTI_DROPPED);
}

void
plumb_gpu_counters_tell(struct plumb_thread *thread)
{
	char text[32];
	int pending = 2;
	if (!places && !atomic_load(&refused))
		return;
	if (!told && atomic_load(&passes)) {
		told = true;
		plumb_environment(thread, "gpu.counters", plumb_collector_options()->counters);
		snprintf(text, sizeof text, "%u", atomic_load(&passes));
		plumb_environment(thread, "gpu.counters.passes", text);
		if (atomic_load(&without_set))
			plumb_environment(thread, "gpu.counters.without", without);
	}
	if (atomic_compare_exchange_strong(&refused, &pending, 3))
		plumb_environment(thread, "gpu.counters.off", refusal);
}

void
plumb_gpu_counters_renew(void)
{
	if (places)
		munmap(places, PLACES * sizeof *places);
	places = NULL;
	without[0] = '\0';
	atomic_store(&without_set, false);
	atomic_store(&refused, 0);
	atomic_store(&passes, 0);
	atomic_store(&begun_ns, 0);
	atomic_store(&spent_ns, 0);
	atomic_store(&untimed, 0);
	told = false;
}
