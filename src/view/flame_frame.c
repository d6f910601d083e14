/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One node in detail. Nodes of the view know no contexts, so the tree of the contexts is made again
 * and kept: those of its nodes whose path is that of the node are its places.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/metric.h"
#include "model/user_code.h"
#include "view/findings.h"
#include "view/flame_private.h"
#include "view/report.h"
#include "view/report_from.h"

#define MOST_PATH 4096 /* names of a path */
#define MOST_STACKS 64 /* origins */

/* What a node of the base is to the node that is asked for. */
enum {
	IN = 1,    /* its values are in the total */
	OWN = 2,   /* and in what the node holds itself */
	PLACE = 4, /* it is shown as the node */
};

struct detail {
	struct plumb_flame *flame;
	const struct plumb_profile *profile;
	uint32_t node;
	struct plumb_json *json;
	uint32_t *path; /* nodes of the flame graph, the outermost first */
	uint32_t length;
	unsigned char *is; /* by node of the base */
	/* By slot of metrics. */
	struct plumb_stat *self, *total;
};

/* ---- the base ---- */

void
plumb_flame_base_free(struct plumb_flame_base *base)
{
	plumb_flame_tree_free(&base->tree);
	free(base->owner);
	free(base->user_code);
	free(base->user);
	free(base->user_of);
	*base = (struct plumb_flame_base){ 0 };
}

static int
find_user(struct plumb_flame *f, const char *rule, struct plumb_error *error)
{
	struct plumb_flame_base *base = &f->base;
	unsigned char *user;
	uint32_t *user_of;
	char *copy = rule ? strdup(rule) : NULL;

	if (base->user && (rule == base->user_code ||
	                   (rule && base->user_code && !strcmp(rule, base->user_code)))) {
		free(copy);
		return 0;
	}
	user = plumb_user_code_frames(f->profile, rule, error);
	user_of = user ? plumb_user_contexts(f->profile, user) : NULL;
	if (!user_of || (rule && !copy)) {
		int code = user ? plumb_fail_memory(error, "for the flame graph") : error->code;

		free(user);
		free(user_of);
		free(copy);
		return code;
	}
	free(base->user);
	free(base->user_of);
	free(base->user_code);
	base->user = user;
	base->user_of = user_of;
	base->user_code = copy;
	return 0;
}

static int
find_base(struct plumb_flame *f, struct plumb_error *error)
{
	struct plumb_flame_tree tree;
	uint32_t *owner;
	int code;

	if (f->base.owner)
		return 0;
	owner = malloc((f->profile->contexts_count + (size_t)1) * sizeof *owner);
	if (!owner)
		return plumb_fail_memory(error, "for the flame graph");
	code = plumb_flame_make_base(f, &tree, owner, error);
	if (code) {
		plumb_flame_tree_free(&tree);
		free(owner);
		return code;
	}
	free(tree.slots);
	tree.slots = NULL;
	f->base.tree = tree;
	f->base.owner = owner;
	return 0;
}

/* ---- which nodes of the base are meant ---- */

/* Is NODE as step number STEP of the path has it? */
static bool
is_step(const struct detail *d, const struct plumb_flame_node *node, uint32_t step)
{
	const struct plumb_flame *f = d->flame;

	if (step >= d->length || f->frame[d->path[step]] != node->frame)
		return false;
	return f->query.view == PLUMB_FLAME_CALLEES || f->marks[d->path[step]] == node->marks;
}

/* From callers to what they call. AT: how many steps of the path end at a node; PLUMB_NONE: it is
 * beside the path; 0: outside of the view. */
static void
mark_down(struct detail *d, uint32_t *at)
{
	const struct plumb_flame_node *nodes = d->flame->base.tree.nodes;
	bool callees = d->flame->query.view == PLUMB_FLAME_CALLEES;

	d->is[0] = callees || d->length ? 0 : IN | OWN;
	for (uint32_t n = 1; n < d->flame->base.tree.count; n++) {
		uint32_t parent = nodes[n].parent, before = at[parent];
		bool begins = callees ? !before && nodes[n].frame == d->flame->query.of : !parent;

		if (!before && !begins)
			continue;
		at[n] = is_step(d, &nodes[n], begins ? 0 : before) ? before + 1 : PLUMB_NONE;
		d->is[n] = d->is[parent] & IN;
		if (begins && !d->length)
			d->is[n] = IN;
		if (d->length && at[n] == d->length)
			d->is[n] = IN | OWN | PLACE;
	}
}

/* The path of a caller's view, from node N of the base outwards. Returns the place, or
 * PLUMB_NONE. */
static uint32_t
walk_out(const struct detail *d, uint32_t n)
{
	const struct plumb_flame_node *nodes = d->flame->base.tree.nodes;
	uint32_t place = n;

	for (uint32_t i = 0; i < d->length; i++) {
		place = i ? nodes[place].parent : n;
		if (!place || nodes[place].frame != d->flame->frame[d->path[i]])
			return PLUMB_NONE;
	}
	return place;
}

static void
mark_up(struct detail *d, unsigned char *inside)
{
	const struct plumb_flame_node *nodes = d->flame->base.tree.nodes;
	bool callers = d->flame->query.view == PLUMB_FLAME_CALLERS;
	uint32_t of = d->flame->query.of;

	if (!callers && !d->length)
		d->is[0] = IN | OWN;
	for (uint32_t n = 1; n < d->flame->base.tree.count; n++) {
		uint32_t parent = nodes[n].parent, place;
		bool above = inside[parent];

		inside[n] = above || nodes[n].frame == of;
		if (callers && above)
			d->is[n] |= d->is[parent] & (IN | OWN);
		if (callers && (above || nodes[n].frame != of))
			continue;
		place = walk_out(d, n);
		if (place == PLUMB_NONE)
			continue;
		d->is[n] |= IN | (d->length && !nodes[place].parent ? OWN : 0);
		if (d->length)
			d->is[place] |= PLACE;
	}
}

static bool
mark_base(struct detail *d)
{
	uint32_t count = d->flame->base.tree.count;
	enum plumb_flame_view view = d->flame->query.view;
	void *scratch = calloc(count, sizeof(uint32_t));

	d->is = calloc(count, 1);
	if (!d->is || !scratch) {
		free(scratch);
		return false;
	}
	if (view == PLUMB_FLAME_UP || view == PLUMB_FLAME_CALLERS)
		mark_up(d, scratch);
	else
		mark_down(d, scratch);
	free(scratch);
	return true;
}

/* What the node is to the values of CONTEXT. */
static unsigned
part_of(const struct detail *d, uint32_t context)
{
	return context < d->profile->contexts_count ? d->is[d->flame->base.owner[context]] : 0;
}

static bool
add_values(struct detail *d)
{
	const struct plumb_profile *p = d->profile;
	uint32_t slots = plumb_metric_slots(p);

	d->self = calloc(slots, sizeof *d->self);
	d->total = calloc(slots, sizeof *d->total);
	for (uint32_t i = 0; d->self && d->total && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		unsigned is = plumb_flame_wants(p, &d->flame->query, v->track)
		                      ? part_of(d, v->context)
		                      : 0;
		struct plumb_stat stat = plumb_value_stat(v);

		if (is & IN)
			plumb_stat_merge(&d->total[plumb_metric_slot(v->metric)], &stat);
		if (is & OWN)
			plumb_stat_merge(&d->self[plumb_metric_slot(v->metric)], &stat);
	}
	return d->self && d->total;
}

/* ---- JSON ---- */

static void
write_values(struct detail *d)
{
	struct plumb_json *json = d->json;

	plumb_json_key_array(json, "values");
	for (uint32_t s = 0; s < plumb_metric_slots(d->profile); s++) {
		const struct plumb_stat *total = &d->total[s], *self = &d->self[s];
		uint32_t metric = plumb_metric_at(s);
		struct plumb_metric_info info = plumb_profile_metric(d->profile, metric);
		bool adds = plumb_metric_aggregation(metric) == PLUMB_SUM;

		if (!total->count || !info.name)
			continue;
		plumb_json_object(json);
		plumb_json_key_text(json, "metric", info.name);
		plumb_json_key_text(json, "unit", info.unit);
		plumb_json_key_quantity(json, "self",
		                        !adds         ? PLUMB_UNKNOWN
		                        : self->count ? self->sum
		                                      : 0);
		plumb_json_key_quantity(json, "total", adds ? total->sum : PLUMB_UNKNOWN);
		plumb_json_key(json, "count");
		plumb_json_unsigned(json, total->count);
		plumb_json_key_number(json, "mean", total->mean);
		plumb_json_key_quantity(json, "min",
		                        total->max == PLUMB_UNKNOWN ? PLUMB_UNKNOWN : total->min);
		plumb_json_key_quantity(json, "max", total->max);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_path(struct detail *d)
{
	char text[PLUMB_FLAME_LABEL_SIZE];
	uint32_t first = d->length > MOST_PATH ? d->length - MOST_PATH : 0;

	plumb_json_key_array(d->json, "path");
	for (uint32_t i = first; i < d->length; i++)
		plumb_json_text(d->json, plumb_flame_label(d->flame, d->path[i], text));
	plumb_json_end(d->json);
	plumb_json_key_quantity(d->json, "path_left_out", first);
}

static void
write_findings(struct detail *d)
{
	plumb_json_key_array(d->json, "findings");
	for (uint32_t i = 0; i < d->profile->findings_count; i++)
		if (part_of(d, d->profile->findings[i].context) & PLACE)
			plumb_finding_json(d->profile, i, d->json);
	plumb_json_end(d->json);
}

/* The frames around an origin, the outermost first. */
static void
write_stack(struct detail *d, uint32_t context)
{
	const struct plumb_profile *p = d->profile;
	uint32_t length = p->contexts[context].depth,
		 left = length > MOST_PATH ? MOST_PATH : length;
	uint32_t *stack = calloc(left + 1u, sizeof *stack);

	plumb_json_key_array(d->json, "stack");
	for (uint32_t i = left; stack && i-- > 0; context = p->contexts[context].parent)
		stack[i] = context;
	for (uint32_t i = 0; stack && i < left; i++) {
		const struct plumb_frame *f = plumb_context_frame(p, stack[i]);
		bool python = f->kind == PLUMB_FRAME_PYTHON;

		plumb_json_object(d->json);
		plumb_json_key_text(d->json, "name",
		                    plumb_frame_label(p, p->contexts[stack[i]].frame));
		plumb_json_key_text(d->json, "file",
		                    plumb_text(p, python ? f->file : f->source_file));
		plumb_json_key_line(d->json, "line", python ? f->line : f->source_line);
		plumb_json_end(d->json);
	}
	plumb_json_end(d->json);
	free(stack);
}

static const char *
name_reason(uint32_t reason)
{
	return reason == PLUMB_ORIGIN_OF_BACKWARD_CALL   ? "backward_call"
	       : reason == PLUMB_ORIGIN_OF_GRAPH_CAPTURE ? "graph_capture"
	       : reason == PLUMB_ORIGIN_OF_FUSED         ? "fused"
	                                                 : "inlined";
}

/* What the node was made from (FUSED), or what else explains it; each origin once. */
static void
write_origins(struct detail *d, bool fused)
{
	const struct plumb_profile *p = d->profile;
	uint32_t count = 0, written[MOST_STACKS];

	for (uint32_t i = 0; i < p->origins_count && count < MOST_STACKS; i++) {
		const struct plumb_origin *o = &p->origins[i];
		struct plumb_fused_part part;
		bool twice = false;

		if ((o->reason == PLUMB_ORIGIN_OF_FUSED) != fused ||
		    !(part_of(d, o->context) & PLACE))
			continue;
		for (uint32_t k = 0; k < count; k++)
			twice |= written[k] == o->origin;
		if (twice)
			continue;
		written[count++] = o->origin;
		part = plumb_fused_part(p, o->origin, d->flame->base.user);
		plumb_json_object(d->json);
		plumb_json_key_text(d->json, "reason", name_reason(o->reason));
		plumb_json_key_text(d->json, "operator",
		                    part.op == PLUMB_NONE ? NULL : plumb_frame_label(p, part.op));
		write_stack(d, o->origin);
		plumb_json_end(d->json);
	}
}

static void
write_place(struct detail *d)
{
	const struct plumb_flame *f = d->flame;
	uint32_t frame = f->frame[d->node];
	bool known = frame < d->profile->frames_count;
	struct plumb_report report = { .profile = d->profile,
		                       .user = f->base.user,
		                       .user_of = f->base.user_of };
	struct plumb_report_place place = { 0 };
	char text[PLUMB_FLAME_LABEL_SIZE];

	if (known)
		plumb_report_context_place(&report, f->context[d->node], &place);
	plumb_json_key_quantity(d->json, "node", d->node);
	plumb_json_key_quantity(d->json, "frame", known ? (int64_t)frame : PLUMB_UNKNOWN);
	plumb_json_key_text(d->json, "name", plumb_flame_label(f, d->node, text));
	plumb_json_key_text(d->json, "kind", place.kind);
	plumb_json_key_quantity(
		d->json, "layer",
		known ? (int64_t)plumb_flame_layer_of(d->profile->frames[frame].kind)
		      : PLUMB_FLAME_OTHER);
	plumb_json_key_text(d->json, "function", place.name);
	plumb_json_key_text(d->json, "file", place.source_file ? place.source_file : place.file);
	plumb_json_key_line(d->json, "line", place.source_file ? place.source_line : place.line);
	plumb_json_key_text(d->json, "library", place.library);
	plumb_json_key_object(d->json, "user");
	plumb_json_key_text(d->json, "file", place.user_file);
	plumb_json_key_line(d->json, "line", place.user_line);
	plumb_json_key_text(d->json, "function", place.user_function);
	plumb_json_end(d->json);
}

static int
write_detail(struct detail *d, FILE *out)
{
	d->json = plumb_json_new(out);
	plumb_json_object(d->json);
	write_place(d);
	write_values(d);
	write_path(d);
	write_findings(d);
	plumb_json_key_array(d->json, "from");
	write_origins(d, true);
	plumb_json_end(d->json);
	plumb_json_key_object(d->json, "links");
	plumb_json_key_array(d->json, "origins");
	write_origins(d, false);
	plumb_json_end(d->json);
	plumb_json_end(d->json);
	plumb_json_end(d->json);
	return plumb_json_finish(d->json);
}

static bool
find_path(struct detail *d)
{
	const struct plumb_flame *f = d->flame;

	for (uint32_t n = d->node; n; n = f->parent[n])
		d->length++;
	d->path = malloc(d->length * sizeof *d->path + 1);
	if (!d->path)
		return false;
	for (uint32_t n = d->node, i = d->length; n; n = f->parent[n])
		d->path[--i] = n;
	return true;
}

int
plumb_flame_frame(struct plumb_flame *flame, uint32_t node, const char *user_code, FILE *out,
                  struct plumb_error *error)
{
	struct detail d = { .flame = flame, .profile = flame->profile, .node = node };
	struct plumb_error unread;
	int code;

	error = error ? error : &unread;
	if (node >= flame->count)
		return plumb_fail(error, PLUMB_EUSAGE, "the flame graph has no node %u", node);
	code = find_base(flame, error);
	if (!code)
		code = find_user(flame, user_code, error);
	if (!code && (!find_path(&d) || !mark_base(&d) || !add_values(&d)))
		code = plumb_fail_memory(error, "for the flame graph");
	if (!code && write_detail(&d, out) < 0)
		code = plumb_fail(error, PLUMB_ESYSTEM, "the answer cannot be written");
	free(d.path);
	free(d.is);
	free(d.self);
	free(d.total);
	return code;
}
