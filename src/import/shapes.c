/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists are taken apart as they stand: they were read once as JSON already, so brackets and
 * quotes match. There are hundreds of thousands of them in a file, and most are equal.
 */
#include "import/shapes.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"

#define TEXT_MAX 4096
#define DIMENSIONS_MAX 16

struct text {
	char bytes[TEXT_MAX];
	size_t count;
	bool full;
};

static void
put_bytes(struct text *text, const char *bytes, size_t count)
{
	if (sizeof text->bytes - text->count < count) {
		text->full = true;
		return;
	}
	memcpy(text->bytes + text->count, bytes, count);
	text->count += count;
}

static void
puts_to(struct text *text, const char *word)
{
	put_bytes(text, word, strlen(word));
}

/* ---- lists ---- */

static bool
is_list(struct plumb_slice value)
{
	return value.bytes > 1 && value.at[0] == '[';
}

/* The text between the brackets. */
static struct plumb_slice
inside_brackets(struct plumb_slice list)
{
	return is_list(list) ? (struct plumb_slice){ list.at + 1, list.bytes - 2 }
	                     : (struct plumb_slice){ "", 0 };
}

/* The next item of REST, without the space around it; false: there is none. */
static bool
next_item(struct plumb_slice *rest, struct plumb_slice *next)
{
	const char *at = rest->at, *end = rest->at + rest->bytes, *first;
	int depth = 0;
	while (at < end && (*at == ' ' || *at == ',' || *at == '\n' || *at == '\t' || *at == '\r'))
		at++;
	for (first = at; at < end && (depth || *at != ','); at++) {
		if (*at == '[')
			depth++;
		else if (*at == ']')
			depth--;
		else if (*at == '"')
			for (at++; at < end && *at != '"'; at++)
				at += *at == '\\';
	}
	if (at > end)
		at = end;
	*rest = (struct plumb_slice){ at, (size_t)(end - at) };
	while (at > first && (at[-1] == ' ' || at[-1] == '\n'))
		at--;
	*next = (struct plumb_slice){ first, (size_t)(at - first) };
	return at > first;
}

/* Reads up to DIMENSIONS_MAX numbers. -1: it is not a list of numbers, or has more. */
static int
read_numbers(struct plumb_slice list, int64_t found[DIMENSIONS_MAX])
{
	struct plumb_slice rest = inside_brackets(list), next;
	int count = 0;
	while (next_item(&rest, &next))
		if (count == DIMENSIONS_MAX || !plumb_slice_decimal(next, 0, &found[count++]))
			return -1;
	return count;
}

/* ---- words ---- */

/* C++'s name of a type → PyTorch's. */
static const char *
type_of(struct plumb_slice name)
{
	static const struct {
		const char *name, *type;
	} types[] = {
		{ "float", "float32" },
		{ "double", "float64" },
		{ "c10::Half", "float16" },
		{ "c10::BFloat16", "bfloat16" },
		{ "long int", "int64" },
		{ "long", "int64" },
		{ "int", "int32" },
		{ "short int", "int16" },
		{ "short", "int16" },
		{ "signed char", "int8" },
		{ "unsigned char", "uint8" },
		{ "bool", "bool" },
		{ "c10::Float8_e4m3fn", "float8_e4m3fn" },
		{ "c10::Float8_e5m2", "float8_e5m2" },
		{ "c10::complex<float>", "complex64" },
		{ "c10::complex<double>", "complex128" },
	};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (plumb_slice_is(name, types[i].name))
			return types[i].type;
	return NULL;
}

static void
put_numbers(struct text *text, const int64_t *list, int count)
{
	char word[24];
	for (int i = 0; i < count; i++)
		put_bytes(text, word,
		          (size_t)snprintf(word, sizeof word, i ? ",%lld" : "%lld",
		                           (long long)list[i]));
}

/* Are STRIDES those of an array without gaps, whose last dimension is the innermost? The stride of
 * a size of 1 does not matter. */
static bool
is_contiguous(const int64_t *sizes, const int64_t *strides, int count)
{
	int64_t expected = 1;
	for (int i = count; i-- > 0;) {
		if (sizes[i] != 1 && strides[i] != expected)
			return false;
		if (__builtin_mul_overflow(expected, sizes[i], &expected))
			return false;
	}
	return true;
}

static void
put_tensor(struct text *text, const char *type, struct plumb_slice dims, struct plumb_slice strides)
{
	int64_t sizes[DIMENSIONS_MAX], steps[DIMENSIONS_MAX];
	int count = read_numbers(dims, sizes), with = read_numbers(strides, steps);
	if (count < 0) {
		puts_to(text, "tensor");
		return;
	}
	puts_to(text, type);
	puts_to(text, "[");
	put_numbers(text, sizes, count);
	puts_to(text, "]");
	if (with == count && count && !is_contiguous(sizes, steps, count)) {
		puts_to(text, " strides (");
		put_numbers(text, steps, count);
		puts_to(text, ")");
	}
}

/* A list of numbers, which is a text in VALUE: "[2, 2]" with its quotes. False: it is none. */
static bool
put_list(struct text *text, struct plumb_slice value)
{
	int64_t list[DIMENSIONS_MAX];
	struct plumb_slice inner = { value.at + 1, value.bytes > 1 ? value.bytes - 2 : 0 };
	int count = is_list(inner) ? read_numbers(inner, list) : -1;
	char word[24];
	if (count < 0)
		return false;
	puts_to(text, "[");
	for (int i = 0; i < count; i++)
		put_bytes(text, word,
		          (size_t)snprintf(word, sizeof word, i ? ", %lld" : "%lld",
		                           (long long)list[i]));
	puts_to(text, "]");
	return true;
}

static void
put_input(struct text *text, struct plumb_slice type, struct plumb_slice dims,
          struct plumb_slice strides, struct plumb_slice value)
{
	struct plumb_slice name = { type.at + 1,
		                    type.bytes > 1 ? type.bytes - 2 : 0 }; /* its quotes */
	const char *known = type_of(name);
	if (known)
		put_tensor(text, known, dims, strides);
	else if (!name.bytes)
		puts_to(text, "None");
	else if (plumb_slice_is(name, "Scalar"))
		puts_to(text, "scalar");
	else if (plumb_slice_is(name, "ScalarList")) {
		if (!put_list(text, value))
			puts_to(text, "scalars");
	} else if (plumb_slice_is(name, "TensorList"))
		puts_to(text, "tensors");
	else
		put_bytes(text, name.at, name.bytes);
}

/* The next item of REST; nothing where there is none. */
static struct plumb_slice
item_or_none(struct plumb_slice *rest)
{
	struct plumb_slice next;
	return next_item(rest, &next) ? next : (struct plumb_slice){ "", 0 };
}

static uint32_t
make_shapes(struct plumb_trace *trace, const struct plumb_import_inputs *inputs)
{
	struct text text; /* its bytes are not set: it is large */
	struct plumb_slice types = inside_brackets(inputs->types),
			   dims = inside_brackets(inputs->dims),
			   strides = inside_brackets(inputs->strides),
			   values = inside_brackets(inputs->values);
	struct plumb_slice type;
	bool any = false;
	text.count = 0;
	text.full = false;
	puts_to(&text, "(");
	while (next_item(&types, &type)) {
		if (any)
			puts_to(&text, ", ");
		struct plumb_slice size = item_or_none(&dims), step = item_or_none(&strides);
		put_input(&text, type, size, step, item_or_none(&values));
		any = true;
	}
	puts_to(&text, ")");
	return any && !text.full
	               ? plumb_builder_string(plumb_trace_builder(trace), text.bytes, text.count)
	               : PLUMB_NONE;
}

/* ---- those that were seen ---- */

/* Four lists in a row, each behind its length. */
struct lists {
	char bytes[PLUMB_IMPORT_SHAPES_BYTES];
	size_t count;
};

static bool
add_list(struct lists *lists, struct plumb_slice list)
{
	if (sizeof lists->bytes - lists->count < sizeof list.bytes + list.bytes)
		return false;
	memcpy(lists->bytes + lists->count, &list.bytes, sizeof list.bytes);
	lists->count += sizeof list.bytes;
	if (list.bytes)
		memcpy(lists->bytes + lists->count, list.at, list.bytes);
	lists->count += list.bytes;
	return true;
}

uint32_t
plumb_import_shapes(struct plumb_trace *trace, struct plumb_import_shapes_seen *seen,
                    const struct plumb_import_inputs *inputs)
{
	struct lists lists;
	struct plumb_import_shapes_one *one;
	lists.count = 0;
	if (!add_list(&lists, inputs->types) || !add_list(&lists, inputs->dims) ||
	    !add_list(&lists, inputs->strides) || !add_list(&lists, inputs->values))
		return make_shapes(trace, inputs);
	one = &seen->items[plumb_hash_bytes(lists.bytes, lists.count) % PLUMB_IMPORT_SHAPES_SEEN];
	if (one->count != lists.count || memcmp(one->lists, lists.bytes, lists.count) != 0) {
		memcpy(one->lists, lists.bytes, lists.count);
		one->count = (uint32_t)lists.count;
		one->shapes = make_shapes(trace, inputs);
	}
	return one->shapes;
}
