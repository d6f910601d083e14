/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

int
plumb_cli_fail(const struct plumb_invocation *invocation, const struct plumb_error *error)
{
	fprintf(invocation->err, "plumb: %s\n", error->message);
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

	fputs("plumb: ", invocation->err);
	va_start(arguments, format);
	vfprintf(invocation->err, format, arguments);
	va_end(arguments);
	fputc('\n', invocation->err);
}

/* The verb that somebody may have meant: one that NAME begins, or with one letter astray. */
static const struct plumb_verb *
nearest(const struct plumb_verb *const *verbs, const char *name)
{
	size_t bytes = strlen(name);

	for (; bytes && *verbs; verbs++) {
		const char *verb = (*verbs)->name;
		size_t head = 0, tail = 0, length = strlen(verb);

		if ((*verbs)->hidden)
			continue;
		while (name[head] && name[head] == verb[head])
			head++;
		while (tail < bytes - head && tail < length - head &&
		       name[bytes - 1 - tail] == verb[length - 1 - tail])
			tail++;
		if (head == bytes || (head + tail + 1 >= bytes && head + tail + 1 >= length))
			return *verbs;
	}
	return NULL;
}

/* Was the reader of OUT gone? Then what could not be written is nobody's loss. */
static bool
reader_left(FILE *out)
{
	struct pollfd poller = { .fd = fileno(out), .events = POLLOUT };

	if (errno == EPIPE)
		return true;
	return poll(&poller, 1, 0) == 1 && (poller.revents & POLLERR);
}

static int
finish(const struct plumb_invocation *invocation, int result)
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
	if (result == PLUMB_EUSAGE) {
		result = plumb_cli_usage(invocation, "%s: %s", verb->name, error.message);
	} else if (result < 0) {
		result = plumb_cli_fail(invocation, &error);
	} else if (plumb_options_given(options, "help")) {
		plumb_help_print(verb, invocation->out, plumb_terminal_width(invocation->out));
		result = finish(invocation, PLUMB_EXIT_DONE);
	} else if (invocation->operand_count < verb->min_operands) {
		result = plumb_cli_usage(invocation, "%s needs %s", verb->name, verb->synopsis);
	} else if (invocation->operand_count > verb->max_operands) {
		result = plumb_cli_usage(invocation, "%s: \"%s\" is one operand too many",
		                         verb->name, invocation->operands[verb->max_operands]);
	} else {
		/* A command under `run` inherits the disposition, so it is left alone there. */
		if (!verb->stop)
			signal(SIGPIPE, SIG_IGN);
		result = finish(invocation, verb->run(invocation));
	}
	plumb_options_free(options);
	return result;
}

int
plumb_cli_main(const struct plumb_verb *const *verbs, int argc, char **argv, FILE *out, FILE *err)
{
	struct plumb_invocation invocation = { .verbs = verbs, .out = out, .err = err };
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct plumb_verb *other;

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
	other = nearest(verbs, name);
	if (other)
		return plumb_cli_usage(&invocation, "there is no verb \"%s\"; is it \"%s\"?", name,
		                       other->name);
	return plumb_cli_usage(&invocation, "there is no verb \"%s\"", name);
}
