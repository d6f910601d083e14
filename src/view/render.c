/* SPDX-License-Identifier: Apache-2.0 */
#include "view/render.h"

#include "base/csv.h"

struct plumb_json *
plumb_view_json_new(FILE *out, const char *verb)
{
	struct plumb_json *json = plumb_json_new(out);

	plumb_json_object(json);
	plumb_json_key_quantity(json, "schema", 1);
	plumb_json_key_text(json, "verb", verb);
	return json;
}

int
plumb_view_answer(const struct plumb_answer *answer, enum plumb_view_format format, FILE *out,
                  struct plumb_error *error)
{
	struct plumb_json *json;

	if (format == PLUMB_VIEW_COLUMNS)
		return plumb_view_answer_columns(answer, out, error);
	if (format == PLUMB_VIEW_CSV) {
		plumb_view_answer_csv(answer, out);
	} else {
		json = plumb_json_new(out);
		plumb_view_answer_json(answer, json);
		if (plumb_json_finish(json) < 0)
			return plumb_fail(error, PLUMB_ESYSTEM, "the answer cannot be written");
	}
	return ferror(out) ? plumb_fail(error, PLUMB_ESYSTEM, "the answer cannot be written") : 0;
}

void
plumb_view_answers_csv(const struct plumb_answer *answers, uint32_t count, FILE *out)
{
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			fputc('\n', out);
		if (count > 1) {
			fprintf(out, "%s,", answers[i].id);
			plumb_csv_put(out, answers[i].title);
			fputc('\n', out);
		}
		plumb_view_answer_csv(&answers[i], out);
	}
}

int
plumb_view_answers(const struct plumb_answer *answers, uint32_t count, const char *verb,
                   enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_json *json;
	int code = 0;

	for (uint32_t i = 0; !code && format == PLUMB_VIEW_COLUMNS && i < count; i++)
		code = plumb_view_answer_columns(&answers[i], out, error);
	if (format == PLUMB_VIEW_CSV)
		plumb_view_answers_csv(answers, count, out);
	if (format == PLUMB_VIEW_JSON) {
		json = plumb_view_json_new(out, verb);
		plumb_json_key_array(json, "tables");
		for (uint32_t i = 0; i < count; i++)
			plumb_view_answer_json(&answers[i], json);
		plumb_json_end(json);
		plumb_json_end(json);
		code = plumb_json_finish(json);
	}
	if (code || ferror(out))
		return plumb_fail(error, PLUMB_ESYSTEM, "the answer cannot be written");
	return 0;
}
