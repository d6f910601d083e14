/* SPDX-License-Identifier: Apache-2.0 */
/* plumb iters --explain N for people. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/format.h"
#include "cli/iters/iters.h"
#include "cli/table.h"

#define ROWS_TEXT 12

void
plumb_iters_explain_print(const struct plumb_iters *iters,
                          const struct plumb_iters_explained *explained, FILE *out)
{
	const struct plumb_explained *told = &explained->told;
	int64_t more = told->ns - told->usual_ns;
	char own[PLUMB_FORMAT_SIZE], usual[PLUMB_FORMAT_SIZE], text[PLUMB_FORMAT_SIZE];
	int64_t step = explained->step;
	bool hidden = false;

	fprintf(out, "iteration %" PRIu32, told->iteration);
	if (step != PLUMB_UNKNOWN && step != told->iteration)
		fprintf(out, " (the program's step %" PRId64 ")", step);
	fprintf(out,
	        " of level %" PRIu32 ", track %" PRIu32
	        ": %s with the interval before it, %s %s than the median of the others (%s, "
	        "iteration %" PRIu32 ")\n",
	        explained->depth, iters->found.tracks[explained->place].track,
	        plumb_format_time(own, told->ns), plumb_format_time(text, llabs(more)),
	        more < 0 ? "less" : "more", plumb_format_time(usual, told->usual_ns), told->median);
	for (uint32_t i = 0; i < told->rows.count && i < ROWS_TEXT; i++) {
		if (told->rows.items[i].hidden && !hidden)
			fputs("  hidden behind GPU work:\n", out);
		hidden = told->rows.items[i].hidden;
		fputs("  ", out);
		plumb_text_print(out, told->rows.items[i].text);
		fputc('\n', out);
	}
	if (!told->rows.count)
		fputs("  no large difference\n", out);
	if (told->rows.count > ROWS_TEXT)
		fprintf(out, "  … and %" PRIu32 " more: --json has all\n",
		        told->rows.count - ROWS_TEXT);
}
