/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer and the check of a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

struct output {
	FILE *file;
	char *text;
	size_t bytes;
	struct plumb_json *json;
};

static void
start(struct output *o)
{
	*o = (struct output){ 0 };
	o->file = open_memstream(&o->text, &o->bytes);
	assert_non_null(o->file);
	o->json = plumb_json_new(o->file);
	assert_non_null(o->json);
}

/* Ends the text and compares it; WANTED NULL: it must have failed. */
static void
expect(struct output *o, const char *wanted)
{
	int result = plumb_json_finish(o->json);

	fclose(o->file);
	if (wanted) {
		assert_int_equal(result, 0);
		assert_string_equal(o->text, wanted);
		assert_true(plumb_json_valid(o->text));
	} else {
		assert_true(result < 0);
	}
	free(o->text);
}

static void
test_values(void **state)
{
	struct output o;

	(void)state;
	start(&o);
	plumb_json_object(o.json);
	plumb_json_key_quantity(o.json, "least", INT64_MIN + 1);
	plumb_json_key_quantity(o.json, "greatest", INT64_MAX);
	plumb_json_key_quantity(o.json, "unknown", INT64_MIN);
	plumb_json_key(o.json, "exact");
	plumb_json_integer(o.json, INT64_MIN);
	plumb_json_key(o.json, "unsigned");
	plumb_json_unsigned(o.json, UINT64_MAX);
	plumb_json_key(o.json, "flags");
	plumb_json_array(o.json);
	plumb_json_bool(o.json, true);
	plumb_json_bool(o.json, false);
	plumb_json_null(o.json);
	plumb_json_array(o.json);
	plumb_json_end(o.json);
	plumb_json_object(o.json);
	plumb_json_end(o.json);
	plumb_json_end(o.json);
	plumb_json_key_text(o.json, "none", NULL);
	plumb_json_end(o.json);
	expect(&o, "{\"least\":-9223372036854775807,\"greatest\":9223372036854775807,"
	           "\"unknown\":null,\"exact\":-9223372036854775808,"
	           "\"unsigned\":18446744073709551615,\"flags\":[true,false,null,[],{}],"
	           "\"none\":null}\n");
}

static void
test_members(void **state)
{
	struct output o;

	(void)state;
	start(&o);
	plumb_json_object(o.json);
	plumb_json_key_array(o.json, "list");
	plumb_json_end(o.json);
	plumb_json_key_object(o.json, "object");
	plumb_json_key_bool(o.json, "flag", true);
	plumb_json_key_number(o.json, "half", 0.5);
	plumb_json_end(o.json);
	plumb_json_key_line(o.json, "line", 12);
	plumb_json_key_line(o.json, "no_line", 0);
	plumb_json_end(o.json);
	expect(&o, "{\"list\":[],\"object\":{\"flag\":true,\"half\":0.5},"
	           "\"line\":12,\"no_line\":null}\n");
}

static void
test_numbers(void **state)
{
	struct output o;

	(void)state;
	start(&o);
	plumb_json_array(o.json);
	plumb_json_number(o.json, 0.1);
	plumb_json_number(o.json, 1.0 / 3);
	plumb_json_number(o.json, 1e300);
	plumb_json_number(o.json, 0.0 / 0.0);
	plumb_json_number(o.json, -1.0 / 0.0);
	plumb_json_end(o.json);
	expect(&o, "[0.1,0.3333333333333333,1e+300,null,null]\n");
}

static void
test_text(void **state)
{
	struct output o;

	(void)state;
	start(&o);
	plumb_json_array(o.json);
	plumb_json_text(o.json, "a\"b\\c\n\t\001\177");
	plumb_json_text(o.json, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	/* a lone continuation, a cut sequence, an overlong slash, a surrogate */
	plumb_json_text(o.json, "\x80|\xe2\x82|\xc0\xaf|\xed\xa0\x80");
	plumb_json_end(o.json);
	expect(&o, "[\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\",\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\","
	           "\"\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|"
	           "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"]\n");
}

static void
test_depth(void **state)
{
	enum { DEPTH = 100000 };
	struct output o;

	(void)state;
	start(&o);
	for (int i = 0; i < DEPTH; i++)
		plumb_json_array(o.json);
	for (int i = 0; i < DEPTH; i++)
		plumb_json_end(o.json);
	assert_int_equal(plumb_json_finish(o.json), 0);
	fclose(o.file);
	assert_int_equal(o.bytes, 2 * DEPTH + 1);
	assert_false(plumb_json_valid(o.text)); /* deeper than is checked */
	free(o.text);
}

static void
test_wrong_use(void **state)
{
	struct output o;

	(void)state;
	start(&o);
	plumb_json_object(o.json);
	plumb_json_integer(o.json, 1);
	expect(&o, NULL);
	start(&o);
	plumb_json_array(o.json);
	plumb_json_key(o.json, "a");
	expect(&o, NULL);
	start(&o);
	plumb_json_array(o.json);
	expect(&o, NULL);
	start(&o);
	plumb_json_integer(o.json, 1);
	plumb_json_integer(o.json, 2);
	expect(&o, NULL);
	start(&o);
	plumb_json_end(o.json);
	expect(&o, NULL);
	start(&o);
	plumb_json_object(o.json);
	plumb_json_key(o.json, "a");
	plumb_json_end(o.json);
	expect(&o, NULL);
	assert_true(plumb_json_finish(NULL) < 0);
}

static void
test_full_disk(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct plumb_json *json;

	(void)state;
	assert_non_null(full);
	json = plumb_json_new(full);
	plumb_json_integer(json, 1);
	assert_true(plumb_json_finish(json) < 0);
	fclose(full);
}

static void
test_raw(void **state)
{
	struct output o;

	(void)state;
	start(&o);
	plumb_json_array(o.json);
	plumb_json_raw(o.json, "{\"a\": [1, 2.5e3]}");
	plumb_json_raw(o.json, "{\"a\": ");
	plumb_json_raw(o.json, NULL);
	plumb_json_end(o.json);
	expect(&o, "[{\"a\": [1, 2.5e3]},null,null]\n");
}

static void
test_valid(void **state)
{
	static const char *const good[] = {
		"0",
		"-1.5E+3",
		"\"\\u00e9\\n\"",
		"[]",
		"{}",
		" [ 1 , { \"a\" : [ ] } ] ",
		"null",
		"{\"a\":{\"b\":[[],[{}]]},\"c\":true}",
	};
	static const char *const bad[] = {
		"",         " ",      "01",         "1.",          "+1",   "-",    "1e",
		"\"",       "\"\n\"", "\"\\x\"",    "\"\\u12g4\"", "[1,]", "[,1]", "{\"a\"}",
		"{\"a\":}", "{a:1}",  "{\"a\":1,}", "[1}",         "]",    "1 2",  "nul",
		"nullx",    "[1",     "{\"a\":1",   "\"\xff\"",    "[1]]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (!plumb_json_valid(good[i]))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (plumb_json_valid(bad[i]))
			fail_msg("taken: %s", bad[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),    cmocka_unit_test(test_members),
		cmocka_unit_test(test_numbers),   cmocka_unit_test(test_text),
		cmocka_unit_test(test_depth),     cmocka_unit_test(test_wrong_use),
		cmocka_unit_test(test_full_disk), cmocka_unit_test(test_raw),
		cmocka_unit_test(test_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
