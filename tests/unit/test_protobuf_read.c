/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf reader: what the writer wrote, bytes worked out by hand, and what is no message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/protobuf.h"
#include "base/protobuf_read.h"

#define SLICE(text) ((struct plumb_slice){ text, sizeof(text) - 1 })

static void
write_sample(struct plumb_protobuf *m)
{
	plumb_protobuf_number(m, 1, (uint64_t)INT64_C(-2));
	plumb_protobuf_text(m, 2, "name");
	plumb_protobuf_begin(m, 3);
	plumb_protobuf_fixed64(m, 536870911, 0x0102030405060708);
	plumb_protobuf_double(m, 2, 0.5);
	plumb_protobuf_end(m);
	plumb_protobuf_begin(m, 4);
	plumb_protobuf_packed(m, 1);
	plumb_protobuf_packed(m, UINT64_MAX);
	plumb_protobuf_end(m);
}

static void
test_memory(void **state)
{
	struct plumb_protobuf m = { 0 };
	struct plumb_protobuf_field f;
	uint64_t number;

	(void)state;
	write_sample(&m);
	struct plumb_protobuf_view v =
		plumb_protobuf_view((struct plumb_slice){ (const char *)m.data, m.size });
	assert_true(plumb_protobuf_next(&v, &f));
	assert_true(plumb_protobuf_is(&f, 1, PLUMB_PROTOBUF_VARINT));
	assert_true((int64_t)f.value == -2);
	assert_true(plumb_protobuf_next(&v, &f));
	assert_true(plumb_protobuf_is(&f, 2, PLUMB_PROTOBUF_BYTES));
	assert_int_equal(f.bytes.bytes, 4);
	assert_memory_equal(f.bytes.at, "name", 4);
	assert_true(plumb_protobuf_next(&v, &f));
	struct plumb_protobuf_view inner = plumb_protobuf_view(f.bytes);
	assert_true(plumb_protobuf_next(&inner, &f));
	assert_true(plumb_protobuf_is(&f, 536870911, PLUMB_PROTOBUF_FIXED64));
	assert_true(f.value == 0x0102030405060708);
	assert_true(plumb_protobuf_next(&inner, &f));
	assert_true(plumb_protobuf_real(&f) == 0.5);
	assert_false(plumb_protobuf_next(&inner, &f));
	assert_null(inner.why);
	assert_true(plumb_protobuf_next(&v, &f));
	inner = plumb_protobuf_view(f.bytes);
	assert_true(plumb_protobuf_next_packed(&inner, &number) && number == 1);
	assert_true(plumb_protobuf_next_packed(&inner, &number) && number == UINT64_MAX);
	assert_false(plumb_protobuf_next_packed(&inner, &number));
	assert_false(plumb_protobuf_next(&v, &f));
	assert_null(v.why);
	plumb_protobuf_free(&m);
}

static void
refuse(struct plumb_slice bytes, const char *why)
{
	struct plumb_protobuf_view v = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	while (plumb_protobuf_next(&v, &f))
		;
	assert_non_null(v.why);
	assert_non_null(strstr(v.why, why));
	assert_false(plumb_protobuf_next(&v, &f));
}

static void
test_damage(void **state)
{
	(void)state;
	refuse(SLICE("\x08"), "middle");
	refuse(SLICE("\x08\x80"), "middle");
	refuse(SLICE("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "64 bits");
	refuse(SLICE("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "64 bits");
	refuse(SLICE("\x09\x01\x02\x03\x04\x05\x06\x07"), "middle");
	refuse(SLICE("\x0d\x01\x02\x03"), "middle");
	refuse(SLICE("\x12\x05name"), "middle");
	refuse(SLICE("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01name"), "middle");
	refuse(SLICE("\x00\x01"), "out of range");
	refuse(SLICE("\x80\x80\x80\x80\x10\x01"), "out of range"); /* 2^29 */
	refuse(SLICE("\x0b\x0c"), "unknown type");                 /* a group */
	refuse(SLICE("\x0f\x01"), "unknown type");
}

/* ---- a stream ---- */

struct source {
	int fd;
	char path[64];
	struct plumb_input *input;
	struct plumb_protobuf_stream stream;
};

static void
source_open(struct source *s, const void *data, size_t bytes)
{
	struct plumb_error error = { 0 };
	s->fd = memfd_create("protobuf", MFD_CLOEXEC);
	assert_true(s->fd >= 0 && write(s->fd, data, bytes) == (ssize_t)bytes);
	snprintf(s->path, sizeof s->path, "/proc/self/fd/%d", s->fd);
	assert_int_equal(plumb_input_open(&s->input, s->path, &error), 0);
	assert_int_equal(plumb_protobuf_stream_open(&s->stream, s->input, &error), 0);
}

static void
source_close(struct source *s)
{
	plumb_protobuf_stream_close(&s->stream);
	plumb_input_close(s->input);
	close(s->fd);
}

static void
test_stream(void **state)
{
	struct plumb_protobuf m = { 0 };
	struct plumb_protobuf_field f;
	struct plumb_slice bytes;
	struct source s;
	char *big = calloc(1, 3 << 20);

	(void)state;
	/* Longer than the window, and not asked for. */
	plumb_protobuf_bytes(&m, 7, big, 3 << 20);
	plumb_protobuf_begin(&m, 1);
	write_sample(&m);
	plumb_protobuf_end(&m);
	plumb_protobuf_bytes(&m, 7, big, 3 << 20);
	plumb_protobuf_number(&m, 9, 5);
	source_open(&s, m.data, m.size);
	assert_true(plumb_protobuf_stream_next(&s.stream, &f));
	assert_true(plumb_protobuf_is(&f, 7, PLUMB_PROTOBUF_BYTES) && f.value == 3 << 20);
	assert_true(plumb_protobuf_stream_next(&s.stream, &f));
	assert_true(plumb_protobuf_enter(&s.stream));
	assert_true(plumb_protobuf_stream_next(&s.stream, &f));
	assert_true((int64_t)f.value == -2);
	assert_true(plumb_protobuf_stream_next(&s.stream, &f));
	assert_true(plumb_protobuf_take(&s.stream, &bytes));
	assert_memory_equal(bytes.at, "name", 4);
	assert_true(plumb_protobuf_stream_next(&s.stream, &f));
	assert_true(plumb_protobuf_enter(&s.stream));
	assert_true(plumb_protobuf_stream_next(&s.stream, &f));
	assert_true(f.value == 0x0102030405060708);
	assert_true(plumb_protobuf_stream_next(&s.stream, &f));
	assert_true(plumb_protobuf_real(&f) == 0.5);
	assert_false(plumb_protobuf_stream_next(&s.stream, &f)); /* of field 3 */
	assert_true(plumb_protobuf_stream_next(&s.stream, &f));
	assert_true(plumb_protobuf_is(&f, 4, PLUMB_PROTOBUF_BYTES));
	assert_false(plumb_protobuf_stream_next(&s.stream, &f)); /* of field 1 */
	assert_true(plumb_protobuf_stream_next(&s.stream, &f));
	assert_true(plumb_protobuf_take(&s.stream, &bytes));
	assert_int_equal(bytes.bytes, 3 << 20);
	assert_memory_equal(bytes.at, big, 3 << 20);
	assert_true(plumb_protobuf_stream_next(&s.stream, &f));
	assert_true(plumb_protobuf_is(&f, 9, PLUMB_PROTOBUF_VARINT) && f.value == 5);
	assert_false(plumb_protobuf_stream_next(&s.stream, &f));
	assert_false(plumb_protobuf_stream_failed(&s.stream));
	source_close(&s);
	plumb_protobuf_free(&m);
	free(big);
}

/* Everything entered that can be; true: it was all sound. */
static bool
walk(struct plumb_protobuf_stream *stream)
{
	struct plumb_protobuf_field f;
	unsigned depth = 0;
	for (;;) {
		if (plumb_protobuf_stream_next(stream, &f)) {
			if ((plumb_protobuf_is(&f, 1, PLUMB_PROTOBUF_BYTES) ||
			     plumb_protobuf_is(&f, 3, PLUMB_PROTOBUF_BYTES)) &&
			    plumb_protobuf_enter(stream))
				depth++;
		} else if (plumb_protobuf_stream_failed(stream) || !depth--) {
			return !plumb_protobuf_stream_failed(stream);
		}
	}
}

static void
test_stream_cut(void **state)
{
	struct plumb_protobuf m = { 0 };
	struct plumb_error error = { 0 };
	struct source s;

	(void)state;
	plumb_protobuf_begin(&m, 1);
	write_sample(&m);
	plumb_protobuf_end(&m);
	for (size_t bytes = 0; bytes <= m.size; bytes++) {
		source_open(&s, m.data, bytes);
		assert_int_equal(walk(&s.stream), bytes == 0 || bytes == m.size);
		if (bytes && bytes < m.size) {
			assert_int_equal(plumb_protobuf_stream_error(&s.stream, "FILE", &error),
			                 PLUMB_EINPUT);
			assert_non_null(strstr(error.message, "FILE: byte "));
		}
		source_close(&s);
	}
	plumb_protobuf_free(&m);
}

static void
test_stream_damage(void **state)
{
	static const struct {
		struct plumb_slice bytes;
		const char *why;
	} cases[] = {
		/* an inner message that is longer than the one around it */
		{ { "\x0a\x03\x1a\x05\x08\x01\x08\x01\x08\x01", 10 }, "byte 4: a message ends" },
		{ { "\x0a\x01\x08\x01", 4 }, "a message ends" },
		{ { "\x0a\x02\x09\x01\x02\x03\x04\x05\x06\x07\x08", 11 }, "a message ends" },
		{ { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x08", 12 }, "" },
		{ { "\x3a\xff\xff\xff\xff\x7f\x08", 7 }, "the file ends" },
		{ { "\x3b\x08", 2 }, "unknown type" },
		{ { "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 9 }, "" },
	};
	struct plumb_error error = { 0 };
	struct source s;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		source_open(&s, cases[i].bytes.at, cases[i].bytes.bytes);
		assert_false(walk(&s.stream));
		plumb_protobuf_stream_error(&s.stream, "FILE", &error);
		assert_non_null(strstr(error.message, cases[i].why));
		source_close(&s);
	}
}

static void
test_stream_deep(void **state)
{
	unsigned char data[64], *at = data + sizeof data;
	unsigned bytes = 0;
	struct source s;

	(void)state;
	for (unsigned i = 0; i < PLUMB_PROTOBUF_STREAM_DEPTH + 1; i++) {
		*--at = (unsigned char)bytes;
		*--at = 0x0a;
		bytes += 2;
	}
	source_open(&s, at, bytes);
	assert_false(walk(&s.stream));
	assert_string_equal(s.stream.why, "messages nested too deep");
	source_close(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),        cmocka_unit_test(test_damage),
		cmocka_unit_test(test_stream),        cmocka_unit_test(test_stream_cut),
		cmocka_unit_test(test_stream_damage), cmocka_unit_test(test_stream_deep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
