/* SPDX-License-Identifier: Apache-2.0 */
/* plumb why: its options. */
#include "cli/why/why.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/demangle.h"
#include "cli/load.h"
#include "view/view.h"

static const struct plumb_option options[] = {
	{ .name = "top",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .help = "show the N stalls of each kernel with most samples; 0: all. Without it text has "
	          "5, JSON and CSV have all" },
	{ .name = "kernels",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .help = "show the N kernels with most GPU time; 0: all. Without it text has 3, JSON and "
	          "CSV have 50" },
	{ .name = "line",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE:LINE",
	  .help = "only stalls at this line of source, and stalls that this line causes; FILE is a "
	          "path or its last part" },
	{ .name = "by",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "WHAT",
	  .choices = "iteration|rank",
	  .help = "also show which causes differ between iterations (this needs samples of plumb "
	          "run --stalls --stalls-mode=serialised) or ranks" },
	{ .name = "annotate",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "print each instruction with its samples, control fields, dependences and line "
	          "of source; nvdisasm disassembles, if it is installed, else plumb" },
	{ .name = "static",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "FILE is code, not a profile: a cubin, a fatbin, an executable or a library. "
	          "Without samples, what is said follows from the code alone" },
	{ .name = "arch",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "ARCH",
	  .help = "of a file with code for several GPUs only that for ARCH, such as sm_90; with "
	          "--static" },
	{ .name = "prompt",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "WHAT",
	  .bare = "causes",
	  .choices = "code|stalls|causes",
	  .help = "write a short report of one kernel for a language model: its code; its code and "
	          "stalls; its code, stalls and causes" },
	{ .name = "json", .kind = PLUMB_OPTION_FLAG, .help = "write JSON" },
	{ .name = "csv",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "write CSV: a row for each cause of each stall" },
	{ 0 },
};

#define TOP_TEXT 5
#define KERNELS_TEXT 3
#define KERNELS_DATA 50 /* a large kernel takes 8 MB */

struct wanted {
	struct plumb_why_query query;
	char *file; /* of --line */
	bool is_text;
	uint32_t top_text; /* kinds of stalls; 0: all */
};

/* ---- what is asked for ---- */

static int
read_line(const struct plumb_invocation *invocation, struct wanted *w)
{
	const char *text = plumb_options_text(invocation->options, "line"), *colon;
	int64_t line;

	if (!text)
		return 0;
	colon = strrchr(text, ':');
	line = colon ? plumb_parse_number(colon + 1) : -1;
	if (!colon || colon == text || line <= 0 || line >= UINT32_MAX)
		return plumb_cli_usage(
			invocation, "why: --line takes a file and a line, such as softmax.cu:41");
	w->file = strndup(text, (size_t)(colon - text));
	w->query.file = w->file;
	w->query.line = (uint32_t)line;
	return w->file ? 0 : PLUMB_EXIT_SYSTEM;
}

static uint32_t
number_of(const struct plumb_options *o, const char *name, uint32_t fallback)
{
	int64_t number = plumb_options_number(o, name);

	if (!plumb_options_given(o, name))
		return fallback;
	return number >= UINT32_MAX ? 0 : (uint32_t)number;
}

static int
read_query(const struct plumb_invocation *invocation, struct wanted *w)
{
	const struct plumb_options *o = invocation->options;
	bool data = plumb_options_flag(o, "json") || plumb_options_flag(o, "csv");
	bool annotate = plumb_options_flag(o, "annotate");
	bool prompt = plumb_options_given(o, "prompt");

	if (plumb_options_flag(o, "json") && plumb_options_flag(o, "csv"))
		return plumb_cli_usage(invocation, "why: give --json or --csv, not both");
	if (prompt && (data || annotate))
		return plumb_cli_usage(invocation,
		                       "why: --prompt goes with neither --json, --csv nor "
		                       "--annotate");
	if (annotate && plumb_options_flag(o, "csv"))
		return plumb_cli_usage(invocation,
		                       "why: a listing has no CSV; use --annotate --json");
	if (plumb_options_given(o, "arch") && !plumb_options_flag(o, "static"))
		return plumb_cli_usage(invocation, "why: --arch goes with --static");
	w->is_text = !data;
	w->query.kernel = invocation->operand_count > 1 ? invocation->operands[1] : NULL;
	w->query.demangle = plumb_demangle;
	w->query.listing = annotate;
	w->query.top = data ? number_of(o, "top", 0) : 0; /* text puts stalls together first */
	w->top_text = number_of(o, "top", TOP_TEXT);
	w->query.kernels = number_of(o, "kernels",
	                             data       ? KERNELS_DATA
	                             : annotate ? 1
	                                        : KERNELS_TEXT);
	if (prompt)
		w->query.kernels = 1;
	if (plumb_options_given(o, "by"))
		w->query.by =
			plumb_options_choice(o, "by") ? PLUMB_WHY_BY_RANK : PLUMB_WHY_BY_ITERATION;
	return read_line(invocation, w);
}

/* ---- answers ---- */

static int
print_answer(const struct plumb_invocation *invocation, const struct wanted *w,
             const struct plumb_why *why)
{
	const struct plumb_options *o = invocation->options;
	const char *path = invocation->operands[0];
	struct plumb_error error;
	int code = 0;

	if (!w->is_text)
		code = plumb_why_write(
			why, plumb_options_flag(o, "json") ? PLUMB_VIEW_JSON : PLUMB_VIEW_CSV,
			invocation->out, &error);
	else if (plumb_options_given(o, "prompt"))
		plumb_why_print_prompt(why,
		                       (enum plumb_why_prompt)plumb_options_choice(o, "prompt"),
		                       invocation->out);
	else if (w->query.listing)
		plumb_why_print_listing(invocation, why, invocation->out);
	else if (plumb_why_print(why, path, w->top_text, invocation->out) < 0)
		code = plumb_fail_memory(&error, "to print the stalls");
	if (code && !ferror(invocation->out))
		return plumb_cli_fail(invocation, &error);
	return PLUMB_EXIT_DONE;
}

/* Does the file PATH begin with HEAD? */
static bool
begins_with(const char *path, const char *head)
{
	char read_head[16] = "";
	size_t bytes = strlen(head);
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool same = file >= 0 && read(file, read_head, bytes) == (ssize_t)bytes &&
	            !memcmp(read_head, head, bytes);

	if (file >= 0)
		close(file);
	return same;
}

static int
load(const struct plumb_invocation *invocation, const struct wanted *w,
     struct plumb_profile *profile, uint32_t *left)
{
	const char *path = invocation->operands[0];
	struct plumb_why_choice choice = {
		.kernel = w->query.kernel,
		.architecture = plumb_options_text(invocation->options, "arch"),
		.kernels = w->query.file ? 0 : w->query.kernels,
	};
	struct plumb_error error;
	int code;

	if (!plumb_options_flag(invocation->options, "static")) {
		if (begins_with(path, "\177ELF"))
			return plumb_cli_usage(invocation,
			                       "why: %s is machine code, not a profile; use plumb "
			                       "why --static %s",
			                       path, path);
		code = plumb_load(profile, path, PLUMB_LOAD_ALL, NULL, &error);
	} else if (begins_with(path, "SQLite format 3")) {
		return plumb_cli_usage(invocation,
		                       "why: --static takes code, and %s is a profile; leave out "
		                       "--static",
		                       path);
	} else {
		code = plumb_why_read_code(path, &choice, profile, left, &error);
	}
	if (code)
		return plumb_cli_fail(invocation, &error);
	if (*left && !choice.kernels)
		plumb_cli_note(invocation,
		               "%u more kernels of %s were not read, because there are too many; "
		               "give a part of a kernel's name",
		               *left, path);
	return PLUMB_EXIT_DONE;
}

int
plumb_cmd_why(struct plumb_invocation *invocation)
{
	struct wanted wanted = { 0 };
	struct plumb_profile profile = { 0 };
	struct plumb_why why;
	struct plumb_error error;
	uint32_t left = 0;
	int result = read_query(invocation, &wanted);

	if (!result)
		result = load(invocation, &wanted, &profile, &left);
	if (!result && plumb_why_make(&profile, &wanted.query, &why, &error) < 0) {
		plumb_fail_in(&error, "%s", invocation->operands[0]);
		result = plumb_cli_fail(invocation, &error);
	} else if (!result) {
		why.left += left;
		result = print_answer(invocation, &wanted, &why);
		plumb_why_free(&why);
	}
	plumb_profile_free(&profile);
	free(wanted.file);
	return result;
}

static const char *const examples[] = {
	"plumb why run.plumb",
	"what the hottest kernels wait for, and what to do about it",
	"plumb why run.plumb softmax --top 10",
	"more stalls of one kernel, with the chain back to the root of each",
	"plumb why run.plumb --line softmax.cu:41",
	"what waits at this line, and what waits because of it",
	"plumb why run.plumb softmax --annotate",
	"each instruction with its samples and dependences",
	"plumb why --static build/train softmax",
	"the same without a GPU: long latencies, spills and accesses of an executable's kernel",
	"plumb why run.plumb softmax --prompt",
	"a report of a kernel for a language model",
	NULL,
};

const struct plumb_verb plumb_verb_why = {
	.name = "why",
	.summary = "the instruction, line and access that made a GPU kernel wait",
	.synopsis = "[FILE] [KERNEL]",
	.description =
		"Says why kernels wait. Profilers show at which instruction the warps of a kernel "
		"stand. This shows which earlier instruction made them wait: its line of source, "
		"how it accesses memory, what to do, and how much that can save. Every sample of a "
		"stall belongs to one of its causes. If the hardware cannot tell two causes apart, "
		"both are named.\n\nFILE is a profile with samples (plumb run --stalls), or with "
		"--static a file of GPU code. KERNEL is a part of a kernel's name, as C++ or "
		"mangled.",
	.options = options,
	.examples = examples,
	.max_operands = 2,
	.newest = true,
	.complete = PLUMB_COMPLETE_PROFILE,
	.run = plumb_cmd_why,
};
