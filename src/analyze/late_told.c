/* SPDX-License-Identifier: Apache-2.0 */
/* In which collective the most is waited for late ranks, as the communication library tells. */
#include "analyze/late_told.h"

#include <stdlib.h>

#include "base/format.h"

struct told {
	const struct plumb_collective *row;
	int64_t waited_ns;
};

#define ORDER(a, b, field)                                                                         \
	if ((a)->field != (b)->field)                                                              \
	return (a)->field < (b)->field ? -1 : 1

/* By what the row is of, not by when it was. */
static int
by_kind(const void *x, const void *y)
{
	const struct told *a = x, *b = y;

	ORDER(a, b, row->group);
	ORDER(a, b, row->operation);
	ORDER(a, b, row->bytes);
	ORDER(a, b, row->datatype);
	ORDER(a, b, row->algorithm);
	ORDER(a, b, row->protocol);
	return 0;
}

/* The row that the library told of SET, NULL: it did not. */
static const struct plumb_collective *
row_of(const struct plumb_late *l, const struct plumb_rank_set *set)
{
	const struct plumb_collectives *all = &l->waits.together;
	uint32_t row = all->members.items[all->sets.items[set->set].first].row;
	const struct plumb_collective *found =
		row == PLUMB_NONE ? NULL : &l->study->profile->collectives[row];

	return found && found->operation != PLUMB_NONE ? found : NULL;
}

bool
plumb_late_find_told(const struct plumb_late *l, const struct plumb_collective **found)
{
	PLUMB_VEC(struct told) told = { 0 };
	int64_t most = -1;

	*found = NULL;
	for (uint32_t i = 0; i < l->waits.sets.count; i++) {
		const struct plumb_rank_set *set = &l->waits.sets.items[i];
		const struct plumb_collective *row = row_of(l, set);
		struct told *added;

		if (!row || set->pair || !plumb_late_has(l, set) || !l->late[set->last])
			continue;
		added = plumb_vec_add(&told);
		if (!added) {
			plumb_vec_free(&told);
			return false;
		}
		added->row = row;
		for (uint32_t k = 0; k < set->wait_count; k++)
			added->waited_ns = plumb_add(added->waited_ns,
			                             l->waits.waits.items[set->first_wait + k].ns);
	}
	if (told.count)
		qsort(told.items, told.count, sizeof *told.items, by_kind);
	for (uint32_t i = 0, n; i < told.count; i += n) {
		int64_t sum = told.items[i].waited_ns;

		for (n = 1; i + n < told.count && !by_kind(&told.items[i], &told.items[i + n]); n++)
			sum = plumb_add(sum, told.items[i + n].waited_ns);
		if (sum > most) {
			most = sum;
			*found = told.items[i].row;
		}
	}
	plumb_vec_free(&told);
	return true;
}

void
plumb_late_write_told(const struct plumb_profile *p, const struct plumb_collective *row,
                      struct plumb_json *json)
{
	plumb_json_key_text(json, "group", plumb_text(p, row->group));
	plumb_json_key_text(json, "group_operation", plumb_text(p, row->operation));
	plumb_json_key_quantity(json, "bytes", row->bytes);
	plumb_json_key_text(json, "datatype", plumb_text(p, row->datatype));
	plumb_json_key_text(json, "algorithm", plumb_text(p, row->algorithm));
	plumb_json_key_text(json, "protocol", plumb_text(p, row->protocol));
}

const char *
plumb_late_name_told(const struct plumb_profile *p, const struct plumb_collective *row, char *text,
                     size_t size)
{
	char bytes[PLUMB_FORMAT_SIZE];
	const char *group = row ? plumb_text(p, row->group) : NULL;

	*text = '\0';
	if (row)
		snprintf(text, size, " Most of the waiting is in %s of %s%s%s.",
		         plumb_text(p, row->operation), plumb_format_bytes(bytes, row->bytes),
		         group ? " in the group " : "", group ? group : "");
	return text;
}
