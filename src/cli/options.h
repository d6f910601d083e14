/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a verb: one description each, from which the parser, `plumb help`, the man pages, the
 * shell completion and the options section of docs/ are all made.
 *
 *	static const struct plumb_option options[] = {
 *		{ .name = "output", .letter = 'o', .kind = PLUMB_OPTION_TEXT, .argument = "FILE",
 *		  .complete = PLUMB_COMPLETE_FILE, .help = "write the profile to FILE" },
 *		{ .name = "json", .kind = PLUMB_OPTION_FLAG, .help = "write JSON" },
 *		{ 0 },
 *	};
 *
 * A value is checked while parsing, so that reading it later cannot fail. The last one given
 * stands. Long options may be shortened as getopt_long allows; "--" ends the options.
 */
#ifndef PLUMB_CLI_OPTIONS_H
#define PLUMB_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum plumb_option_kind {
	PLUMB_OPTION_FLAG,   /* no argument */
	PLUMB_OPTION_TEXT,   /* any text but the empty one */
	PLUMB_OPTION_NUMBER, /* a decimal integer ≥ 0 */
	PLUMB_OPTION_SIZE,   /* bytes ≥ 0: 4096, 64K, 256M, 1G (powers of 1024) */
	PLUMB_OPTION_CHOICE, /* one of `choices` */
};

/* What a shell completes the argument (or operand) to. */
enum plumb_complete {
	PLUMB_COMPLETE_NONE,
	PLUMB_COMPLETE_FILE,
	PLUMB_COMPLETE_FOLDER,
	PLUMB_COMPLETE_PROFILE, /* *.plumb files and folders */
	PLUMB_COMPLETE_COMMAND, /* a program and its arguments */
	PLUMB_COMPLETE_VERB,
};

struct plumb_option {
	const char *name; /* long form without dashes; NULL ends the table */
	char letter;      /* short form, 0 none */
	enum plumb_option_kind kind;
	const char *argument; /* what help calls the argument; NULL for a flag */
	const char *bare;     /* the value of --NAME without =ARGUMENT, which is then optional */
	const char *choices;  /* of a CHOICE: "context|kernel|operator" */
	const char *fallback; /* the default as a user would write it; NULL none */
	const char *help;     /* one or two sentences, lower case, no full stop at the end */
	enum plumb_complete complete;
};

struct plumb_options; /* the values given */

/*
 * Reads ARGV[1…] (ARGV[0] is the verb) by TABLE. *OPERANDS and *OPERAND_COUNT get what is left, in
 * order; it points into ARGV, which is permuted unless STOP is set: then options end at the first
 * operand (for a verb that takes a command). Errors: PLUMB_EUSAGE with a message that names the
 * option. *OPTIONS is for plumb_options_free, also after an error.
 */
int plumb_options_parse(const struct plumb_option *table, bool stop, int argc, char **argv,
                        struct plumb_options **options, char ***operands, int *operand_count,
                        struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_options_free(struct plumb_options *options);

/* The value of option NAME, which must be in the table: what was given, else its fallback. */
bool plumb_options_flag(const struct plumb_options *options, const char *name);
const char *plumb_options_text(const struct plumb_options *options, const char *name); /* or NULL */
int64_t plumb_options_number(const struct plumb_options *options, const char *name);   /* or -1 */
/* Of a CHOICE: which of its `choices`, from 0, so that an enum can have the same order; UINT32_MAX:
 * there is no value. */
uint32_t plumb_options_choice(const struct plumb_options *options, const char *name);
/* Was it given on the command line? */
bool plumb_options_given(const struct plumb_options *options, const char *name);

/* The long option that was not known (its name); "": there was none. After an error. */
const char *plumb_options_unknown(const struct plumb_options *options);
/* Number WHICH of the values that were given for an option that may come again; NULL: no more. */
const char *plumb_options_each(const struct plumb_options *options, const char *name, size_t which);
/* How many words stand behind a "--", which may part the operands of a verb in two. */
int plumb_options_tail(const struct plumb_options *options);

/* TEXT as a PLUMB_OPTION_NUMBER or PLUMB_OPTION_SIZE; -1 when it is none or too big. */
int64_t plumb_parse_number(const char *text);
int64_t plumb_parse_size(const char *text);

#endif
