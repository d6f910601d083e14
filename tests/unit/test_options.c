/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of options, the frame around verbs, and what is generated from their descriptions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "cli/generate.h"

static const struct plumb_option table[] = {
	{ .name = "output",
	  .letter = 'o',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE",
	  .help = "write to FILE" },
	{ .name = "top",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .fallback = "20",
	  .help = "show N" },
	{ .name = "limit",
	  .kind = PLUMB_OPTION_SIZE,
	  .argument = "SIZE",
	  .fallback = "64M",
	  .help = "at most SIZE" },
	{ .name = "by",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "WHAT",
	  .choices = "line|kernel",
	  .help = "group by WHAT" },
	{ .name = "json", .letter = 'j', .kind = PLUMB_OPTION_FLAG, .help = "write JSON" },
	{ .name = "jsonl",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "it's \"lines\" of [JSON]: one\\a row" },
	{ 0 },
};

struct parsed {
	struct plumb_options *options;
	char **operands;
	int count, result;
	struct plumb_error error;
};

/* WORDS are parted by spaces; the first is the verb. */
static struct parsed
parse(const char *words, bool stop)
{
	static char line[400];
	static char *argv[32];
	struct parsed p = { 0 };
	int argc = 0;

	snprintf(line, sizeof line, "%s", words);
	for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	p.result = plumb_options_parse(table, stop, argc, argv, &p.options, &p.operands, &p.count,
	                               &p.error);
	return p;
}

static void
test_each_and_tail(void **state)
{
	struct parsed p = parse("verb a --output x --top 3 b --output y", false);

	(void)state;
	assert_string_equal(plumb_options_text(p.options, "output"), "y");
	assert_string_equal(plumb_options_each(p.options, "output", 0), "x");
	assert_string_equal(plumb_options_each(p.options, "output", 1), "y");
	assert_null(plumb_options_each(p.options, "output", 2));
	assert_null(plumb_options_each(p.options, "by", 0));
	assert_int_equal(plumb_options_tail(p.options), 0);
	assert_int_equal(p.count, 2);
	plumb_options_free(p.options);
	p = parse("verb a --top 3 b -- c --output", false);
	assert_int_equal(p.count, 4);
	assert_int_equal(plumb_options_tail(p.options), 2);
	assert_string_equal(p.operands[2], "c");
	plumb_options_free(p.options);
}

static void
test_given_and_fallback(void **state)
{
	struct parsed p =
		parse("verb a -o x.plumb b --limit=2G --by kernel -j --output y -- --top", false);

	(void)state;
	assert_int_equal(p.result, 0);
	assert_string_equal(plumb_options_text(p.options, "output"), "y");
	assert_true(plumb_options_number(p.options, "limit") == INT64_C(2) << 30);
	assert_int_equal(plumb_options_number(p.options, "top"), 20);
	assert_false(plumb_options_given(p.options, "top"));
	assert_true(plumb_options_given(p.options, "limit"));
	assert_string_equal(plumb_options_text(p.options, "by"), "kernel");
	assert_int_equal(plumb_options_choice(p.options, "by"), 1);
	assert_true(plumb_options_flag(p.options, "json"));
	assert_false(plumb_options_flag(p.options, "jsonl"));
	assert_false(plumb_options_given(p.options, "help"));
	assert_int_equal(p.count, 3);
	assert_string_equal(p.operands[0], "a");
	assert_string_equal(p.operands[1], "b");
	assert_string_equal(p.operands[2], "--top");
	plumb_options_free(p.options);
	p = parse("verb", false);
	assert_null(plumb_options_text(p.options, "by"));
	assert_true(plumb_options_choice(p.options, "by") == UINT32_MAX);
	assert_int_equal(p.count, 0);
	plumb_options_free(p.options);
}

static void
test_stop(void **state)
{
	struct parsed p = parse("run -j python -o x --top 3", true);

	(void)state;
	assert_int_equal(p.result, 0);
	assert_int_equal(p.count, 5);
	assert_string_equal(p.operands[0], "python");
	assert_null(plumb_options_text(p.options, "output"));
	plumb_options_free(p.options);
}

static void
test_refused(void **state)
{
	static const struct {
		const char *words, *says;
	} cases[] = {
		{ "verb --nothing", "--nothing" },
		{ "verb -x", "-x" },
		{ "verb --js", "--js" }, /* short for two */
		{ "verb --top", "--top" },
		{ "verb --top=-1", "-1" },
		{ "verb --top 1x", "1x" },
		{ "verb --top 99999999999999999999", "--top" },
		{ "verb --limit 5Q", "5Q" },
		{ "verb --limit 99999999999G", "--limit" },
		{ "verb --by kern", "line|kernel" },
		{ "verb --json=1", "--json" },
		{ "verb --help=1", "--help" },
		{ "verb --output=", "--output" },
		{ "verb -o", "--output" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct parsed p = parse(cases[i].words, false);
		assert_int_equal(p.result, PLUMB_EUSAGE);
		if (!strstr(p.error.message, cases[i].says))
			fail_msg("%s: %s", cases[i].words, p.error.message);
		plumb_options_free(p.options);
	}
}

static void
test_sizes(void **state)
{
	(void)state;
	assert_int_equal(plumb_parse_size("0"), 0);
	assert_int_equal(plumb_parse_size("4096"), 4096);
	assert_int_equal(plumb_parse_size("64k"), 65536);
	assert_int_equal(plumb_parse_size("64KiB"), 65536);
	assert_int_equal(plumb_parse_size("1MB"), 1048576);
	assert_int_equal(plumb_parse_size(""), -1);
	assert_int_equal(plumb_parse_size("M"), -1);
	assert_int_equal(plumb_parse_size("1.5G"), -1);
	assert_int_equal(plumb_parse_size("1 G"), -1);
	assert_int_equal(plumb_parse_size("8388608T"), -1);
	assert_int_equal(plumb_parse_number("9223372036854775799"), INT64_C(9223372036854775799));
	assert_int_equal(plumb_parse_number("9223372036854775808"), -1);
}

/* ---- the frame ---- */

static int
do_show(struct plumb_invocation *invocation)
{
	fprintf(invocation->out, "shown %d\n", invocation->operand_count);
	return PLUMB_EXIT_GATE;
}

static const struct plumb_verb show = {
	.name = "show",
	.summary = "show what there is",
	.synopsis = "FILE...",
	.options = table,
	.description = "One paragraph.\n\n.Two, which begins with a dot.",
	.min_operands = 1,
	.max_operands = 2,
	.run = do_show,
};
static const struct plumb_verb start = {
	.name = "start",
	.summary = "start",
	.synopsis = "CMD",
	.max_operands = 1,
	.usage_exit = 125,
	.stop = true,
	.run = do_show,
};
static const struct plumb_verb *const verbs[] = { &show, &start, &plumb_verb_help, NULL };

struct ran {
	int code;
	char out[8000], err[2000];
};

static struct ran
run(const char *words)
{
	char line[400], *argv[32], *text[2] = { NULL, NULL };
	size_t bytes[2];
	FILE *streams[2] = { open_memstream(&text[0], &bytes[0]),
		             open_memstream(&text[1], &bytes[1]) };
	struct ran r;
	int argc = 0;

	snprintf(line, sizeof line, "%s", words);
	for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	r.code = plumb_cli_main(verbs, argc, argv, streams[0], streams[1]);
	fclose(streams[0]);
	fclose(streams[1]);
	snprintf(r.out, sizeof r.out, "%s", text[0]);
	snprintf(r.err, sizeof r.err, "%s", text[1]);
	free(text[0]);
	free(text[1]);
	return r;
}

static void
test_frame(void **state)
{
	struct ran r = run("plumb show a b");

	(void)state;
	assert_int_equal(r.code, PLUMB_EXIT_GATE);
	assert_string_equal(r.out, "shown 2\n");
	assert_string_equal(r.err, "");
	assert_int_equal(run("plumb show").code, PLUMB_EXIT_USAGE);
	assert_int_equal(run("plumb show a b c").code, PLUMB_EXIT_USAGE);
	assert_int_equal(run("plumb start --bad").code, 125);
	r = run("plumb show --bad a");
	assert_int_equal(r.code, PLUMB_EXIT_USAGE);
	assert_string_equal(r.out, "");
	assert_string_equal(r.err, "plumb: show: unknown option --bad "
	                           "(see \"plumb help show\")\n");
	r = run("plumb shw");
	assert_int_equal(r.code, PLUMB_EXIT_USAGE);
	assert_non_null(strstr(r.err, "did you mean:\n  plumb show\n"));
	r = run("plumb");
	assert_int_equal(r.code, PLUMB_EXIT_USAGE);
	assert_non_null(strstr(r.err, "Usage: plumb VERB"));
}

static void
test_help_names_everything(void **state)
{
	struct ran r = run("plumb show --help");
	struct ran other = run("plumb help show");

	(void)state;
	assert_int_equal(r.code, PLUMB_EXIT_DONE);
	assert_string_equal(r.out, other.out);
	for (const struct plumb_option *o = table; o->name; o++)
		assert_non_null(strstr(r.out, o->name));
	assert_non_null(strstr(r.out, "(default: 64M)"));
	assert_non_null(strstr(r.out, "line, kernel"));
	assert_non_null(strstr(r.out, "-o, --output FILE"));
	assert_non_null(strstr(run("plumb help metrics").out, "gpu.occupancy"));
	assert_int_equal(run("plumb help nothing").code, PLUMB_EXIT_USAGE);
	assert_int_equal(run("plumb --help").code, PLUMB_EXIT_DONE);
}

static void
test_man_page(void **state)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	plumb_generate_man(verbs, &show, out);
	fclose(out);
	assert_non_null(strstr(text, "\n\\&.Two, which begins with a dot."));
	assert_non_null(strstr(text, "\\-o, \\-\\-output FILE"));
	assert_non_null(strstr(text, "one\\ea row"));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_given_and_fallback),
		cmocka_unit_test(test_each_and_tail),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_help_names_everything),
		cmocka_unit_test(test_man_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
