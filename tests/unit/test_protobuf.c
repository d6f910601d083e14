/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf writer, against bytes worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/protobuf.h"

static void
check(const struct plumb_protobuf *message, const char *bytes, size_t count)
{
	assert_false(plumb_protobuf_failed(message));
	assert_int_equal(message->size, count);
	assert_memory_equal(message->data, bytes, count);
}
#define CHECK(message, bytes) check(message, bytes, sizeof(bytes) - 1)

static void
test_fields(void **state)
{
	struct plumb_protobuf m = { 0 };

	(void)state;
	plumb_protobuf_number(&m, 1, 150);
	CHECK(&m, "\x08\x96\x01");
	plumb_protobuf_clear(&m);
	plumb_protobuf_number(&m, 16, 0);
	CHECK(&m, "\x80\x01\x00");
	plumb_protobuf_clear(&m);
	plumb_protobuf_number(&m, 2, (uint64_t)INT64_C(-1));
	CHECK(&m, "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	plumb_protobuf_clear(&m);
	plumb_protobuf_number(&m, 536870911, 1); /* the greatest field */
	CHECK(&m, "\xf8\xff\xff\xff\x0f\x01");
	plumb_protobuf_clear(&m);
	plumb_protobuf_text(&m, 2, "testing");
	plumb_protobuf_text(&m, 2, "");
	plumb_protobuf_text(&m, 2, NULL);
	CHECK(&m, "\x12\x07testing\x12\x00\x12\x00");
	plumb_protobuf_clear(&m);
	plumb_protobuf_fixed64(&m, 1, 0x0102030405060708);
	plumb_protobuf_double(&m, 1, 1.0);
	CHECK(&m, "\x09\x08\x07\x06\x05\x04\x03\x02\x01\x09\x00\x00\x00\x00\x00\x00\xf0\x3f");
	plumb_protobuf_free(&m);
}

static void
test_messages(void **state)
{
	struct plumb_protobuf m = { 0 };

	(void)state;
	plumb_protobuf_begin(&m, 3);
	plumb_protobuf_number(&m, 1, 150);
	plumb_protobuf_begin(&m, 2);
	plumb_protobuf_end(&m);
	plumb_protobuf_end(&m);
	CHECK(&m, "\x1a\x05\x08\x96\x01\x12\x00");
	plumb_protobuf_clear(&m);
	plumb_protobuf_begin(&m, 4);
	plumb_protobuf_packed(&m, 3);
	plumb_protobuf_packed(&m, 270);
	plumb_protobuf_packed(&m, 86942);
	plumb_protobuf_end(&m);
	CHECK(&m, "\x22\x06\x03\x8e\x02\x9e\xa7\x05");
	plumb_protobuf_free(&m);
}

/* A length of several bytes moves what was written. */
static void
test_long_messages(void **state)
{
	struct plumb_protobuf m = { 0 };
	static char text[20000];

	(void)state;
	memset(text, 'x', sizeof text - 1);
	plumb_protobuf_begin(&m, 1);
	plumb_protobuf_begin(&m, 1);
	plumb_protobuf_text(&m, 1, text);
	plumb_protobuf_end(&m);
	plumb_protobuf_end(&m);
	assert_int_equal(m.size, 19999 + 3 * 4);
	assert_memory_equal(m.data, "\x0a\xa7\x9c\x01\x0a\xa3\x9c\x01\x0a\x9f\x9c\x01xx", 14);
	assert_int_equal(m.data[m.size - 1], 'x');
	plumb_protobuf_free(&m);
}

static void
test_wrong_use(void **state)
{
	struct plumb_protobuf m = { 0 };

	(void)state;
	plumb_protobuf_begin(&m, 1);
	assert_true(plumb_protobuf_failed(&m));
	plumb_protobuf_end(&m);
	assert_false(plumb_protobuf_failed(&m));
	plumb_protobuf_end(&m);
	assert_true(plumb_protobuf_failed(&m));
	plumb_protobuf_clear(&m);
	for (int i = 0; i <= PLUMB_PROTOBUF_DEPTH; i++)
		plumb_protobuf_begin(&m, 1);
	for (int i = 0; i <= PLUMB_PROTOBUF_DEPTH; i++)
		plumb_protobuf_end(&m);
	assert_true(plumb_protobuf_failed(&m));
	plumb_protobuf_clear(&m);
	assert_false(plumb_protobuf_failed(&m));
	plumb_protobuf_free(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_long_messages),
		cmocka_unit_test(test_wrong_use),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
