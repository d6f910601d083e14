/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of the command-line program. A verb is one file with one `const struct plumb_verb`, and
 * a row in the table of main.c; help, man pages, completion and docs follow from these.
 *
 *	static const struct plumb_option options[] = { …, { 0 } };
 *
 *	int
 *	plumb_cmd_settle(struct plumb_invocation *invocation)
 *	{
 *		const char *output = plumb_options_text(invocation->options, "output");
 *		struct plumb_error error;
 *		…
 *		if (plumb_settle(…, &error) < 0)
 *			return plumb_cli_fail(invocation, &error);
 *		return PLUMB_EXIT_DONE;
 *	}
 *
 *	const struct plumb_verb plumb_verb_settle = {
 *		.name = "settle", .summary = "…", .synopsis = "DIR... -o FILE", .options = options,
 *		.min_operands = 1, .max_operands = PLUMB_ANY_NUMBER, .run = plumb_cmd_settle,
 *		.complete = PLUMB_COMPLETE_FOLDER, .description = "…",
 *	};
 *
 * The frame handles --help, parses options and counts operands before it calls `run`. A verb prints
 * what was asked for on `out`, and everything else on `err`.
 */
#ifndef PLUMB_CLI_CLI_H
#define PLUMB_CLI_CLI_H

#include <stdio.h>

#include "base/error.h"
#include "cli/options.h"

/* Exit codes of every verb but `run`, which returns the program's own (see its page). */
enum plumb_exit {
	PLUMB_EXIT_DONE = 0,
	PLUMB_EXIT_USAGE = 1,
	PLUMB_EXIT_INPUT = 2,
	PLUMB_EXIT_EMPTY = 3,
	PLUMB_EXIT_GATE = 4,
	PLUMB_EXIT_SYSTEM = 5,
};

#define PLUMB_ANY_NUMBER 0x7fffffff

struct plumb_invocation {
	const struct plumb_verb *verb;
	const struct plumb_verb *const *verbs; /* all verbs, in the order of help; ends with NULL */
	const struct plumb_options *options;
	char **operands; /* ends with NULL */
	int operand_count;
	char **words; /* the verb and its options, as they were given: OPTION_WORDS words */
	int option_words;
	FILE *out, *err; /* stdout and stderr, others in tests */
};

struct plumb_verb {
	const char *name;
	const char *summary;  /* one line, lower case, no full stop */
	const char *synopsis; /* what follows "plumb NAME [OPTIONS]", e.g. "FILE" */
	/* paragraphs with an empty line between them; plain text, not wrapped */
	const char *description;
	const char *exits; /* exit codes, written in the same way; NULL: the common ones */
	const char *const *examples; /* command line, what it does, …, NULL; may be NULL */
	const struct plumb_option *options;
	int min_operands, max_operands;
	enum plumb_complete complete; /* what operands complete to */
	bool stop;                    /* options end at the first operand (it takes a command) */
	bool newest;    /* takes one FILE; without it the newest profile of the current folder */
	bool data;      /* it writes for programs: names stay as they are */
	bool hidden;    /* left out of help, man pages and completion */
	int usage_exit; /* exit code of wrong use; 0: PLUMB_EXIT_USAGE */
	int (*run)(struct plumb_invocation *invocation); /* returns the exit code */
};

/* ---- the verbs; the table is in main.c ---- */
extern const struct plumb_verb plumb_verb_run, plumb_verb_settle, plumb_verb_import,
	plumb_verb_report, plumb_verb_doctor, plumb_verb_version, plumb_verb_help,
	plumb_verb_generate, plumb_verb_export, plumb_verb_iters, plumb_verb_tables,
	plumb_verb_diff, plumb_verb_view, plumb_verb_session, plumb_verb_why, plumb_verb_levels,
	plumb_verb_traffic;
int plumb_cmd_run(struct plumb_invocation *invocation);
int plumb_cmd_settle(struct plumb_invocation *invocation);
int plumb_cmd_import(struct plumb_invocation *invocation);
int plumb_cmd_report(struct plumb_invocation *invocation);
int plumb_cmd_export(struct plumb_invocation *invocation);
int plumb_cmd_iters(struct plumb_invocation *invocation);
int plumb_cmd_tables(struct plumb_invocation *invocation);
int plumb_cmd_levels(struct plumb_invocation *invocation);
int plumb_cmd_why(struct plumb_invocation *invocation);
int plumb_cmd_traffic(struct plumb_invocation *invocation);
int plumb_cmd_diff(struct plumb_invocation *invocation);
int plumb_cmd_view(struct plumb_invocation *invocation);
int plumb_cmd_doctor(struct plumb_invocation *invocation);
int plumb_cmd_version(struct plumb_invocation *invocation);
int plumb_cmd_session(struct plumb_invocation *invocation);
int plumb_cmd_help(struct plumb_invocation *invocation);
int plumb_cmd_generate(struct plumb_invocation *invocation);

/* The verb of that name in a table that ends with NULL; NULL: there is none. */
const struct plumb_verb *plumb_verb_find(const struct plumb_verb *const *verbs, const char *name);

/* Runs ARGV (ARGV[0] the program, ARGV[1] the verb of VERBS) and returns the exit code. */
int
plumb_cli_main(const struct plumb_verb *const *verbs, int argc, char **argv, FILE *out, FILE *err);

/* Prints "plumb: MESSAGE" on the invocation's err. Returns the exit code for ERROR's code. */
int plumb_cli_fail(const struct plumb_invocation *invocation, const struct plumb_error *error);
/* The same with a message of the verb's own, for wrong use. It adds where to find help. */
int plumb_cli_usage(const struct plumb_invocation *invocation, const char *format, ...)
	PLUMB_PRINTF(2, 3);
/* Prints COMMAND, which is quoted for a shell, on a line of its own, so that you can paste it. Call
 * it after a note or an error that ends with ":". */
void plumb_cli_command(const struct plumb_invocation *invocation, const char *command);
/* Prints "plumb: …" as a note on err: one line, the run goes on. */
void plumb_cli_note(const struct plumb_invocation *invocation, const char *format, ...)
	PLUMB_PRINTF(2, 3);

/* Writes the help of VERB, or of plumb as a whole, for people, WIDTH columns wide. */
void plumb_help_print(const struct plumb_verb *verb, FILE *out, int width);
void plumb_help_overview(const struct plumb_verb *const *verbs, FILE *out, int width);
/* The options of every verb, after its own. */
extern const struct plumb_option plumb_common_options[];
/* The exit codes of a verb that has no text about them. */
extern const char plumb_common_exits[];

#endif
