/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 against the examples of RFC 1321, and at the lengths where a block ends. */
#include "base/md5.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
test_examples(void **state)
{
	static const char *const examples[][2] = {
		{ "", "d41d8cd98f00b204e9800998ecf8427e" },
		{ "a", "0cc175b9c0f1b6a831c399e269772661" },
		{ "abc", "900150983cd24fb0d6963f7d28e17f72" },
		{ "message digest", "f96b697d7cb7938d525a2f31aaf161d0" },
		{ "abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b" },
		{ "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
		  "d174ab98d277d9f5a5611c2c9f419d9f" },
		{ "1234567890123456789012345678901234567890123456789012345678901234567890123456789"
		  "0",
		  "57edf4a22be3c955ac49da2e2107b67a" },
	};
	char digits[PLUMB_MD5_DIGITS + 1];

	(void)state;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		plumb_md5(examples[i][0], strlen(examples[i][0]), digits);
		assert_string_equal(digits, examples[i][1]);
	}
}

/* MD5 of the MD5s of 0, 1, … 199 letters a. */
static void
test_lengths(void **state)
{
	char letters[200], digits[200][PLUMB_MD5_DIGITS], one[PLUMB_MD5_DIGITS + 1];

	(void)state;
	memset(letters, 'a', sizeof letters);
	for (size_t i = 0; i < sizeof letters; i++) {
		plumb_md5(letters, i, one);
		memcpy(digits[i], one, sizeof digits[i]);
	}
	plumb_md5(digits, sizeof digits, one);
	assert_string_equal(one, "49f6cc3eb4491fe05535571716f39a67");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
