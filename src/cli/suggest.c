/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/suggest.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/finish.h"
#include "cli/run/target.h"
#include "store/store.h"

#define LONGEST 40 /* words that are compared */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- words ---- */

unsigned
plumb_suggest_distance(const char *word, const char *other)
{
	unsigned rows[3][LONGEST + 2];
	size_t n = strlen(word), m = strlen(other);

	if (n > LONGEST || m > LONGEST)
		return LONGEST;
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = last[j - 1] + (word[i - 1] != other[j - 1]);
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && word[i - 1] == other[j - 2] &&
			    word[i - 2] == other[j - 1] && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return rows[n % 3][m];
}

bool
plumb_suggest_is_near(const char *word, const char *other)
{
	size_t length = strlen(word);
	unsigned most = length < 3 ? 0 : length < 6 ? 1 : 2;

	if (length && !strncmp(word, other, length))
		return true;
	return plumb_suggest_distance(word, other) <= most;
}

const struct plumb_verb *
plumb_suggest_nearest(const struct plumb_verb *const *verbs, const char *word)
{
	const struct plumb_verb *best = NULL;
	unsigned least = UINT32_MAX;

	for (; *verbs; verbs++) {
		unsigned distance = plumb_suggest_distance(word, (*verbs)->name);
		if (!(*verbs)->hidden && distance < least &&
		    plumb_suggest_is_near(word, (*verbs)->name)) {
			best = *verbs;
			least = distance;
		}
	}
	return best;
}

/* ---- files and programs ---- */

static bool
is_file(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode);
}

static bool
is_program(const char *name)
{
	struct plumb_target target;

	plumb_target_find(name, &target);
	return !target.error;
}

static bool
ends_in(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);

	return length > tail && !strcmp(name + length - tail, end);
}

static const char *
name_python(void)
{
	return is_program("python") || !is_program("python3") ? "python" : "python3";
}

/* Writes what runs the script PATH into TEXT, by its "#!" line or its name. NULL: unknown. */
static const char *
interpreter_of(const char *path, char *text, size_t size)
{
	FILE *in = fopen(path, "re");
	bool read = in && fgets(text, (int)size, in);

	if (in)
		fclose(in);
	if (read && !strncmp(text, "#!", 2)) {
		char *save, *word = strtok_r(text + 2, " \t\r\n", &save);
		if (word && ends_in(word, "/env"))
			word = strtok_r(NULL, " \t\r\n", &save);
		if (word && *word != '-')
			return word;
	}
	return ends_in(path, ".py") ? name_python() : ends_in(path, ".sh") ? "sh" : NULL;
}

/* ---- a command line, made word by word ---- */

struct line {
	const char **words; /* ends with NULL */
	size_t count, room;
};

static void
add_word(struct line *line, const char *word)
{
	if (line->count + 1 >= line->room) {
		size_t room = 2 * line->room + 16;
		const char **more = realloc(line->words, room * sizeof *more);
		if (!more)
			return;
		line->words = more;
		line->room = room;
	}
	line->words[line->count++] = word;
	line->words[line->count] = NULL;
}

static void
add_all(struct line *line, char *const *words)
{
	for (; *words; words++)
		add_word(line, *words);
}

static char *
finish_line(struct line *line)
{
	char *text = line->words ? plumb_shell_line(line->words) : NULL;

	free(line->words);
	return text;
}

/* "plumb", the verb and the options that were given, without a "--" at the end. */
static struct line
begin_again(const struct plumb_invocation *invocation)
{
	struct line line = { 0 };
	int count = invocation->option_words;

	add_word(&line, "plumb");
	if (count > 1 && !strcmp(invocation->words[count - 1], "--"))
		count--;
	for (int i = 0; i < count; i++)
		add_word(&line, invocation->words[i]);
	return line;
}

/* ---- no verb ---- */

/* `plumb --cpu run …`, `plumb --cpu python …`: options come after the verb. */
static char *
options_first(const struct plumb_verb *const *verbs, char *const *words)
{
	const char *name = words[0] + strspn(words[0], "-");
	struct line line = { 0 };
	size_t at = 0;

	if (!words[1] && *name &&
	    (plumb_suggest_is_near(name, "version") || plumb_suggest_is_near(name, "help")))
		return strdup(plumb_suggest_is_near(name, "help") ? "plumb --help"
		                                                  : "plumb --version");
	while (words[at] && !plumb_verb_find(verbs, words[at]))
		at++;
	add_word(&line, "plumb");
	add_word(&line, words[at] ? words[at] : "run");
	for (size_t i = 0; words[i] && i < at; i++) {
		if (!words[at] && *words[i] != '-') {
			add_word(&line, "--");
			add_all(&line, words + i);
			break;
		}
		add_word(&line, words[i]);
	}
	if (words[at])
		add_all(&line, words + at + 1);
	return finish_line(&line);
}

char *
plumb_suggest_verb(const struct plumb_verb *const *verbs, char *const *words)
{
	const struct plumb_verb *verb = plumb_suggest_nearest(verbs, words[0]);
	bool close = verb && plumb_suggest_distance(words[0], verb->name) <= 1;
	struct line line = { 0 };
	char text[256];
	const char *runner = NULL;

	if (*words[0] == '-')
		return options_first(verbs, words);
	add_word(&line, "plumb");
	if (!close && is_file(words[0]) &&
	    (plumb_store_is_profile(words[0]) || ends_in(words[0], ".json"))) {
		add_word(&line, "report");
		add_all(&line, words);
	} else if (!close && (is_program(words[0]) || ends_in(words[0], ".py") ||
	                      (is_file(words[0]) && interpreter_of(words[0], text, sizeof text)))) {
		if (!is_program(words[0]))
			runner = interpreter_of(words[0], text, sizeof text);
		add_word(&line, "run");
		add_word(&line, "--");
		if (runner)
			add_word(&line, runner);
		add_all(&line, words);
	} else if (verb) {
		add_word(&line, verb->name);
		add_all(&line, words + 1);
	} else {
		free(line.words);
		return NULL;
	}
	return finish_line(&line);
}

/* ---- run ---- */

static const struct plumb_option *
option_of(const struct plumb_invocation *invocation, const char *word)
{
	size_t length = strcspn(word, "=");

	for (const struct plumb_option *o = invocation->verb->options; o && o->name; o++) {
		if (!strncmp(word, "--", 2) && strlen(o->name) + 2 == length &&
		    !strncmp(word + 2, o->name, length - 2))
			return o;
		if (word[0] == '-' && o->letter && word[1] == o->letter && !word[2])
			return o;
	}
	return NULL;
}

/* Does the option take the word that follows it? */
static bool
takes_next(const struct plumb_option *option, const char *word)
{
	return option->kind != PLUMB_OPTION_FLAG && !option->bare && !strchr(word, '=');
}

/* `--cpu 200 python x.py`: the value needs a "=". */
static char *
joined_value(const struct plumb_invocation *invocation)
{
	const char *value = invocation->operands[0];
	int last = invocation->option_words - 1;
	const char *word = last > 0 ? invocation->words[last] : "";
	const struct plumb_option *option = option_of(invocation, word);
	struct line line;
	char *text, joined[128];

	if (!option || !option->bare || strchr(word, '=') || !strchr("0123456789", *value) ||
	    invocation->operand_count < 2)
		return NULL;
	snprintf(joined, sizeof joined, "--%s=%s", option->name, value);
	line = begin_again(invocation);
	line.words[line.count - 1] = joined;
	add_word(&line, "--");
	add_all(&line, invocation->operands + 1 + !strcmp(invocation->operands[1], "--"));
	text = finish_line(&line);
	return text;
}

/* `run -- --cpu python x.py` */
static char *
options_moved_up(const struct plumb_invocation *invocation)
{
	struct line line = begin_again(invocation);
	char *const *word = invocation->operands;

	while (*word && **word == '-') {
		const struct plumb_option *option = option_of(invocation, *word);
		add_word(&line, *word);
		if (option && takes_next(option, *word) && word[1])
			add_word(&line, *++word);
		word++;
	}
	add_word(&line, "--");
	add_all(&line, word);
	return finish_line(&line);
}

/* The program that somebody meant who typed NAME, or NULL. */
static const char *
nearest_program(const char *name)
{
	static const char *const usual[] = { "python", "python3", "torchrun",  "accelerate",
		                             "mpirun", "srun",    "deepspeed", "pytest",
		                             "bash",   "ipython", "jupyter" };

	if (!strcmp(name, "python") && is_program("python3"))
		return "python3";
	for (size_t i = 0; i < COUNT(usual); i++)
		if (strlen(name) > 2 && plumb_suggest_distance(name, usual[i]) <= 2 &&
		    is_program(usual[i]))
			return usual[i];
	return !strncmp(name, "pyt", 3) && plumb_suggest_distance(name, "python") <= 2
	               ? name_python()
	               : NULL;
}

/* `run "python x.py"`: the command was quoted as a whole. */
static char *
suggest_unquoted(const struct plumb_invocation *invocation)
{
	struct line line = begin_again(invocation);
	char first[256], *head, *text = NULL;

	add_word(&line, "--");
	head = finish_line(&line);
	snprintf(first, sizeof first, "%.*s", (int)strcspn(invocation->operands[0], " "),
	         invocation->operands[0]);
	if (head && invocation->operand_count == 1 && is_program(first) &&
	    asprintf(&text, "%s %s", head, invocation->operands[0]) < 0)
		text = NULL;
	free(head);
	return text;
}

char *
plumb_suggest_run(const struct plumb_invocation *invocation)
{
	const char *name = invocation->operands[0], *runner = NULL;
	char *text = joined_value(invocation), script[256], here[512];
	struct line line;

	if (text)
		return text;
	if (*name == '-')
		return options_moved_up(invocation);
	if (strchr(name, ' ') && !is_file(name))
		return suggest_unquoted(invocation);
	if (is_file(name) && !access(name, X_OK) && !strchr(name, '/')) {
		snprintf(here, sizeof here, "./%s", name);
		name = here;
	} else if (is_file(name)) {
		runner = interpreter_of(name, script, sizeof script);
		if (!runner)
			return NULL;
	} else {
		name = strchr(name, '/') ? NULL : nearest_program(name);
		if (!name)
			return NULL;
	}
	line = begin_again(invocation);
	add_word(&line, "--");
	if (runner)
		add_word(&line, runner);
	add_word(&line, name);
	add_all(&line, invocation->operands + 1);
	return finish_line(&line);
}

char *
plumb_suggest_moved(const struct plumb_invocation *invocation, bool sure, const char **word)
{
	static const char *const own[] = { "cpu",       "no-gpu",      "keep-cupti", "flush-ms",
		                           "user-code", "start-after", "no-command", "graphs",
		                           "toggle",    "follow" };
	const struct plumb_option *option = NULL;
	int at = 1, words = 1;
	struct line line;

	for (; at < invocation->operand_count; at++) {
		const char *text = invocation->operands[at];
		bool known = false;
		option = !strncmp(text, "--", 2) ? option_of(invocation, text) : NULL;
		for (size_t i = 0; option && i < COUNT(own); i++)
			known |= !strcmp(option->name, own[i]);
		if (option && (known || !sure))
			break;
	}
	if (at >= invocation->operand_count)
		return NULL;
	*word = invocation->operands[at];
	if (takes_next(option, *word) && at + 1 < invocation->operand_count)
		words = 2;
	line = begin_again(invocation);
	for (int i = at; i < at + words; i++)
		add_word(&line, invocation->operands[i]);
	add_word(&line, "--");
	for (int i = 0; i < invocation->operand_count; i++)
		if (i < at || i >= at + words)
			add_word(&line, invocation->operands[i]);
	return finish_line(&line);
}

/* ---- too many files ---- */

static int64_t
age_of(const char *path)
{
	struct stat status;

	return stat(path, &status)
	               ? INT64_MIN
	               : (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
}

static void
print_command(const struct plumb_invocation *invocation, struct line *line, const char *what)
{
	char *text = finish_line(line);

	fprintf(invocation->err, "  %s   # %s\n", text ? text : "", what);
	free(text);
}

/* run.plumb.0 and its like. */
static bool
is_rank(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && dot[1] && !dot[1 + strspn(dot + 1, "0123456789")];
}

int
plumb_suggest_one_file(const struct plumb_invocation *invocation)
{
	const struct plumb_verb *verb = invocation->verb;
	const char *newest = invocation->operands[0], *second = NULL;
	bool ranks = is_rank(newest);
	struct line line;

	for (int i = 1; i < invocation->operand_count; i++) {
		const char *path = invocation->operands[i];
		ranks &= is_rank(path);
		if (age_of(path) >= age_of(newest)) {
			second = newest;
			newest = path;
		} else if (!second || age_of(path) >= age_of(second)) {
			second = path;
		}
	}
	fprintf(invocation->err, "plumb: %s takes one FILE, but %d were given. Choose one:\n",
	        verb->name, invocation->operand_count);
	line = begin_again(invocation);
	add_word(&line, newest);
	print_command(invocation, &line, "the newest");
	if (ranks) {
		line = (struct line){ 0 };
		add_word(&line, "plumb");
		add_word(&line, "settle");
		add_all(&line, invocation->operands);
		add_word(&line, "-o");
		add_word(&line, "joined.plumb");
		print_command(invocation, &line, "the ranks of a job, as one profile");
	} else {
		line = (struct line){ 0 };
		add_word(&line, "plumb");
		add_word(&line, "diff");
		add_word(&line, second);
		add_word(&line, newest);
		print_command(invocation, &line, "what changed between two");
	}
	return PLUMB_EXIT_USAGE;
}
