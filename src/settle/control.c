/* SPDX-License-Identifier: Apache-2.0 */
/* What the control file of a run folder says: how long recording was on, and which processes were
 * left out. */
#include "settle/settle_private.h"

#include <stdio.h>

#include "region/control.h"

/* Processes without a region, which would count them. */
static void
count_process(struct plumb_settler *settler, enum plumb_fate fate, uint32_t count)
{
	if (!count)
		return;
	plumb_builder_ledger(settler->builder, PLUMB_NONE, PLUMB_SOURCE_PROCESS,
	                     PLUMB_FATE_RECEIVED, PLUMB_NONE, count);
	plumb_builder_ledger(settler->builder, PLUMB_NONE, PLUMB_SOURCE_PROCESS, fate, PLUMB_NONE,
	                     count);
}

void
plumb_settle_control(struct plumb_settler *settler, uint32_t folder, const char *path)
{
	struct plumb_settle_run *run = &settler->runs.items[folder];
	struct plumb_control *control = plumb_control_map(path, false);

	if (!control)
		return;
	count_process(settler, PLUMB_FATE_NOT_FOLLOWED, atomic_load(&control->not_followed));
	count_process(settler, PLUMB_FATE_FORKED, atomic_load(&control->forked));
	count_process(settler, PLUMB_FATE_UNLOADABLE, atomic_load(&control->unloadable));
	count_process(settler, PLUMB_FATE_UNREACHABLE, atomic_load(&control->unreachable));
	run->was_off = plumb_control_was_off(control);
	run->recorded = plumb_settle_number(atomic_load(&control->recorded_ns));
	run->since = plumb_settle_number(plumb_control_since(control));
	plumb_control_unmap(control);
}

/* How long recording was on in RUN, which is complete. PLUMB_UNKNOWN: it cannot be known. */
static int64_t
recorded_in(const struct plumb_settle_run *run)
{
	int64_t recorded = run->recorded, last;

	if (!run->was_off)
		return run->start == PLUMB_UNKNOWN || run->end < run->start ? PLUMB_UNKNOWN
		                                                            : run->end - run->start;
	if (recorded == PLUMB_UNKNOWN || run->since == PLUMB_UNKNOWN)
		return PLUMB_UNKNOWN;
	if (!run->since)
		return recorded;
	if (run->end == PLUMB_UNKNOWN || __builtin_sub_overflow(run->end, run->since, &last))
		return PLUMB_UNKNOWN;
	return last > 0 ? plumb_settle_sum(recorded, last) : recorded;
}

void
plumb_settle_recorded(struct plumb_settler *settler)
{
	int64_t most = PLUMB_UNKNOWN;
	bool was_off = false;
	char text[32];

	/* As with the wall time, the longest counts. */
	for (uint32_t i = 0; i < settler->runs.count; i++) {
		int64_t recorded = recorded_in(&settler->runs.items[i]);
		was_off = was_off || settler->runs.items[i].was_off;
		if (recorded > most)
			most = recorded;
	}
	if (!was_off || most == PLUMB_UNKNOWN)
		return;
	snprintf(text, sizeof text, "%lld", (long long)most);
	plumb_builder_environment(settler->builder, PLUMB_NONE, "plumb.recorded_ns", text);
}
