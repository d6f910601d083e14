/* SPDX-License-Identifier: Apache-2.0 */
/* plumb view: shows profiles in a browser, or writes a page that shows them. */
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "base/output.h"
#include "cli/cli.h"
#include "cli/demangle.h"
#include "cli/load.h"
#include "serve/serve.h"

static const struct plumb_option options[] = {
	{ .name = "port",
	  .letter = 'p',
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "PORT",
	  .help = "listen on PORT of 127.0.0.1; without it on a free one" },
	{ .name = "no-browser",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "only print the address; without it plumb also opens it in your browser" },
	{ .name = "html",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "OUT",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "write one page to OUT instead, which opens without plumb and without a network. "
	          "It holds the usual answers, and says what it leaves out. An existing file is "
	          "replaced only if plumb view wrote it" },
	{ .name = "force",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "replace the file of --html whatever it is" },
	{ 0 },
};

/* ---- profiles ---- */

static int
load_one(const struct plumb_invocation *invocation, const char *path, struct plumb_profile *profile,
         struct plumb_error *error)
{
	struct plumb_error why;

	if (plumb_load(profile, path, PLUMB_LOAD_ALL, NULL, error) < 0)
		return error->code;
	if (plumb_findings_are_old(profile) && plumb_analyze(profile, NULL, &why) < 0)
		plumb_cli_note(invocation, "%s: no new findings: %s", path, why.message);
	return 0;
}

/* ---- the browser ---- */

/* Starts PROGRAM with ADDRESS, twice removed, so that nobody waits for it. */
static void
start_program(const char *program, const char *address)
{
	pid_t child = fork();

	if (child > 0)
		waitpid(child, NULL, 0);
	if (child)
		return;
	if (!fork()) {
		setsid();
		if (!freopen("/dev/null", "r", stdin) || !freopen("/dev/null", "w", stdout) ||
		    !freopen("/dev/null", "w", stderr))
			_exit(1);
		signal(SIGPIPE, SIG_DFL);
		execlp(program, program, address, (char *)NULL);
	}
	_exit(0);
}

/* $BROWSER may be a list; its first program is started. */
static void
open_browser(const char *address)
{
	const char *browser = getenv("BROWSER");
	char program[1024];
	size_t length = browser ? strcspn(browser, ": ") : 0;

	if (length && length < sizeof program) {
		snprintf(program, sizeof program, "%.*s", (int)length, browser);
		start_program(program, address);
	} else if (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY")) {
		start_program("xdg-open", address);
	}
}

/* Over SSH, the port is on another machine than the browser: how to bring it there. */
static void
print_forwarding(const struct plumb_invocation *invocation, uint16_t port)
{
	const char *connection = getenv("SSH_CONNECTION");
	const struct passwd *user = getpwuid(getuid());
	char host[64], number[16], other[24] = "", command[400];

	if (!connection || sscanf(connection, "%*s %*s %63s %15s", host, number) != 2)
		return;
	if (strcmp(number, "22") != 0)
		snprintf(other, sizeof other, "-p %s ", number);
	snprintf(command, sizeof command, "ssh %s-N -L %u:127.0.0.1:%u %s%s%s", other, port, port,
	         user ? user->pw_name : "", user ? "@" : "", host);
	plumb_cli_note(invocation, "to see it on your own machine, run there:");
	plumb_cli_command(invocation, command);
}

/* ---- the verb ---- */

static int
serve(const struct plumb_invocation *invocation, struct plumb_answers *answers)
{
	const struct plumb_options *o = invocation->options;
	int64_t port = plumb_options_number(o, "port");
	struct plumb_error error;
	struct plumb_server *server =
		plumb_server_new(answers, port > 0 ? (uint16_t)port : 0, &error);
	int code;

	if (!server)
		return plumb_cli_fail(invocation, &error);
	fprintf(invocation->out, "%s\n", plumb_server_address(server));
	fflush(invocation->out);
	plumb_cli_note(invocation, "Ctrl-C ends it");
	print_forwarding(invocation, plumb_server_port(server));
	if (!plumb_options_flag(o, "no-browser"))
		open_browser(plumb_server_ticket(server));
	code = plumb_server_run(server, &error);
	plumb_server_free(server);
	return code < 0 ? plumb_cli_fail(invocation, &error) : PLUMB_EXIT_DONE;
}

static int
write_page(const struct plumb_invocation *invocation, struct plumb_answers *answers)
{
	const char *path = plumb_options_text(invocation->options, "html");
	const struct plumb_output_rule rule = {
		.ours = plumb_page_is,
		.kind = "a page that plumb view wrote",
		.option = "--html",
		.force = plumb_options_flag(invocation->options, "force"),
		.private = true,
	};
	struct plumb_output output;
	struct plumb_error error;

	if (plumb_output_open(&output, path, &rule, &error) < 0)
		return plumb_cli_fail(invocation, &error);
	if (plumb_page_write(answers, output.file, &error) < 0 && !ferror(output.file)) {
		plumb_output_drop(&output);
		return plumb_cli_fail(invocation, &error);
	}
	return plumb_output_close(&output, &error) < 0 ? plumb_cli_fail(invocation, &error)
	                                               : PLUMB_EXIT_DONE;
}

static int
show(const struct plumb_invocation *invocation, const struct plumb_serve_file *files,
     uint32_t count)
{
	int tail = plumb_options_tail(invocation->options);
	uint32_t before = tail > 0 && (uint32_t)tail < count ? count - (uint32_t)tail : 0;
	struct plumb_error error;
	struct plumb_answers *answers = plumb_answers_new(files, count, before, &error);
	int result;

	if (!answers)
		return plumb_cli_fail(invocation, &error);
	plumb_answers_demangle(answers, plumb_demangle);
	result = plumb_options_given(invocation->options, "html") ? write_page(invocation, answers)
	                                                          : serve(invocation, answers);
	plumb_answers_free(answers);
	return result;
}

static int
check_use(const struct plumb_invocation *invocation)
{
	const char *missing = plumb_page_missing();
	const struct plumb_options *o = invocation->options;
	bool html = plumb_options_given(o, "html");

	if (!missing && !html)
		missing = plumb_server_missing();
	if (missing) {
		plumb_cli_note(invocation, "%s", missing);
		return PLUMB_EXIT_SYSTEM;
	}
	if (html && (plumb_options_given(o, "port") || plumb_options_flag(o, "no-browser")))
		return plumb_cli_usage(invocation,
		                       "view: --html serves nothing; leave out --port and "
		                       "--no-browser");
	if (plumb_options_flag(o, "force") && !html)
		return plumb_cli_usage(invocation, "view: --force is for --html OUT");
	if (plumb_options_number(o, "port") > UINT16_MAX)
		return plumb_cli_usage(invocation, "view: a port is at most %d", UINT16_MAX);
	return PLUMB_EXIT_DONE;
}

int
plumb_cmd_view(struct plumb_invocation *invocation)
{
	uint32_t count = (uint32_t)invocation->operand_count;
	struct plumb_profile *profiles = calloc(count, sizeof *profiles);
	struct plumb_serve_file *files = calloc(count, sizeof *files);
	struct plumb_error error;
	int result = check_use(invocation);

	if (!result && (!profiles || !files)) {
		plumb_fail_memory(&error, "for the profiles");
		result = plumb_cli_fail(invocation, &error);
	}
	for (uint32_t i = 0; !result && i < count; i++) {
		files[i] = (struct plumb_serve_file){ invocation->operands[i], &profiles[i] };
		if (load_one(invocation, files[i].name, &profiles[i], &error) < 0)
			result = plumb_cli_fail(invocation, &error);
	}
	if (!result)
		result = show(invocation, files, count);
	for (uint32_t i = 0; profiles && i < count; i++)
		plumb_profile_free(&profiles[i]);
	free(profiles);
	free(files);
	return result;
}

static const char *const examples[] = {
	"plumb view train.plumb",
	"open the profile in your browser",
	"plumb view before.plumb after.plumb",
	"two profiles, side by side",
	"plumb view train.plumb --html train.html",
	"write one page that you can send to somebody",
	"plumb view train.plumb --no-browser --port 8123",
	"only print the address, with a port that you can forward",
	NULL,
};

const struct plumb_verb plumb_verb_view = {
	.name = "view",
	.summary = "show a profile in your browser",
	.synopsis = "[FILE...]",
	.description =
		"Serves a page on this machine, prints its address, and opens it in your browser. "
		"The address has a secret part: who has it can read the profile, and nobody else "
		"can. Nothing leaves this machine. Over SSH, plumb prints the command that "
		"forwards the port to your own machine.\n\n"
		"With --html it writes a page that holds the answers itself. Give it only to "
		"people who may see the profile.\n\n"
		"FILE is a profile or another tool's trace. With several FILEs the page compares "
		"them: the first with the others, or those before -- with those after it. The "
		"FILEs are read at the start, so they may go away. Ctrl-C ends it.",
	.options = options,
	.examples = examples,
	.max_operands = 64,
	.newest = true,
	.complete = PLUMB_COMPLETE_PROFILE,
	.run = plumb_cmd_view,
};
