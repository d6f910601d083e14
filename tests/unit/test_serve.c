/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of addresses, and what a page's policy is made with. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/sha256.h"
#include "serve/query.h"

static const struct plumb_query_key keys[] = {
	{ "by", PLUMB_QUERY_CHOICE, .choices = "kernel|line|lines", .fallback = "line" },
	{ "flag", PLUMB_QUERY_FLAG },
	{ "kind", PLUMB_QUERY_TEXT, .repeated = true },
	{ "text", PLUMB_QUERY_TEXT },
	{ "top", PLUMB_QUERY_NUMBER, .fallback = "20" },
	{ "x", PLUMB_QUERY_REAL },
	{ 0 },
};

/* ---- queries ---- */

/* The canonical form of TEXT; "!" if it is wrong. The caller frees it. */
static char *
canonical(const char *text, const char *const *except)
{
	struct plumb_query query;
	struct plumb_error error;
	char *made = NULL;
	size_t bytes;
	int code = plumb_query_read(&query, text, keys, &error);
	FILE *out = open_memstream(&made, &bytes);

	assert_non_null(out);
	if (code)
		fputc('!', out);
	else
		plumb_query_write(&query, except, out);
	fclose(out);
	plumb_query_free(&query);
	return made;
}

static void
assert_canonical(const char *text, const char *want)
{
	char *made = canonical(text, NULL);

	assert_string_equal(made, want);
	free(made);
}

static void
a_query_has_one_form(void **state)
{
	(void)state;
	assert_canonical(NULL, "");
	assert_canonical("", "");
	assert_canonical("&&", "");
	assert_canonical("top=5&by=kernel", "by=kernel&top=5");
	assert_canonical("by=line&top=20&flag=0", "");
	assert_canonical("kind=B&flag=1&kind=A&kind=B", "flag=1&kind=B&kind=A&kind=B");
	assert_canonical("text=a+b%2Bc%26%3d%C3%a9", "text=a%20b%2Bc%26%3D%C3%A9");
	assert_canonical("text=-_.!~*'()", "text=-_.!~*'()");
	assert_canonical("te%78t=1", "text=1");
}

static void
keys_may_be_left_out(void **state)
{
	static const char *const except[] = { "top", "x", NULL };
	char *made = canonical("top=5&by=kernel&x=1", except);

	(void)state;
	assert_string_equal(made, "by=kernel");
	free(made);
}

static void
wrong_queries_are_refused(void **state)
{
	static const char *const wrong[] = {
		"nope=1",   "top",         "top=",           "top=x",
		"top=-1",   "top= 1",      "top=1x",         "top=99999999999999999999",
		"by=",      "by=kern",     "by=kernel|line", "flag=2",
		"flag=",    "text=",       "text=%",         "text=%4",
		"text=%g0", "text=%00",    "text=%0a",       "text=%7f",
		"text=%ff", "text=%c0%80", "top=1&top=1",    "x=nan",
		"x=inf",    "x=0x10",      "x=1e999",        "x=",
		"x=1 2",    "=1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_canonical(wrong[i], "!");
}

static void
long_queries_are_refused(void **state)
{
	static char text[PLUMB_QUERY_BYTES + 2];

	(void)state;
	memset(text, '&', sizeof text - 1);
	assert_canonical(text, "!");
	text[PLUMB_QUERY_BYTES] = '\0';
	assert_canonical(text, "");
	*text = '\0';
	for (int i = 0; i < PLUMB_QUERY_PAIRS; i++)
		strcat(text, "kind=A&");
	char *most = canonical(text, NULL);
	assert_int_equal(strlen(most), PLUMB_QUERY_PAIRS * strlen("kind=A&") - 1);
	free(most);
	strcat(text, "kind=A");
	assert_canonical(text, "!");
}

static void
values_are_read_by_their_kind(void **state)
{
	struct plumb_query query;

	(void)state;
	assert_int_equal(plumb_query_read(&query, "by=lines&kind=b&x=-2.5e1&kind=a", keys, NULL),
	                 0);
	assert_int_equal(plumb_query_choice(&query, "by"), 2);
	assert_int_equal(plumb_query_number(&query, "top"), 20);
	assert_false(plumb_query_given(&query, "top"));
	assert_false(plumb_query_flag(&query, "flag"));
	assert_null(plumb_query_text(&query, "text"));
	assert_true(plumb_query_real(&query, "x") == -25);
	assert_string_equal(plumb_query_each(&query, "kind", 0), "b");
	assert_string_equal(plumb_query_each(&query, "kind", 1), "a");
	assert_null(plumb_query_each(&query, "kind", 2));
	plumb_query_free(&query);
	assert_int_equal(plumb_query_read(&query, "flag=1", keys, NULL), 0);
	assert_true(plumb_query_flag(&query, "flag"));
	assert_true(isnan(plumb_query_real(&query, "x")));
	plumb_query_free(&query);
}

/* ---- checksums ---- */

static void
assert_sha256(const void *data, size_t bytes, const char *want)
{
	unsigned char digest[PLUMB_SHA256_BYTES];
	char text[2 * PLUMB_SHA256_BYTES + 1];

	plumb_sha256(data, bytes, digest);
	for (int i = 0; i < PLUMB_SHA256_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(text, want);
}

/* The examples of FIPS 180-4, and lengths around the end of a block (by Python's hashlib). */
static void
sha256_is_that_of_the_standard(void **state)
{
	static char letters[1000000];

	(void)state;
	assert_sha256("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_sha256("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
	              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(letters, 'a', sizeof letters);
	assert_sha256(letters, sizeof letters,
	              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	assert_sha256(letters, 55,
	              "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
	assert_sha256(letters, 64,
	              "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
	assert_sha256(letters, 119,
	              "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
}

static void
base64_is_that_of_the_standard(void **state)
{
	static const char *const plain[] = { "", "f", "fo", "foo", "foob", "fooba", "foobar" };
	static const char *const coded[] = { "",         "Zg==",     "Zm8=",    "Zm9v",
		                             "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };
	char text[PLUMB_BASE64_SIZE(6)];

	(void)state;
	for (int i = 0; i < 7; i++)
		assert_string_equal(plumb_base64(plain[i], strlen(plain[i]), false, text),
		                    coded[i]);
	assert_string_equal(plumb_base64("\xfb\xff\xfe\xff", 4, true, text), "-__-_w");
	assert_string_equal(plumb_base64("\xfb\xff\xfe\xff", 4, false, text), "+//+/w==");
}

static void
base64_of_much_is_in_one_piece(void **state)
{
	static char data[10000];
	char *whole = malloc(PLUMB_BASE64_SIZE(sizeof data)), *made = NULL;
	size_t bytes;
	FILE *out = open_memstream(&made, &bytes);

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (char)(i * 7);
	assert_true(whole && out);
	plumb_base64_write(data, sizeof data, out);
	fclose(out);
	assert_string_equal(made, plumb_base64(data, sizeof data, false, whole));
	free(made);
	free(whole);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_query_has_one_form),
		cmocka_unit_test(keys_may_be_left_out),
		cmocka_unit_test(wrong_queries_are_refused),
		cmocka_unit_test(long_queries_are_refused),
		cmocka_unit_test(values_are_read_by_their_kind),
		cmocka_unit_test(sha256_is_that_of_the_standard),
		cmocka_unit_test(base64_is_that_of_the_standard),
		cmocka_unit_test(base64_of_much_is_in_one_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
