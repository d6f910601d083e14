/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/newest.h"
#include "cli/suggest.h"
#include "cli/terminal.h"

const struct plumb_option plumb_common_options[] = {
	{ .name = "help", .letter = 'h', .kind = PLUMB_OPTION_FLAG, .help = "show this help" },
	{ 0 },
};

const char plumb_common_exits[] =
	"0 done; 1 wrong use; 2 bad input; 3 nothing to show; 4 a gate does not hold; 5 the system "
	"refused (space, permission, memory)";

const struct plumb_verb *
plumb_verb_find(const struct plumb_verb *const *verbs, const char *name)
{
	for (; *verbs; verbs++)
		if (!strcmp((*verbs)->name, name))
			return *verbs;
	return NULL;
}

/* TEXT as one line: an end of line in a name must not look like another message. */
static void
put_line(FILE *out, const char *before, const char *text)
{
	fputs(before, out);
	for (; *text; text++)
		fputc(*text == '\n' || *text == '\t' ? ' ' : *text, out);
	fputc('\n', out);
}

int
plumb_cli_fail(const struct plumb_invocation *invocation, const struct plumb_error *error)
{
	put_line(invocation->err, "plumb: ", error->message);
	if (error->code <= PLUMB_EUSAGE && error->code >= PLUMB_ESYSTEM)
		return -error->code;
	return PLUMB_EXIT_SYSTEM;
}

int
plumb_cli_usage(const struct plumb_invocation *invocation, const char *format, ...)
{
	const struct plumb_verb *verb = invocation->verb;
	va_list arguments;

	fputs("plumb: ", invocation->err);
	va_start(arguments, format);
	vfprintf(invocation->err, format, arguments);
	va_end(arguments);
	fprintf(invocation->err, " (see \"plumb %s%s\")\n", verb ? "help " : "help",
	        verb ? verb->name : "");
	return verb && verb->usage_exit ? verb->usage_exit : PLUMB_EXIT_USAGE;
}

void
plumb_cli_note(const struct plumb_invocation *invocation, const char *format, ...)
{
	va_list arguments;
	char *text = NULL;
	struct plumb_error error;

	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		plumb_fail_memory(&error, "for a message");
	put_line(invocation->err, "plumb: ", length < 0 ? error.message : text);
	if (length >= 0)
		free(text);
}

void
plumb_cli_command(const struct plumb_invocation *invocation, const char *command)
{
	put_line(invocation->err, "  ", command);
}

/* Was the reader of OUT gone? Then what could not be written is nobody's loss. */
static bool
reader_left(FILE *out)
{
	struct pollfd poller = { .fd = plumb_terminal_fd(out), .events = POLLOUT };

	if (errno == EPIPE)
		return true;
	return poll(&poller, 1, 0) == 1 && (poller.revents & POLLERR);
}

static int
flush_output(const struct plumb_invocation *invocation, int result)
{
	bool failed;

	errno = 0;
	failed = fflush(invocation->out) != 0;
	if (!(ferror(invocation->out) || failed) || reader_left(invocation->out))
		return result;
	plumb_cli_note(invocation, "cannot write the output: %s",
	               errno ? strerror(errno) : "is there space left?");
	return PLUMB_EXIT_SYSTEM;
}

/* The verb, other than OURS, that has the option NAME; NULL: none, or several. */
static const struct plumb_verb *
verb_with_option(const struct plumb_invocation *invocation, const char *name)
{
	const struct plumb_verb *found = NULL;

	for (const struct plumb_verb *const *verb = invocation->verbs; *verb; verb++)
		for (const struct plumb_option *o = (*verb)->options; o && o->name; o++)
			if (!(*verb)->hidden && !strcmp(o->name, name)) {
				if (found || *verb == invocation->verb)
					return NULL;
				found = *verb;
			}
	return found;
}

static int
refuse_option(const struct plumb_invocation *invocation, const struct plumb_error *error)
{
	const char *unknown = plumb_options_unknown(invocation->options);
	const struct plumb_verb *other = *unknown ? verb_with_option(invocation, unknown) : NULL;

	if (other)
		return plumb_cli_usage(invocation, "%s has no option --%s; plumb %s has it",
		                       invocation->verb->name, unknown, other->name);
	return plumb_cli_usage(invocation, "%s: %s", invocation->verb->name, error->message);
}

static int
refuse_operands(const struct plumb_invocation *invocation)
{
	const struct plumb_verb *verb = invocation->verb;

	if (invocation->operand_count < verb->min_operands)
		return plumb_cli_usage(invocation, "%s needs %s", verb->name, verb->synopsis);
	if (verb->newest)
		return plumb_suggest_one_file(invocation);
	return plumb_cli_usage(invocation, "%s takes %s; remove \"%s\"", verb->name,
	                       verb->synopsis && *verb->synopsis ? verb->synopsis : "no arguments",
	                       invocation->operands[verb->max_operands]);
}

/* Runs the verb. A verb that needs no FILE runs on the newest profile if none is given. */
static int
call_verb(struct plumb_invocation *invocation)
{
	char *operands[2] = { NULL, NULL };
	int result = PLUMB_EXIT_DONE;

	if (invocation->verb->newest && !invocation->operand_count) {
		operands[0] = plumb_newest_profile(invocation, &result);
		if (!operands[0])
			return result;
		invocation->operands = operands;
		invocation->operand_count = 1;
	}
	result = invocation->verb->run(invocation);
	free(operands[0]);
	return result;
}

/* Has the verb the option NAME, and was it given? */
static bool
is_given(const struct plumb_invocation *invocation, const char *name)
{
	const struct plumb_option *option = invocation->verb->options;

	while (option && option->name && strcmp(option->name, name) != 0)
		option++;
	return option && option->name && plumb_options_given(invocation->options, name);
}

static int
run_verb(struct plumb_invocation *invocation, int argc, char **argv)
{
	const struct plumb_verb *verb = invocation->verb;
	struct plumb_options *options = NULL;
	struct plumb_error error;
	int result;

	result = plumb_options_parse(verb->options, verb->stop, argc, argv, &options,
	                             &invocation->operands, &invocation->operand_count, &error);
	invocation->options = options;
	invocation->words = argv;
	invocation->option_words = argc - invocation->operand_count;
	if (result == PLUMB_EUSAGE) {
		result = refuse_option(invocation, &error);
	} else if (result < 0) {
		result = plumb_cli_fail(invocation, &error);
	} else if (plumb_options_given(options, "help")) {
		plumb_help_print(verb, invocation->out, plumb_terminal_width(invocation->out));
		result = flush_output(invocation, PLUMB_EXIT_DONE);
	} else if (invocation->operand_count < verb->min_operands ||
	           invocation->operand_count > verb->max_operands) {
		result = refuse_operands(invocation);
	} else {
		if (verb->data || is_given(invocation, "csv") || is_given(invocation, "json"))
			plumb_terminal_data(invocation->out);
		/* A command under `run` inherits the disposition, so it is left alone there. */
		if (!verb->stop)
			signal(SIGPIPE, SIG_IGN);
		result = flush_output(invocation, call_verb(invocation));
	}
	plumb_options_free(options);
	return result;
}

int
plumb_cli_main(const struct plumb_verb *const *verbs, int argc, char **argv, FILE *out, FILE *err)
{
	struct plumb_invocation invocation = { .verbs = verbs, .out = out, .err = err };
	const char *name = argc > 1 ? argv[1] : NULL;
	char *meant;

	if (!name) {
		plumb_help_overview(verbs, err, plumb_terminal_width(err));
		return PLUMB_EXIT_USAGE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	else if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		name = "version";
	invocation.verb = plumb_verb_find(verbs, name);
	if (invocation.verb)
		return run_verb(&invocation, argc - 1, argv + 1);
	meant = plumb_suggest_verb(verbs, argv + 1);
	if (!meant)
		return plumb_cli_usage(&invocation, "there is no verb \"%s\"", name);
	plumb_cli_note(&invocation, "there is no verb \"%s\"; did you mean:", name);
	plumb_cli_command(&invocation, meant);
	free(meant);
	return PLUMB_EXIT_USAGE;
}
