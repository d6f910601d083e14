/* SPDX-License-Identifier: Apache-2.0 */
#include "view/render.h"

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
