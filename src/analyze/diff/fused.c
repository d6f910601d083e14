/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that one side has and the other fuses into a kernel of compiled code. What such a
 * kernel was made from its origins tell, in a profile that plumb recorded; else its name, which
 * Inductor makes of the operators' names (triton_poi_fused_add_relu_0). A name that merely holds
 * the operator's is taken at its word, so the figure is what these kernels take in all, not the
 * operator's part.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diff/diff_private.h"
#include "analyze/diff/names.h"
#include "analyze/group.h"
#include "model/framework/framework.h"
#include "model/fused.h"
#include "model/metric.h"

struct fused {
	const char *name; /* of the kernel, or of the operator that stands for it */
	double amount;    /* of an iteration */
	char *parts;      /* bases of operators, each between two underscores */
};

typedef PLUMB_VEC(struct fused) fused_list;

/* "_add_relu_" of triton_poi_fused_add_relu_0; NULL: the name tells nothing. Malloced. */
static char *
parts_of_name(const char *name, bool *failed)
{
	const char *from = plumb_framework_fused(name);
	char *parts;

	if (!from)
		return NULL;
	parts = strdup(from);
	*failed |= !parts;
	if (!parts)
		return NULL;
	size_t bytes = strlen(parts);
	while (bytes && isdigit((unsigned char)parts[bytes - 1]))
		parts[--bytes] = '\0';
	return parts;
}

static bool
add_part(char **parts, const char *base)
{
	size_t used = *parts ? strlen(*parts) : 0, bytes = strlen(base);
	char *grown = realloc(*parts, used + bytes + 3);

	if (!grown)
		return false;
	if (!used)
		grown[used++] = '_';
	memcpy(grown + used, base, bytes);
	memcpy(grown + used + bytes, "_", 2);
	*parts = grown;
	return true;
}

/* What the origins of the context say; NULL: nothing. */
static bool
parts_of_origins(const struct plumb_profile *p, uint32_t context, char **parts)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < p->origins_count; i++) {
		char base[256];
		uint32_t op;

		if (p->origins[i].context != context ||
		    p->origins[i].reason != PLUMB_ORIGIN_OF_FUSED)
			continue;
		op = plumb_fused_part(p, p->origins[i].origin, NULL).op;
		if (op != PLUMB_NONE)
			ok = add_part(parts, plumb_operator_base(plumb_frame_label(p, op), base,
			                                         sizeof base));
	}
	return ok;
}

static struct fused *
fused_of(fused_list *list, const char *name)
{
	struct fused *f;

	for (uint32_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].name, name))
			return &list->items[i];
	f = plumb_vec_add(list);
	if (f)
		f->name = name;
	return f;
}

/* The fused kernels of a run, with what they take of METRIC. */
static bool
find_kernels(const struct diff_run *run, uint32_t metric, double runs, fused_list *list)
{
	const struct plumb_profile *p = run->profile;
	unsigned char *origin = calloc(p->contexts_count + (size_t)1, 1);
	bool ok = origin, failed = false;

	for (uint32_t i = 0; ok && i < p->origins_count; i++)
		if (p->origins[i].reason == PLUMB_ORIGIN_OF_FUSED)
			origin[p->origins[i].context] = 1;
	for (uint32_t i = 0; ok && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t frame = p->contexts[v->context].frame;
		const char *name = plumb_frame_label(p, frame);
		bool named = plumb_framework_fused(name) != NULL;

		if (v->metric != metric || p->frames[frame].kind != PLUMB_FRAME_KERNEL ||
		    (!origin[v->context] && !named))
			continue;
		struct fused *f = fused_of(list, name);
		ok = f;
		if (!ok)
			break;
		f->amount += (double)v->sum / run->per / runs;
		if (!f->parts && origin[v->context])
			ok = parts_of_origins(p, v->context, &f->parts);
		if (!f->parts)
			f->parts = parts_of_name(name, &failed);
	}
	free(origin);
	return ok && !failed;
}

/* Is the operator of this base one of PARTS? A name with underscores may begin with some. */
static bool
has_base(const char *parts, const char *base)
{
	size_t bytes = strlen(base);

	for (const char *at = parts; bytes && (at = strstr(at, base)); at++)
		if (at > parts && at[-1] == '_' && at[bytes] == '_')
			return true;
	return false;
}

static bool
look_up(const fused_list *list, struct plumb_diff_row *row)
{
	char base[256];
	bool ok = true;

	plumb_operator_base(row->name, base, sizeof base);
	for (uint32_t i = 0; ok && i < list->count; i++) {
		const struct fused *f = &list->items[i];

		if (!f->parts || !has_base(f->parts, base))
			continue;
		size_t used = row->fused_in ? strlen(row->fused_in) : 0, bytes = strlen(f->name);
		char *grown = realloc(row->fused_in, used + bytes + 3);
		ok = grown;
		if (!ok)
			break;
		if (used) {
			memcpy(grown + used, ", ", 2);
			used += 2;
		}
		memcpy(grown + used, f->name, bytes + 1);
		row->fused_in = grown;
		row->fused_amount += f->amount;
	}
	return ok;
}

static bool
is_lacking(double amount)
{
	return isnan(amount) || amount == 0;
}

int
diff_fused_find(const struct plumb_diff *diff, const char *metric, struct plumb_diff_table *table)
{
	fused_list sides[2] = { 0 };
	bool ok = true;

	if (diff->options.by != PLUMB_BY_OPERATOR)
		return 0;
	for (uint32_t r = 0; ok && r < diff->count; r++) {
		bool after = r >= diff->before;
		uint32_t number = plumb_profile_metric_find(diff->runs[r].profile, metric);

		if (number && plumb_metric_aggregation(number) == PLUMB_SUM)
			ok = find_kernels(&diff->runs[r], number,
			                  after ? diff->count - diff->before : diff->before,
			                  &sides[after]);
	}
	for (uint32_t i = 0; ok && i < table->count; i++) {
		struct plumb_diff_row *row = &table->rows[i];

		if (is_lacking(row->amount.after))
			ok = look_up(&sides[1], row);
		else if (is_lacking(row->amount.before))
			ok = look_up(&sides[0], row);
	}
	for (int s = 0; s < 2; s++) {
		for (uint32_t i = 0; i < sides[s].count; i++)
			free(sides[s].items[i].parts);
		plumb_vec_free(&sides[s]);
	}
	return ok ? 0 : PLUMB_ESYSTEM;
}
