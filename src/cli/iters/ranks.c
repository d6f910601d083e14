/* SPDX-License-Identifier: Apache-2.0 */
/* The iterations of several ranks side by side, for people. */
#include <inttypes.h>

#include "base/format.h"
#include "cli/iters/iters.h"

#define LEFT_OUT_MOST 8 /* that are listed of a rank */

/* "rank 1"; "GPU track 7" if no rank is known. */
static void
print_rank(const struct plumb_iters *iters, const struct plumb_matched_rank *rank, FILE *out)
{
	if (rank->rank != PLUMB_UNKNOWN)
		fprintf(out, "rank %" PRId64, rank->rank);
	else
		fprintf(out, "track %" PRIu32, iters->found.tracks[rank->place].track);
}

/* "  left out: 2 iterations of rank 0 that not every rank has (0, 1)" */
static void
print_left_out(const struct plumb_iters *iters, FILE *out)
{
	const struct plumb_rank_match *match = &iters->steps.match;

	for (uint32_t i = 0, n; i < match->left_out.count; i += n) {
		const struct plumb_left_out *first = &match->left_out.items[i];
		const struct plumb_matched_rank *rank = &match->ranks[first->rank];

		for (n = 1; i + n < match->left_out.count && first[n].rank == first->rank; n++)
			;
		fprintf(out, "  left out: %" PRIu32 " iteration%s of ", n, n == 1 ? "" : "s");
		print_rank(iters, rank, out);
		fprintf(out, " that other ranks do not have (%" PRIu32, first->iteration);
		for (uint32_t k = 1; k < n && k < LEFT_OUT_MOST; k++)
			fprintf(out, ", %" PRIu32, first[k].iteration);
		fprintf(out, "%s)\n", n > LEFT_OUT_MOST ? ", …" : "");
	}
}

void
plumb_iters_ranks_print(const struct plumb_iters *iters, FILE *out)
{
	static const char *const how[] = { "by the program's step numbers", "by start time",
		                           "by the steps that the program marks (no common clock, "
		                           "so skew is unknown)",
		                           "by position in the run (no common clock, so skew is "
		                           "unknown)" };
	static const char *const last[] = { "", "reaches the collectives last", "ends last",
		                            "takes longest" };
	const struct plumb_rank_match *match = &iters->steps.match;
	int64_t start = 0, end = 0;
	char text[PLUMB_FORMAT_SIZE], time[PLUMB_FORMAT_SIZE];

	if (!match->rank_count)
		return;
	fprintf(out, "ranks: %" PRIu32 " iterations of %" PRIu32 " ranks, matched %s%s\n",
	        match->count, match->rank_count, how[match->matched],
	        match->matched == PLUMB_MATCHED_BY_STEP && !match->common_clock
	                ? " (no common clock, so skew is unknown)"
	                : "");
	if (!match->count) {
		print_left_out(iters, out);
		return;
	}
	for (uint32_t k = 0; k < match->count; k++) {
		start = match->items[k].start_skew_ns > start ? match->items[k].start_skew_ns
		                                              : start;
		end = match->items[k].end_skew_ns > end ? match->items[k].end_skew_ns : end;
	}
	if (match->common_clock)
		fprintf(out, "  they start at most %s apart and end at most %s apart\n",
		        plumb_format_time(text, start), plumb_format_time(time, end));
	for (uint32_t r = 0; r < match->rank_count; r++) {
		const struct plumb_matched_rank *rank = &match->ranks[r];

		fputs("  ", out);
		print_rank(iters, rank, out);
		fprintf(out, " %s in %" PRIu32 " of %" PRIu32 "; mean duration %s", last[match->by],
		        rank->straggles, match->count, plumb_format_time(time, rank->duration_ns));
		if (rank->waiting_ns != PLUMB_UNKNOWN)
			fprintf(out, ", of which it waits %s for others",
			        plumb_format_time(text, rank->waiting_ns));
		fputc('\n', out);
	}
	print_left_out(iters, out);
}
