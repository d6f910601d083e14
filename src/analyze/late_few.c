/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/late_few.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/format.h"
#include "base/search.h"

#define FEW_MOST 0.25  /* of the steps: more are not few */
#define FEW_HOLD 0.8   /* of the waiting: the few steps have at least this */
#define FEW_LEAST 0.25 /* of the wait in the worst step: each of the few has at least this */

/* How long all ranks together wait for the late ones in each step. NULL: out of memory. */
static double *
waits_by_step(const struct plumb_late *l)
{
	double *waited = calloc((size_t)l->ends.count + 1, sizeof *waited);

	for (uint32_t i = 0; waited && i < l->waits.sets.count; i++) {
		const struct plumb_rank_set *set = &l->waits.sets.items[i];
		uint32_t step = plumb_search(k, l->ends.count, l->ends.items[k] < set->end_ns);

		if (set->pair || !plumb_late_has(l, set) || !l->late[set->last] ||
		    step >= l->ends.count)
			continue;
		for (uint32_t k = 0; k < set->wait_count; k++)
			waited[step] += (double)l->waits.waits.items[set->first_wait + k].ns;
	}
	return waited;
}

bool
plumb_late_find_few(const struct plumb_late *l, uint32_t count, struct plumb_late_few *few)
{
	double *waited = waits_by_step(l);
	double most = 0, sum = 0, held = 0;

	*few = (struct plumb_late_few){ 0 };
	if (!waited)
		return false;
	for (uint32_t i = 0; i < l->ends.count; i++) {
		most = fmax(most, waited[i]);
		sum += waited[i];
	}
	for (uint32_t i = 0; i < l->ends.count; i++)
		if (waited[i] > 0 && waited[i] >= FEW_LEAST * most) {
			held += waited[i];
			few->steps++;
		}
	few->ns = few->steps ? held / few->steps / (l->taking_part - count) : 0;
	if (held < FEW_HOLD * sum || few->steps > FEW_MOST * l->ends.count)
		few->steps = 0;
	free(waited);
	return true;
}

const char *
plumb_late_name_few(const struct plumb_late *l, const struct plumb_late_few *few, char *text,
                    size_t size)
{
	char wait[PLUMB_FORMAT_SIZE];

	snprintf(text, size, "in %" PRIu32 " of %" PRIu32 " steps, %s%s,", few->steps,
	         l->ends.count, plumb_format_time(wait, llround(few->ns)),
	         few->steps == 1 ? "" : " each");
	return text;
}
