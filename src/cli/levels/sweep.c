/* SPDX-License-Identifier: Apache-2.0 */
/* One profile for each value that stands in the command, and the table A1 of all of them. */
#include <stdlib.h>
#include <string.h>

#include "cli/levels/levels.h"
#include "cli/tables_text.h"
#include "cli/terminal.h"
#include "view/levels.h"
#include "view/view.h"

struct sweep {
	struct plumb_levels_wanted *wanted;
	char name[64], token[72]; /* "batch", "{batch}" */
	const char *values[PLUMB_TABLES_PROFILES];
	uint32_t count;
	char *text; /* the values, cut */
	struct plumb_profile profiles[PLUMB_TABLES_PROFILES];
	char outputs[PLUMB_TABLES_PROFILES][PATH_MAX];
	bool measured[PLUMB_TABLES_PROFILES];
};

/* ---- what is asked for ---- */

static int
read_values(struct sweep *s, const char *text)
{
	const struct plumb_invocation *invocation = s->wanted->invocation;
	const char *equals = strchr(text, '=');
	char *save = NULL;

	if (!equals || equals == text || !equals[1] || (size_t)(equals - text) >= sizeof s->name)
		return plumb_cli_usage(invocation,
		                       "levels: --sweep takes NAME=VALUES, such as batch=1,2,4");
	snprintf(s->name, sizeof s->name, "%.*s", (int)(equals - text), text);
	snprintf(s->token, sizeof s->token, "{%s}", s->name);
	s->text = strdup(equals + 1);
	for (char *value = s->text ? strtok_r(s->text, ",", &save) : NULL; value;
	     value = strtok_r(NULL, ",", &save)) {
		if (s->count == PLUMB_TABLES_PROFILES)
			return plumb_cli_usage(invocation,
			                       "levels: --sweep takes at most %d values",
			                       PLUMB_TABLES_PROFILES);
		if (strchr(value, '/'))
			return plumb_cli_usage(invocation,
			                       "levels: values of --sweep become parts of file "
			                       "names, so they have no slash");
		if (!strcmp(s->name, "batch") && plumb_parse_number(value) <= 0)
			return plumb_cli_usage(invocation,
			                       "levels: --sweep batch= takes sizes such as 1,2,4, "
			                       "not \"%s\"",
			                       value);
		s->values[s->count++] = value;
	}
	if (!s->count)
		return plumb_cli_usage(invocation, "levels: --sweep has no values");
	for (char *const *word = s->wanted->argv; *word; word++)
		if (strstr(*word, s->token))
			return 0;
	return plumb_cli_usage(invocation,
	                       "levels: the command has no %s, where --sweep would put the values; "
	                       "write it where the program takes the value",
	                       s->token);
}

/* ---- one value ---- */

/* WORD with VALUE for every {NAME}; malloced. NULL: no memory. */
static char *
fill_in(const struct sweep *s, const char *word, const char *value)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	const char *at;

	if (!out)
		return NULL;
	for (; (at = strstr(word, s->token)); word = at + strlen(s->token)) {
		fwrite(word, 1, (size_t)(at - word), out);
		fputs(value, out);
	}
	fputs(word, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void
free_words(char **words)
{
	for (char **word = words; word && *word; word++)
		free(*word);
	free(words);
}

static char **
fill_in_all(const struct sweep *s, const char *value)
{
	size_t count = 0;
	char **words;

	while (s->wanted->argv[count])
		count++;
	words = calloc(count + 1, sizeof *words);
	for (size_t i = 0; words && i < count; i++) {
		words[i] = fill_in(s, s->wanted->argv[i], value);
		if (!words[i]) {
			free_words(words);
			return NULL;
		}
	}
	return words;
}

/* "levels.plumb" becomes "levels.batch-4.plumb". */
static void
name_output(struct sweep *s, uint32_t i)
{
	const char *path = s->wanted->output, *dot = strrchr(path, '.'),
		   *slash = strrchr(path, '/');
	int stem = dot && (!slash || dot > slash) ? (int)(dot - path) : (int)strlen(path);

	snprintf(s->outputs[i], PATH_MAX, "%.*s.%s-%.100s%s", stem, path, s->name, s->values[i],
	         path + stem);
}

/* A value whose program fails is left out. Negative: stop. */
static int
measure_value(struct sweep *s, uint32_t i, struct plumb_error *error)
{
	struct plumb_levels_wanted one = *s->wanted;
	char **words = fill_in_all(s, s->values[i]);
	int code;

	name_output(s, i);
	if (!words)
		return plumb_fail_memory(error, "for the sweep");
	if (!one.quiet)
		plumb_cli_note(one.invocation, "%s %s: %u of %u", s->name, s->values[i], i + 1,
		               s->count);
	one.argv = words;
	one.output = s->outputs[i];
	code = plumb_levels_run(&one, &s->profiles[i], error);
	s->wanted->again = one.again;
	free_words(words);
	s->measured[i] = !code;
	if (!code)
		return 0;
	plumb_profile_free(&s->profiles[i]);
	memset(&s->profiles[i], 0, sizeof s->profiles[i]);
	if (code == PLUMB_EUSAGE || s->wanted->program->interrupted)
		return code;
	plumb_cli_note(one.invocation, "%s %s is left out: %s", s->name, s->values[i],
	               error->message);
	return 0;
}

/* ---- the table ---- */

static int
add_profiles(struct sweep *s, struct plumb_tables *tables, struct plumb_error *error)
{
	bool batch = !strcmp(s->name, "batch");
	uint32_t added = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		struct plumb_tables_profile profile = {
			.profile = &s->profiles[i],
			.file = s->outputs[i],
			.batch = batch ? plumb_parse_number(s->values[i]) : 0,
		};
		if (!s->measured[i])
			continue;
		if (plumb_tables_add(tables, &profile, error) < 0)
			plumb_cli_note(s->wanted->invocation, "%s is left out of the table: %s",
			               s->values[i], error->message);
		else
			added++;
	}
	if (!added)
		return plumb_fail(error, PLUMB_EEMPTY, "no value of --sweep could be measured");
	return plumb_tables_make(tables, error);
}

static int
print_tables(const struct sweep *s, const struct plumb_tables *tables, struct plumb_error *error)
{
	const struct plumb_invocation *invocation = s->wanted->invocation;
	FILE *out = invocation->out;

	if (plumb_options_flag(invocation->options, "csv"))
		return plumb_tables_write(tables, PLUMB_VIEW_CSV, out, error);
	if (!plumb_options_flag(invocation->options, "json"))
		return plumb_tables_text(&tables->answers[0], out, 0)
		               ? plumb_fail_memory(error, "for the table")
		               : 0;
	struct plumb_json *json = plumb_view_json_new(out, "levels");
	int code = 0;

	plumb_json_key_text(json, "sweep", s->name);
	plumb_json_key_array(json, "values");
	for (uint32_t i = 0; i < s->count && !code; i++) {
		plumb_json_object(json);
		plumb_json_key_text(json, "value", s->values[i]);
		plumb_json_key_text(json, "file", s->measured[i] ? s->outputs[i] : NULL);
		if (s->measured[i])
			code = plumb_levels_json(&s->profiles[i], PLUMB_LEVELS_ALL, 0, json, error);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_key_array(json, "tables");
	plumb_view_answer_json(&tables->answers[0], json);
	plumb_json_end(json);
	plumb_json_end(json);
	if (plumb_json_finish(json) < 0 && !code)
		code = plumb_fail(error, PLUMB_ESYSTEM, "cannot write the answer");
	return code;
}

static int
answer(struct sweep *s, struct plumb_error *error)
{
	struct plumb_tables_query query = { .as_given = strcmp(s->name, "batch") != 0 };
	struct plumb_tables *tables;
	int code;

	plumb_tables_want(&query, plumb_tables_find("A1"));
	tables = plumb_tables_new(&query);
	code = tables ? add_profiles(s, tables, error) : plumb_fail_memory(error, "for the table");
	if (!code)
		code = print_tables(s, tables, error);
	plumb_tables_free(tables);
	return code;
}

int
plumb_levels_sweep(struct plumb_levels_wanted *wanted, const char *text)
{
	struct sweep *s = calloc(1, sizeof *s);
	struct plumb_error error = { 0 };
	int result, code = 0;

	if (!s) {
		plumb_fail_memory(&error, "for the sweep");
		return plumb_cli_fail(wanted->invocation, &error);
	}
	s->wanted = wanted;
	result = read_values(s, text);
	for (uint32_t i = 0; i < s->count && !result && !code; i++)
		code = measure_value(s, i, &error);
	if (!result && !code)
		code = answer(s, &error);
	if (!result && code && !ferror(wanted->invocation->out))
		result = plumb_cli_fail(wanted->invocation, &error);
	for (uint32_t i = 0; i < s->count; i++)
		plumb_profile_free(&s->profiles[i]);
	free(s->text);
	free(s);
	return result;
}
