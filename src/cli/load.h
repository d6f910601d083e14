/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the file that a verb is given: a profile, or another tool's trace, which is imported at
 * once. */
#ifndef PLUMB_CLI_LOAD_H
#define PLUMB_CLI_LOAD_H

#include "cli/cli.h"
#include "import/import.h"
#include "model/window.h"

enum plumb_load_part {
	PLUMB_LOAD_ALL,
	PLUMB_LOAD_STREAMS, /* spans of streams, but no other spans */
	PLUMB_LOAD_TOTALS,  /* no spans */
};

/* Reads PATH: only PART of a profile, but all of a trace. Only WINDOW of it stays, if that is not
 * NULL. The errors are those of plumb_store_read, plumb_import and plumb_window_narrow. */
int
plumb_load(struct plumb_profile *profile, const char *path, enum plumb_load_part part,
           const struct plumb_window_choice *window, struct plumb_error *error) PLUMB_MUST_CHECK;

/* One profile of other tools' traces, with windows if they have loops. The errors are those of
 * plumb_import. */
int
plumb_load_traces(const char *const *paths, uint32_t count, const struct plumb_import_options *how,
                  struct plumb_profile *profile, struct plumb_error *error) PLUMB_MUST_CHECK;

/* The option --window. MORE is what help says after it. */
#define PLUMB_WINDOW_OPTION(more)                                                                  \
	{                                                                                          \
		.name = "window",                                                                  \
		.letter = 'w',                                                                     \
		.kind = PLUMB_OPTION_TEXT,                                                         \
		.argument = "WINDOW",                                                              \
		.choices = "all|startup|loop|rest",                                                \
		.help = "show only this part of the run; loop is the main loop, loop:2 the "       \
			"second loop" more ". WINDOW is one of",                                   \
	}
/* What it asks for. 0, or an exit code after a message. */
int
plumb_load_window(const struct plumb_invocation *invocation, struct plumb_window_choice *window);

#endif
