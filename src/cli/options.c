/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/suggest.h"

/* getopt's value of the option with index I of the table; beyond any letter. */
#define VALUE_OF(i) (256 + (int)(i))
#define HELP 'h'

struct plumb_options {
	const struct plumb_option *table;
	size_t count;
	bool help;
	int tail; /* words behind a "--" */
	struct given {
		size_t index; /* of the table */
		const char *text;
	} *all; /* what was given, in order */
	size_t all_count;
	char unknown[64];    /* the name of the long option that is not in the table */
	const char *given[]; /* by index of the table; "" for a flag, NULL: not given */
};

static size_t
table_count(const struct plumb_option *table)
{
	size_t count = 0;

	while (table && table[count].name)
		count++;
	return count;
}

int64_t
plumb_parse_number(const char *text)
{
	int64_t value = 0;

	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value > (INT64_MAX - 9) / 10)
			return -1;
		value = value * 10 + (*text - '0');
	}
	return value;
}

int64_t
plumb_parse_size(const char *text)
{
	static const char units[] = "KMGT";
	size_t digits = strspn(text, "0123456789");
	char number[24];
	int64_t value;
	int shift = 0;

	if (digits >= sizeof number)
		return -1;
	memcpy(number, text, digits);
	number[digits] = '\0';
	value = plumb_parse_number(number);
	text += digits;
	if (value < 0)
		return -1;
	if (*text) {
		char letter = *text >= 'a' && *text <= 'z' ? (char)(*text - 'a' + 'A') : *text;
		const char *unit = strchr(units, letter);
		if (!unit)
			return -1;
		shift = 10 * (int)(unit - units + 1);
		text++;
		/* "MiB" and "MB" are taken for what people mean by them here. */
		if (!strcmp(text, "iB") || !strcmp(text, "B"))
			text += strlen(text);
	}
	if (*text || value > INT64_MAX >> shift)
		return -1;
	return value << shift;
}

/* Which of the CHOICES, from 0, TEXT is; -1: none. */
static int
find_choice(const char *choices, const char *text)
{
	size_t bytes = strlen(text);
	int which = 0;

	for (const char *c = choices; bytes && c; c = strchr(c, '|'), which++) {
		c += *c == '|';
		if (!strncmp(c, text, bytes) && (c[bytes] == '|' || !c[bytes]))
			return which;
	}
	return -1;
}

static int
check_value(const struct plumb_option *option, const char *text, struct plumb_error *error)
{
	switch (option->kind) {
	case PLUMB_OPTION_FLAG:
		return 0;
	case PLUMB_OPTION_TEXT:
		if (*text)
			return 0;
		return plumb_fail(error, PLUMB_EUSAGE, "--%s needs a value; this one is empty",
		                  option->name);
	case PLUMB_OPTION_NUMBER:
		if (plumb_parse_number(text) >= 0)
			return 0;
		return plumb_fail(error, PLUMB_EUSAGE, "--%s takes a whole number, not \"%s\"",
		                  option->name, text);
	case PLUMB_OPTION_SIZE:
		if (plumb_parse_size(text) >= 0)
			return 0;
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--%s takes a size such as 512K, 64M or 1G, not \"%s\"",
		                  option->name, text);
	case PLUMB_OPTION_CHOICE:
		if (find_choice(option->choices, text) >= 0)
			return 0;
		return plumb_fail(error, PLUMB_EUSAGE, "--%s takes one of %s, not \"%s\"",
		                  option->name, option->choices, text);
	}
	return plumb_fail(error, PLUMB_EUSAGE, "--%s has an unknown kind", option->name);
}

/* Fills getopt's two descriptions from the table. LETTERS has room for 3 characters an option. */
static void
describe_options(const struct plumb_option *table, size_t count, bool stop, char *letters,
                 struct option *names)
{
	char *l = letters;

	if (stop)
		*l++ = '+';
	*l++ = ':';
	*l++ = HELP;
	for (size_t i = 0; i < count; i++) {
		bool argument = table[i].kind != PLUMB_OPTION_FLAG;
		int has = !argument       ? no_argument
		          : table[i].bare ? optional_argument
		                          : required_argument;
		names[i] = (struct option){ table[i].name, has, NULL, VALUE_OF(i) };
		if (table[i].letter) {
			*l++ = table[i].letter;
			for (int colons = has; colons; colons--)
				*l++ = ':';
		}
	}
	names[count] = (struct option){ "help", 0, NULL, HELP };
	*l = '\0';
}

/* The options that NAME may mean, as ", --x or --y": those that begin with it, else the nearest
 * one. */
static void
find_nearest(const struct plumb_options *options, const char *name, char *text, size_t size)
{
	size_t length = strlen(name), used = 0, begun = 0, best = options->count;
	unsigned least = 0;

	*text = '\0';
	for (size_t i = 0; i < options->count; i++)
		begun += length && !strncmp(options->table[i].name, name, length);
	for (size_t i = 0, seen = 0; i < options->count && used < size; i++) {
		const char *other = options->table[i].name;
		unsigned distance = plumb_suggest_distance(name, other);
		if (length && !strncmp(other, name, length))
			used += (size_t)snprintf(text + used, size - used, "%s--%s",
			                         !seen++         ? ""
			                         : seen == begun ? " or "
			                                         : ", ",
			                         other);
		else if (plumb_suggest_is_near(name, other) &&
		         (best == options->count || distance < least)) {
			best = i;
			least = distance;
		}
	}
	if (!begun && best < options->count)
		snprintf(text, size, "--%s", options->table[best].name);
}

static int
refuse_unknown(struct plumb_options *options, const char *word, struct plumb_error *error)
{
	const char *name = word + strspn(word, "-");
	size_t length = strcspn(name, "=");
	char near[300];

	snprintf(options->unknown, sizeof options->unknown, "%.*s", (int)length, name);
	find_nearest(options, options->unknown, near, sizeof near);
	return plumb_fail(error, PLUMB_EUSAGE, "unknown option %.*s%s%s%s",
	                  (int)((size_t)(name - word) + length), word,
	                  *near ? "; did you mean " : "", near, *near ? "?" : "");
}

/* The word that getopt_long was at when it met the letter VALUE that is no option. */
static const char *
word_of_letter(char **argv, int value)
{
	for (int at = optind; at >= optind - 1 && at > 0; at--)
		if (argv[at] && argv[at][0] == '-' && argv[at][1] != '-' && strchr(argv[at], value))
			return argv[at];
	return NULL;
}

static int
refuse_option(struct plumb_options *options, int result, int value, char **argv,
              struct plumb_error *error)
{
	const char *name = NULL, *word;

	for (size_t i = 0; i < options->count; i++)
		if (value == VALUE_OF(i) || (value && value == options->table[i].letter))
			name = options->table[i].name;
	if (result == ':')
		return plumb_fail(error, PLUMB_EUSAGE, "--%s needs a value", name ? name : "?");
	if (name || value == HELP)
		return plumb_fail(error, PLUMB_EUSAGE, "--%s takes no value", name ? name : "help");
	if (!value)
		return refuse_unknown(options, argv[optind - 1], error);
	word = word_of_letter(argv, value);
	if (word && word[2]) /* -cpu for --cpu */
		return refuse_unknown(options, word, error);
	return plumb_fail(error, PLUMB_EUSAGE, "unknown option -%c", value);
}

static int
parse_arguments(struct plumb_options *options, const char *letters, const struct option *names,
                int argc, char **argv, struct plumb_error *error)
{
	opterr = 0;
	optind = 0; /* glibc: start afresh */
	for (;;) {
		int value = getopt_long(argc, argv, letters, names, NULL);
		size_t index = options->count;

		if (value < 0)
			return 0;
		if (value == '?' || value == ':')
			return refuse_option(options, value, optopt, argv, error);
		if (value == HELP) {
			options->help = true;
			continue;
		}
		for (size_t i = 0; i < options->count; i++)
			if (value == VALUE_OF(i) || value == options->table[i].letter)
				index = i;
		const char *bare = options->table[index].bare;
		const char *text = optarg ? optarg : bare ? bare : "";
		if (check_value(&options->table[index], text, error) < 0)
			return PLUMB_EUSAGE;
		options->given[index] = text;
		options->all[options->all_count++] = (struct given){ index, text };
	}
}

int
plumb_options_parse(const struct plumb_option *table, bool stop, int argc, char **argv,
                    struct plumb_options **options, char ***operands, int *operand_count,
                    struct plumb_error *error)
{
	size_t count = table_count(table);
	struct option *names = calloc(count + 2, sizeof *names);
	char *letters = malloc(3 * count + 8);
	struct plumb_options *o = calloc(1, sizeof *o + count * sizeof *o->given);
	int result;

	*options = o;
	if (o)
		o->all = calloc((size_t)argc + 1, sizeof *o->all);
	if (!names || !letters || !o || !o->all) {
		result = plumb_fail_memory(error, NULL);
		goto out;
	}
	o->table = table;
	o->count = count;
	for (int i = 1; i < argc && !o->tail; i++)
		if (!strcmp(argv[i], "--"))
			o->tail = argc - i - 1;
	describe_options(table, count, stop, letters, names);
	result = parse_arguments(o, letters, names, argc, argv, error);
	*operands = argv + optind;
	*operand_count = argc - optind;
out:
	free(letters);
	free(names);
	return result;
}

void
plumb_options_free(struct plumb_options *options)
{
	if (options)
		free(options->all);
	free(options);
}

/* Options that every verb has are not in its table. */
static bool
is_help(const char *name)
{
	return !strcmp(name, plumb_common_options[0].name);
}

static size_t
index_of(const struct plumb_options *options, const char *name)
{
	for (size_t i = 0; i < options->count; i++)
		if (!strcmp(options->table[i].name, name))
			return i;
	abort(); /* a verb asks for an option that it does not describe */
}

const char *
plumb_options_text(const struct plumb_options *options, const char *name)
{
	size_t i = index_of(options, name);

	return options->given[i] ? options->given[i] : options->table[i].fallback;
}

bool
plumb_options_given(const struct plumb_options *options, const char *name)
{
	if (is_help(name))
		return options->help;
	return options->given[index_of(options, name)] != NULL;
}

const char *
plumb_options_each(const struct plumb_options *options, const char *name, size_t which)
{
	size_t index = index_of(options, name);

	for (size_t i = 0; i < options->all_count; i++)
		if (options->all[i].index == index && !which--)
			return options->all[i].text;
	return NULL;
}

const char *
plumb_options_unknown(const struct plumb_options *options)
{
	return options ? options->unknown : "";
}

int
plumb_options_tail(const struct plumb_options *options)
{
	return options->tail;
}

bool
plumb_options_flag(const struct plumb_options *options, const char *name)
{
	return plumb_options_given(options, name);
}

uint32_t
plumb_options_choice(const struct plumb_options *options, const char *name)
{
	const char *text = plumb_options_text(options, name);
	int which = text ? find_choice(options->table[index_of(options, name)].choices, text) : -1;

	return which < 0 ? UINT32_MAX : (uint32_t)which;
}

int64_t
plumb_options_number(const struct plumb_options *options, const char *name)
{
	const char *text = plumb_options_text(options, name);

	if (!text)
		return -1;
	if (options->table[index_of(options, name)].kind == PLUMB_OPTION_SIZE)
		return plumb_parse_size(text);
	return plumb_parse_number(text);
}
