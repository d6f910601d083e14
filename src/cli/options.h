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
	const char *bare;     /* value of --NAME without =ARGUMENT; NULL: it needs one */
	const char *choices;  /* of a CHOICE: "context|kernel|operator" */
	const char *fallback; /* the default as a user would write it; NULL none */
	const char *help;     /* one or two sentences, lower case, no full stop at the end */
	enum plumb_complete complete;
};

struct plumb_options; /* the values given */

/*
 * Reads ARGV[1…] (ARGV[0] is the verb) by TABLE. *OPERANDS and *OPERAND_COUNT get the other words
 * in their order; they point into ARGV, which is permuted. If STOP is set, options end at the
 * first operand (for a verb that takes a command), and ARGV is not permuted. Errors: PLUMB_EUSAGE
 * with a message that names the option. Free *OPTIONS with plumb_options_free, also after an
 * error.
 */
int plumb_options_parse(const struct plumb_option *table, bool stop, int argc, char **argv,
                        struct plumb_options **options, char ***operands, int *operand_count,
                        struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_options_free(struct plumb_options *options);

/* The value of option NAME, which must be in the table: the value that was given, else the
 * fallback. */
bool plumb_options_flag(const struct plumb_options *options, const char *name);
const char *plumb_options_text(const struct plumb_options *options, const char *name); /* or NULL */
int64_t plumb_options_number(const struct plumb_options *options, const char *name);   /* or -1 */
/* For a CHOICE: which of its `choices` it is, from 0, so that an enum can have the same order.
 * UINT32_MAX: there is no value. */
uint32_t plumb_options_choice(const struct plumb_options *options, const char *name);
/* Was it given on the command line? */
bool plumb_options_given(const struct plumb_options *options, const char *name);

/* After an error: the name of the long option that is not known; "": there is none. */
const char *plumb_options_unknown(const struct plumb_options *options);
/* Value number WHICH of an option that may be given several times; NULL: no more. */
const char *plumb_options_each(const struct plumb_options *options, const char *name, size_t which);
/* How many words come after a "--", which may split the operands of a verb into two parts. */
int plumb_options_tail(const struct plumb_options *options);

/* TEXT as a PLUMB_OPTION_NUMBER or PLUMB_OPTION_SIZE; -1: it is not one, or it is too big. */
int64_t plumb_parse_number(const char *text);
int64_t plumb_parse_size(const char *text);

#endif
