/* SPDX-License-Identifier: Apache-2.0 */
/* plumb why as a table: a row for each cause of each stall. */
#include <math.h>

#include "view/view.h"

static void
add_place(struct plumb_answer *answer, const struct plumb_kernel_code *code, uint32_t function,
          int64_t offset)
{
	const struct plumb_profile *p = code->profile;
	uint32_t count;
	const struct plumb_code_line *line =
		plumb_code_lines_at(p, code->rows[function], offset, &count);

	plumb_answer_integer(answer, offset);
	plumb_answer_text(answer, line ? plumb_text(p, line->file) : NULL);
	plumb_answer_integer(answer, line && line->line ? line->line : PLUMB_UNKNOWN);
}

static void
add_no_place(struct plumb_answer *answer)
{
	plumb_answer_integer(answer, PLUMB_UNKNOWN);
	plumb_answer_text(answer, NULL);
	plumb_answer_integer(answer, PLUMB_UNKNOWN);
}

static void
add_cause(struct plumb_answer *answer, const struct plumb_why_kernel *k,
          const struct plumb_stall_cause *c)
{
	plumb_answer_text(answer, c ? plumb_cause_kind_names[c->kind] : NULL);
	plumb_answer_text(answer, c && c->named ? c->named->id : NULL);
	if (c && c->has_place)
		add_place(answer, &k->code, c->place.function,
		          plumb_kernel_insn(&k->code, c->place)->offset);
	else
		add_no_place(answer);
	plumb_answer_number(answer, c ? c->share : NAN);
	plumb_answer_integer(answer, c ? (int64_t)c->samples : PLUMB_UNKNOWN);
	plumb_answer_number(answer, c ? c->confidence : NAN);
	plumb_answer_integer(answer, c && c->ambiguity ? c->ambiguity : PLUMB_UNKNOWN);
	plumb_answer_integer(answer, c ? plumb_why_saving(k, c->saving) : PLUMB_UNKNOWN);
	plumb_answer_text(answer, c && *c->evidence ? c->evidence : NULL);
}

static void
add_row(struct plumb_answer *answer, const struct plumb_why *why, const struct plumb_why_kernel *k,
        const struct plumb_why_stall *s, const struct plumb_stall_cause *c)
{
	const struct plumb_profile *p = why->profile;
	uint32_t device = k->kernel->device;

	plumb_answer_text(answer, k->name);
	plumb_answer_text(answer, device < p->devices_count ? plumb_text(p, p->devices[device].name)
	                                                    : NULL);
	plumb_answer_text(answer, plumb_sampling_names[k->kernel->sampling]);
	add_place(answer, &k->code, s->function, s->offset);
	plumb_answer_text(answer, plumb_kernel_reason_word(&k->code, s->reason));
	plumb_answer_text(answer, plumb_stall_class_names[s->class]);
	plumb_answer_integer(answer, (int64_t)s->samples);
	plumb_answer_integer(answer, (int64_t)s->hidden);
	plumb_answer_number(answer, k->waiting ? (double)s->samples / (double)k->waiting : NAN);
	add_cause(answer, k, c);
}

static int
make_rows(const struct plumb_why *why, struct plumb_answer *answer, struct plumb_error *error)
{
	static const struct {
		const char *name, *unit;
		enum plumb_answer_source source;
	} columns[] = {
		{ "kernel", NULL, PLUMB_SOURCE_IS_MEASURED },
		{ "device", NULL, PLUMB_SOURCE_IS_MEASURED },
		{ "mode", NULL, PLUMB_SOURCE_IS_MEASURED },
		{ "offset", "byte", PLUMB_SOURCE_IS_MEASURED },
		{ "file", NULL, PLUMB_SOURCE_IS_MEASURED },
		{ "line", NULL, PLUMB_SOURCE_IS_MEASURED },
		{ "reason", NULL, PLUMB_SOURCE_IS_MEASURED },
		{ "class", NULL, PLUMB_SOURCE_IS_MEASURED },
		{ "samples", "count", PLUMB_SOURCE_IS_MEASURED },
		{ "hidden", "count", PLUMB_SOURCE_IS_MEASURED },
		{ "share", NULL, PLUMB_SOURCE_IS_MEASURED },
		{ "cause", NULL, PLUMB_SOURCE_IS_DERIVED },
		{ "cause_id", NULL, PLUMB_SOURCE_IS_DERIVED },
		{ "cause_offset", "byte", PLUMB_SOURCE_IS_DERIVED },
		{ "cause_file", NULL, PLUMB_SOURCE_IS_DERIVED },
		{ "cause_line", NULL, PLUMB_SOURCE_IS_DERIVED },
		{ "cause_share", NULL, PLUMB_SOURCE_IS_DERIVED },
		{ "cause_samples", "count", PLUMB_SOURCE_IS_DERIVED },
		{ "confidence", NULL, PLUMB_SOURCE_IS_DERIVED },
		{ "ambiguity", NULL, PLUMB_SOURCE_IS_DERIVED },
		{ "saving_ns", "ns", PLUMB_SOURCE_IS_DERIVED },
		{ "evidence", NULL, PLUMB_SOURCE_IS_DERIVED },
	};

	*answer = (struct plumb_answer){ .id = "why", .title = "stalls and their causes" };
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		plumb_answer_column(answer, columns[i].name, columns[i].unit, columns[i].source);
	for (uint32_t i = 0; i < why->count; i++) {
		const struct plumb_why_kernel *k = &why->kernels[i];

		for (uint32_t s = 0; s < k->stall_count; s++) {
			const struct plumb_stall *from = k->stalls[s].from;

			for (uint32_t c = 0; from && c < from->cause_count; c++)
				add_row(answer, why, k, &k->stalls[s], &from->causes[c]);
			if (!from || !from->cause_count)
				add_row(answer, why, k, &k->stalls[s], NULL);
		}
	}
	return plumb_answer_end(answer, error);
}

int
plumb_why_write(const struct plumb_why *why, enum plumb_view_format format, FILE *out,
                struct plumb_error *error)
{
	struct plumb_answer answer;
	struct plumb_json *json;
	int code;

	if (format == PLUMB_VIEW_JSON) {
		json = plumb_view_json_new(out, "why");
		plumb_why_json(why, json);
		plumb_json_end(json);
		if (plumb_json_finish(json) < 0 || ferror(out))
			return plumb_fail(error, PLUMB_ESYSTEM, "the answer cannot be written");
		return 0;
	}
	code = make_rows(why, &answer, error);
	if (code)
		return code;
	code = plumb_view_answer(&answer, format, out, error);
	plumb_answer_free(&answer);
	return code;
}

int
plumb_view_why(const struct plumb_profile *profile, const struct plumb_why_query *query,
               enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_why why;
	int code = plumb_why_make(profile, query, &why, error);

	if (code)
		return code;
	code = plumb_why_write(&why, format, out, error);
	plumb_why_free(&why);
	return code;
}
