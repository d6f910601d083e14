/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One node in detail. Nodes of the view know no contexts, but the flame graph has the tree of the
 * contexts: those of its nodes whose path is that of the node are its places.
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
	uint32_t node;
	struct plumb_json *json;
	uint32_t *path; /* nodes of the flame graph, the outermost first */
	uint32_t length;
	unsigned char *is; /* by node of the base */
	/* By side, then by slot of metrics. */
	struct plumb_stat *self[PLUMB_FLAME_SIDES], *total[PLUMB_FLAME_SIDES];
};

/* ---- your code ---- */

/* Makes what RULE says of the frames and contexts of SIDE. */
static int
find_user_of(struct plumb_flame *f, uint32_t side, const char *rule, struct plumb_error *error)
{
	const struct plumb_profile *p = f->sides[side].profile;
	unsigned char *user = plumb_user_code_frames(p, rule, error);
	uint32_t *user_of = user ? plumb_user_contexts(p, user) : NULL;

	if (!user_of) {
		int code = user ? plumb_fail_memory(error, "for the flame graph") : error->code;

		free(user);
		return code;
	}
	free(f->base->user[side]);
	free(f->base->user_of[side]);
	f->base->user[side] = user;
	f->base->user_of[side] = user_of;
	return 0;
}

static int
find_user(struct plumb_flame *f, const char *rule, struct plumb_error *error)
{
	struct plumb_flame_base *base = f->base;
	char *copy;
	int code = 0;

	if (base->user[0] && (rule == base->user_code ||
	                      (rule && base->user_code && !strcmp(rule, base->user_code))))
		return 0;
	copy = rule ? strdup(rule) : NULL;
	if (rule && !copy)
		return plumb_fail_memory(error, "for the flame graph");
	for (uint32_t s = 0; !code && s < f->side_count; s++)
		code = find_user_of(f, s, rule, error);
	if (code) {
		free(copy);
		/* Half of it may be new. */
		free(base->user[0]);
		base->user[0] = NULL;
		return code;
	}
	free(base->user_code);
	base->user_code = copy;
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
	const struct plumb_flame_node *nodes = d->flame->base->tree.nodes;
	bool callees = d->flame->query.view == PLUMB_FLAME_CALLEES;

	d->is[0] = callees || d->length ? 0 : IN | OWN;
	for (uint32_t n = 1; n < d->flame->base->tree.count; n++) {
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
	const struct plumb_flame_node *nodes = d->flame->base->tree.nodes;
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
	const struct plumb_flame_node *nodes = d->flame->base->tree.nodes;
	bool callers = d->flame->query.view == PLUMB_FLAME_CALLERS;
	uint32_t of = d->flame->query.of;

	if (!callers && !d->length)
		d->is[0] = IN | OWN;
	for (uint32_t n = 1; n < d->flame->base->tree.count; n++) {
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
	uint32_t count = d->flame->base->tree.count;
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

/* What the node is to the values of CONTEXT of SIDE. */
static unsigned
part_of(const struct detail *d, uint32_t side, uint32_t context)
{
	const struct plumb_flame *f = d->flame;

	return context < f->sides[side].profile->contexts_count
	               ? d->is[f->base->owner[side][context]]
	               : 0;
}

static bool
add_values(struct detail *d, uint32_t side)
{
	const struct plumb_profile *p = d->flame->sides[side].profile;
	uint32_t slots = plumb_metric_slots(p);
	struct plumb_stat *self = calloc(slots, sizeof *self),
			  *total = calloc(slots, sizeof *total);

	d->self[side] = self;
	d->total[side] = total;
	for (uint32_t i = 0; self && total && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		unsigned is = plumb_flame_wants(p, &d->flame->query, v->track)
		                      ? part_of(d, side, v->context)
		                      : 0;
		struct plumb_stat stat = plumb_value_stat(v);

		if (is & IN)
			plumb_stat_merge(&total[plumb_metric_slot(v->metric)], &stat);
		if (is & OWN)
			plumb_stat_merge(&self[plumb_metric_slot(v->metric)], &stat);
	}
	return self && total;
}

/* ---- JSON ---- */

static void
write_values(struct detail *d, const char *key, uint32_t side)
{
	const struct plumb_profile *p = d->flame->sides[side].profile;
	struct plumb_json *json = d->json;

	plumb_json_key_array(json, key);
	for (uint32_t s = 0; s < plumb_metric_slots(p); s++) {
		const struct plumb_stat *total = &d->total[side][s], *self = &d->self[side][s];
		uint32_t metric = plumb_metric_at(s);
		struct plumb_metric_info info = plumb_profile_metric(p, metric);
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
	for (uint32_t s = 0; s < d->flame->side_count; s++) {
		const struct plumb_profile *p = d->flame->sides[s].profile;

		for (uint32_t i = 0; i < p->findings_count; i++)
			if (part_of(d, s, p->findings[i].context) & PLACE)
				plumb_finding_json(p, i, d->json);
	}
	plumb_json_end(d->json);
}

/* The frames around an origin, the outermost first. */
static void
write_stack(struct detail *d, const struct plumb_profile *p, uint32_t context)
{
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
write_origins_of(struct detail *d, uint32_t side, bool fused)
{
	const struct plumb_profile *p = d->flame->sides[side].profile;
	uint32_t count = 0, written[MOST_STACKS];

	for (uint32_t i = 0; i < p->origins_count && count < MOST_STACKS; i++) {
		const struct plumb_origin *o = &p->origins[i];
		struct plumb_fused_part part;
		bool twice = false;

		if ((o->reason == PLUMB_ORIGIN_OF_FUSED) != fused ||
		    !(part_of(d, side, o->context) & PLACE))
			continue;
		for (uint32_t k = 0; k < count; k++)
			twice |= written[k] == o->origin;
		if (twice)
			continue;
		written[count++] = o->origin;
		part = plumb_fused_part(p, o->origin, d->flame->base->user[side]);
		plumb_json_object(d->json);
		plumb_json_key_text(d->json, "reason", name_reason(o->reason));
		plumb_json_key_text(d->json, "operator",
		                    part.op == PLUMB_NONE ? NULL : plumb_frame_label(p, part.op));
		write_stack(d, p, o->origin);
		plumb_json_end(d->json);
	}
}

static void
write_origins(struct detail *d, bool fused)
{
	for (uint32_t s = 0; s < d->flame->side_count; s++)
		write_origins_of(d, s, fused);
}

/* The first context that is shown as the node, and its side; PLUMB_NONE: it is of no context. */
static uint32_t
find_context(const struct detail *d, uint32_t *side)
{
	const struct plumb_flame *f = d->flame;

	*side = 0;
	if (f->side_count == 1)
		return f->context[d->node];
	for (; *side < f->side_count; ++*side) {
		const struct plumb_flame_side *s = &f->sides[*side];

		for (uint32_t c = 1; c < s->profile->contexts_count; c++)
			if ((part_of(d, *side, c) & PLACE) &&
			    s->frame_of[s->profile->contexts[c].frame] == f->frame[d->node])
				return c;
	}
	*side = 0;
	return PLUMB_NONE;
}

static void
write_place(struct detail *d)
{
	const struct plumb_flame *f = d->flame;
	uint32_t frame = f->frame[d->node], own = frame, side, context = find_context(d, &side);
	const struct plumb_profile *p = plumb_flame_frame_owner(f, &own);
	struct plumb_report report = { .profile = f->sides[side].profile,
		                       .user = f->base->user[side],
		                       .user_of = f->base->user_of[side] };
	struct plumb_report_place place = { 0 };
	char text[PLUMB_FLAME_LABEL_SIZE];

	if (p && context != PLUMB_NONE)
		plumb_report_context_place(&report, context, &place);
	plumb_json_key_quantity(d->json, "node", d->node);
	plumb_json_key_quantity(d->json, "frame", p ? (int64_t)frame : PLUMB_UNKNOWN);
	plumb_json_key_text(d->json, "name", plumb_flame_label(f, d->node, text));
	plumb_json_key_text(d->json, "kind", place.kind);
	plumb_json_key_quantity(d->json, "layer",
	                        p ? (int64_t)plumb_flame_layer_of(p->frames[own].kind)
	                          : PLUMB_FLAME_OTHER);
	plumb_json_key_quantity(d->json, "depth", d->length ? d->length - 1 : PLUMB_UNKNOWN);
	plumb_json_key_number(d->json, "x0", f->start[d->node] / f->width[0]);
	plumb_json_key_number(d->json, "x1", (f->start[d->node] + f->width[d->node]) / f->width[0]);
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
	write_values(d, "values", 0);
	if (d->flame->side_count > 1)
		write_values(d, "before_values", 1);
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
	struct detail d = { .flame = flame, .node = node };
	struct plumb_error unread;
	int code;

	error = error ? error : &unread;
	if (node >= flame->count)
		return plumb_fail(error, PLUMB_EUSAGE, "the flame graph has no node %u", node);
	code = find_user(flame, user_code, error);
	if (!code && (!find_path(&d) || !mark_base(&d)))
		code = plumb_fail_memory(error, "for the flame graph");
	for (uint32_t s = 0; !code && s < flame->side_count; s++)
		if (!add_values(&d, s))
			code = plumb_fail_memory(error, "for the flame graph");
	if (!code && write_detail(&d, out) < 0)
		code = plumb_fail(error, PLUMB_ESYSTEM, "the answer cannot be written");
	free(d.path);
	free(d.is);
	for (uint32_t s = 0; s < PLUMB_FLAME_SIDES; s++) {
		free(d.self[s]);
		free(d.total[s]);
	}
	return code;
}

/* ---- from a context to its node ---- */

/* The child of NODE with FRAME and MARKS; PLUMB_NONE. */
static uint32_t
child_of(const struct plumb_flame *f, uint32_t node, const struct plumb_flame_node *wanted,
         bool marked)
{
	for (uint32_t n = f->child[node]; n < f->child[node + 1]; n++)
		if (f->frame[n] == wanted->frame && (!marked || f->marks[n] == wanted->marks))
			return n;
	return PLUMB_NONE;
}

int
plumb_flame_node_of(struct plumb_flame *f, uint32_t context, uint32_t *node,
                    struct plumb_error *error)
{
	const struct plumb_flame_node *nodes;
	uint32_t length = 0, *path, at, next = 0;
	bool up = f->query.view == PLUMB_FLAME_UP;

	*node = 0;
	if (f->query.view > PLUMB_FLAME_UP || context >= f->profile->contexts_count)
		return 0;
	nodes = f->base->tree.nodes;
	for (at = f->base->owner[0][context]; at; at = nodes[at].parent)
		length++;
	path = malloc(length * sizeof *path + 1);
	if (!path)
		return plumb_fail_memory(error, "for the flame graph");
	at = f->base->owner[0][context];
	for (uint32_t i = 0; i < length; i++, at = nodes[at].parent)
		path[up ? i : length - 1 - i] = at;
	/* Bottom-up, what is below it are its callers. */
	length = up && length ? 1 : length;
	for (uint32_t i = 0; i < length && next != PLUMB_NONE; i++) {
		next = child_of(f, *node, &nodes[path[i]], !up);
		*node = next == PLUMB_NONE ? *node : next;
	}
	free(path);
	return 0;
}
