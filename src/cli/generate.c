/* SPDX-License-Identifier: Apache-2.0 */
/* The hidden verb `plumb generate`: man pages, completion and docs from the verbs' descriptions. */
#include "cli/generate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "cli/findings.h"

/* ---- man ---- */

static int
man_page(const struct plumb_verb *const *verbs, const struct plumb_verb *verb, const char *folder,
         struct plumb_error *error)
{
	struct plumb_output output;
	char path[4096];

	snprintf(path, sizeof path, "%s/plumb%s%s.1", folder, verb ? "-" : "",
	         verb ? verb->name : "");
	if (plumb_output_open(&output, path, NULL, error) < 0)
		return error->code;
	plumb_generate_man(verbs, verb, output.file);
	return plumb_output_close(&output, error);
}

static int
write_man_pages(const struct plumb_verb *const *verbs, const char *folder,
                struct plumb_error *error)
{
	int result = man_page(verbs, NULL, folder, error);

	for (size_t i = 0; !result && verbs[i]; i++)
		if (!verbs[i]->hidden)
			result = man_page(verbs, verbs[i], folder, error);
	return result;
}

/* ---- docs ---- */

/* The whole of a file, terminated and malloced; NULL with ERROR filled. A file that is not there is
 * a page with a title only. */
static char *
read_page(const char *path, const struct plumb_verb *verb, struct plumb_error *error)
{
	FILE *in = fopen(path, "r");
	char *text = NULL;
	size_t bytes = 0;
	FILE *memory;

	if (!in && errno != ENOENT) {
		plumb_fail_errno(error, "cannot read %s", path);
		return NULL;
	}
	memory = open_memstream(&text, &bytes);
	if (memory && in) {
		for (int c; (c = getc(in)) != EOF;)
			putc(c, memory);
	} else if (memory) {
		fprintf(memory, "# plumb %s\n\n%c%s.\n\n## Use\n\n", verb->name,
		        verb->summary[0] - 'a' + 'A', verb->summary + 1);
		fprintf(memory, PLUMB_DOCS_BEGIN, "options");
		fprintf(memory, PLUMB_DOCS_END, "options");
	}
	if (in)
		fclose(in);
	if (!memory || fclose(memory))
		plumb_fail_memory(error, NULL);
	return text;
}

/* Puts what WRITE says between the markers of section NAME in *TEXT. Returns whether it is
 * there. */
static bool
replace_section(char **text, const char *name, const struct plumb_verb *verb)
{
	char begin[100], end[100], *start, *stop, *result = NULL;
	size_t bytes = 0;
	FILE *out;

	snprintf(begin, sizeof begin, PLUMB_DOCS_BEGIN, name);
	snprintf(end, sizeof end, PLUMB_DOCS_END, name);
	start = strstr(*text, begin);
	stop = start ? strstr(start, end) : NULL;
	out = stop ? open_memstream(&result, &bytes) : NULL;
	if (!out)
		return false;
	start += strlen(begin);
	fprintf(out, "%.*s", (int)(start - *text), *text);
	if (!strcmp(name, "metrics"))
		plumb_generate_metrics(out);
	else if (!strcmp(name, "operators"))
		plumb_generate_operators(out);
	else if (!strcmp(name, "thresholds"))
		plumb_findings_docs(out);
	else
		plumb_generate_options(verb, out);
	fputs(stop, out);
	if (fclose(out))
		return false;
	free(*text);
	*text = result;
	return true;
}

/* Rewrites the page NAME.md, which must have SECTION; VERB may be NULL, for a page of no verb. */
static int
docs_page(const char *name, const char *section, const struct plumb_verb *verb, const char *folder,
          struct plumb_error *error)
{
	struct plumb_output output;
	char path[4096], *text;
	int result;

	snprintf(path, sizeof path, "%s/%s.md", folder, name);
	if (!verb && access(path, F_OK) != 0)
		return 0;
	text = read_page(path, verb, error);
	if (!text)
		return error->code;
	if (!replace_section(&text, section, verb)) {
		free(text);
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s lacks the markers of its %s: put in " PLUMB_DOCS_BEGIN, path,
		                  section, section);
	}
	replace_section(&text, "metrics", verb);
	replace_section(&text, "operators", verb);
	/* The markers were found, so the page is ours. */
	result = plumb_output_open(&output, path, NULL, error);
	if (!result) {
		fputs(text, output.file);
		result = plumb_output_close(&output, error);
	}
	free(text);
	return result;
}

static int
write_docs_pages(const struct plumb_verb *const *verbs, const char *folder,
                 struct plumb_error *error)
{
	int result = 0;

	for (size_t i = 0; !result && verbs[i]; i++)
		if (!verbs[i]->hidden)
			result = docs_page(verbs[i]->name, "options", verbs[i], folder, error);
	if (!result)
		result = docs_page("findings", "thresholds", NULL, folder, error);
	return result;
}

/* ---- the verb ---- */

int
plumb_cmd_generate(struct plumb_invocation *invocation)
{
	const char *what = invocation->operands[0];
	const char *folder = invocation->operand_count > 1 ? invocation->operands[1] : ".";
	struct plumb_error error;
	int result = 0;

	if (!strcmp(what, "man"))
		result = write_man_pages(invocation->verbs, folder, &error);
	else if (!strcmp(what, "docs"))
		result = write_docs_pages(invocation->verbs, folder, &error);
	else if (!strcmp(what, "completion-bash"))
		plumb_generate_bash(invocation->verbs, invocation->out);
	else if (!strcmp(what, "completion-zsh"))
		plumb_generate_zsh(invocation->verbs, invocation->out);
	else if (!strcmp(what, "completion-fish"))
		plumb_generate_fish(invocation->verbs, invocation->out);
	else
		return plumb_cli_usage(invocation, "generate cannot write \"%s\"", what);
	return result < 0 ? plumb_cli_fail(invocation, &error) : PLUMB_EXIT_DONE;
}

const struct plumb_verb plumb_verb_generate = {
	.name = "generate",
	.summary = "write man pages, shell completion, or the generated sections of docs",
	.synopsis = "man|docs|completion-bash|completion-zsh|completion-fish [DIR]",
	.description = "man writes plumb.1 and a page for each verb into DIR. docs rewrites the "
		       "generated sections of DIR/VERB.md. Completion goes to standard output.",
	.min_operands = 1,
	.max_operands = 2,
	.complete = PLUMB_COMPLETE_FOLDER,
	.hidden = true,
	.data = true,
	.run = plumb_cmd_generate,
};
