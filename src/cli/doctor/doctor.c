/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor.h"

#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "view/render.h"

static const struct plumb_option options[] = {
	{ .name = "counters",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "list the counters of plumb run --counters, and in how many passes the first GPU "
	          "counts them" },
	{ .name = "json", .kind = PLUMB_OPTION_FLAG, .help = "write JSON" },
	{ 0 },
};

static void (*const groups[])(struct plumb_checks *checks) = {
	plumb_doctor_python, plumb_doctor_gpu,     plumb_doctor_nccl,
	plumb_doctor_system, plumb_doctor_program, plumb_doctor_native,
};

static const char *const state_names[] = {
	[PLUMB_CHECK_YES] = "yes",
	[PLUMB_CHECK_NO] = "no",
	[PLUMB_CHECK_PARTLY] = "partly",
};

/* ---- rows ---- */

static char *
text_of(const char *format, va_list args)
{
	char *text;
	return vasprintf(&text, format, args) < 0 ? NULL : text;
}

void
plumb_check_add(struct plumb_checks *checks, const char *id, enum plumb_check_state state,
                const char *what, ...)
{
	struct plumb_check *check = plumb_vec_add(&checks->list);
	va_list args;
	if (!check)
		return;
	check->id = id;
	check->state = state;
	va_start(args, what);
	check->what = text_of(what, args);
	va_end(args);
}

void
plumb_check_why(struct plumb_checks *checks, const char *why, ...)
{
	va_list args;
	if (checks->list.count == 0)
		return;
	struct plumb_check *check = &checks->list.items[checks->list.count - 1];
	free(check->why);
	va_start(args, why);
	check->why = text_of(why, args);
	va_end(args);
}

void
plumb_check_remedy(struct plumb_checks *checks, const char *remedy, ...)
{
	va_list args;
	if (checks->list.count == 0)
		return;
	struct plumb_check *check = &checks->list.items[checks->list.count - 1];
	free(check->remedy);
	va_start(args, remedy);
	check->remedy = text_of(remedy, args);
	va_end(args);
}

bool
plumb_doctor_find(const char *const *places, size_t count, char path[PATH_MAX])
{
	bool any = false;
	for (size_t i = 0; i < count && !any; i++) {
		glob_t found;
		any = glob(places[i], 0, NULL, &found) == 0 && found.gl_pathc > 0;
		if (any)
			snprintf(path, PATH_MAX, "%s", found.gl_pathv[0]);
		globfree(&found);
	}
	return any;
}

bool
plumb_doctor_line(const char *file, char *text, int size)
{
	FILE *stream = fopen(file, "re");
	bool got = stream && fgets(text, size, stream);
	if (got)
		text[strcspn(text, "\n")] = '\0';
	if (stream)
		fclose(stream);
	return got;
}

/* ---- output ---- */

static int
print_json(const struct plumb_checks *checks, FILE *out)
{
	struct plumb_json *json = plumb_view_json_new(out, "doctor");
	plumb_json_key_array(json, "checks");
	for (uint32_t i = 0; i < checks->list.count; i++) {
		const struct plumb_check *check = &checks->list.items[i];
		plumb_json_object(json);
		plumb_json_key_text(json, "id", check->id);
		plumb_json_key_text(json, "state", state_names[check->state]);
		plumb_json_key_text(json, "what", check->what);
		plumb_json_key_text(json, "why", check->why);
		plumb_json_key_text(json, "remedy", check->remedy);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_end(json);
	return plumb_json_finish(json) < 0 ? PLUMB_EXIT_SYSTEM : PLUMB_EXIT_DONE;
}

static int
print_text(const struct plumb_checks *checks, FILE *out)
{
	int width = 0;
	for (uint32_t i = 0; i < checks->list.count; i++)
		if ((int)strlen(checks->list.items[i].id) > width)
			width = (int)strlen(checks->list.items[i].id);
	for (uint32_t i = 0; i < checks->list.count; i++) {
		const struct plumb_check *check = &checks->list.items[i];
		fprintf(out, "%-6s  %-*s  %s", state_names[check->state], width, check->id,
		        check->what ? check->what : "?");
		if (check->why)
			fprintf(out, ": %s", check->why);
		if (check->remedy)
			fprintf(out, "\n%*s  %-*s  do: %s", 6, "", width, "", check->remedy);
		fputc('\n', out);
	}
	return PLUMB_EXIT_DONE;
}

int
plumb_cmd_doctor(struct plumb_invocation *invocation)
{
	struct plumb_checks checks = { 0 };
	if (invocation->operand_count)
		checks.program = invocation->operands[0];
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		groups[i](&checks);
	if (plumb_options_flag(invocation->options, "counters"))
		plumb_doctor_counters(&checks);
	int code = plumb_options_flag(invocation->options, "json")
	                   ? print_json(&checks, invocation->out)
	                   : print_text(&checks, invocation->out);
	for (uint32_t i = 0; i < checks.list.count; i++) {
		free(checks.list.items[i].what);
		free(checks.list.items[i].why);
		free(checks.list.items[i].remedy);
	}
	plumb_vec_free(&checks.list);
	return code;
}

static const char *const examples[] = {
	"plumb doctor",
	"show what can be recorded on this machine, and how to get the rest",
	"plumb doctor --json | jq '.checks[] | select(.state != \"yes\")'",
	"list what is missing, for use in a program",
	"plumb doctor --counters",
	"see which hardware counters the GPU has, and who may read them",
	"plumb doctor ./train",
	"see if this program can be profiled, and if its functions have names and lines",
	NULL,
};

const struct plumb_verb plumb_verb_doctor = {
	.name = "doctor",
	.summary = "show what plumb can record on this machine, and what it cannot and why",
	.synopsis = "[PROGRAM]",
	.description =
		"Looks at the Pythons on PATH and their frameworks, the NVIDIA driver, CUPTI and "
		"who uses it, the kernel's permissions, the disk, and symbols of native code. Each "
		"row says yes, no or partly, why, and what to do about it. With a PROGRAM it also "
		"says whether that can be profiled.\n\n"
		"It changes nothing and imports no framework. It asks what could hang or crash "
		"(the driver, a Python) in a child process with a time limit.",
	.exits = "0 whatever was found; 1 wrong use; 5 the output could not be written",
	.examples = examples,
	.options = options,
	.max_operands = 1,
	.complete = PLUMB_COMPLETE_COMMAND,
	.run = plumb_cmd_doctor,
};
