/* SPDX-License-Identifier: Apache-2.0 */
#include "view/cost.h"

#include <math.h>

#include "analyze/cost.h"
#include "view/view.h"

static struct plumb_cost_answer
measured(const struct plumb_profile *p)
{
	struct plumb_cost_answer a = { .tried = true, .cost = p->costs[0] };

	a.why = plumb_text(p, a.cost.why);
	if (isfinite(a.cost.ratio) && a.cost.ratio > 0 && a.cost.plain_ns != PLUMB_UNKNOWN &&
	    a.cost.recorded_ns != PLUMB_UNKNOWN)
		a.kind = PLUMB_COST_MEASURED;
	else if (!a.why)
		a.why = "the profile does not say why";
	return a;
}

static struct plumb_cost_answer
estimated(const struct plumb_profile *p)
{
	struct plumb_cost_answer a = { .cost = plumb_cost_unknown() };
	struct plumb_cost_estimate *e = &a.parts;
	struct plumb_error error;

	a.cost.scope = PLUMB_COST_OF_STEP;
	if (p->window.kind) {
		a.why = "it is estimated for the whole run";
		return a;
	}
	if (plumb_cost_estimate_find(p, e, &error) < 0) {
		a.why = "it could not be computed";
		return a;
	}
	a.why = e->why;
	a.cost.process = e->process;
	if (!e->is_known)
		return a;
	a.kind = PLUMB_COST_ESTIMATED;
	a.hidden = e->is_hidden;
	a.cost.steps = e->steps;
	a.cost.recorded_ns = llround(e->step_ns);
	a.cost.plain_ns = llround(e->step_ns - e->cost_ns);
	a.cost.ratio = e->step_ns / (e->step_ns - e->cost_ns);
	return a;
}

struct plumb_cost_answer
plumb_cost_answer(const struct plumb_profile *p)
{
	return p->costs_count ? measured(p) : estimated(p);
}

/* ---- JSON ---- */

/* What an estimate adds up, ns for a step. */
static void
json_parts(const struct plumb_cost_estimate *e, struct plumb_json *json)
{
	if (!e) {
		plumb_json_key(json, "parts");
		plumb_json_null(json);
		return;
	}
	plumb_json_key_object(json, "parts");
	plumb_json_key_number(json, "plumb_ns", e->own_ns);
	plumb_json_key_number(json, "framework_ns", e->framework_ns);
	plumb_json_key_number(json, "driver_ns", e->driver_ns);
	plumb_json_key_number(json, "gpu_ns", e->gpu_ns);
	plumb_json_end(json);
}

void
plumb_cost_json(const struct plumb_profile *p, struct plumb_json *json)
{
	static const char *const kinds[] = { NULL, "estimate", "measured" };
	static const char *const scopes[] = { NULL, "run", "step" };
	struct plumb_cost_answer a = plumb_cost_answer(p);
	bool known = a.kind != PLUMB_COST_UNKNOWN;

	plumb_json_key_object(json, "cost");
	plumb_json_key_text(json, "kind", kinds[a.kind]);
	plumb_json_key_text(json, "scope", known ? scopes[a.cost.scope] : NULL);
	plumb_json_key_quantity(json, "recorded_ns", a.cost.recorded_ns);
	plumb_json_key_quantity(json, "plain_ns", a.cost.plain_ns);
	plumb_json_key_number(json, "ratio", a.cost.ratio);
	plumb_json_key_number(json, "low", a.cost.low);
	plumb_json_key_number(json, "high", a.cost.high);
	plumb_json_key_quantity(json, "pairs", a.cost.pairs);
	plumb_json_key_quantity(json, "steps", a.cost.steps);
	plumb_json_key_quantity(json, "process",
	                        a.cost.process == PLUMB_NONE ? PLUMB_UNKNOWN : a.cost.process);
	plumb_json_key(json, "hidden");
	if (a.kind == PLUMB_COST_ESTIMATED)
		plumb_json_bool(json, a.hidden);
	else
		plumb_json_null(json);
	plumb_json_key_text(json, "why", a.why);
	json_parts(a.kind == PLUMB_COST_ESTIMATED ? &a.parts : NULL, json);
	plumb_json_end(json);
}
