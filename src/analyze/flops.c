/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of an operator from the text of its shapes: "(float32[96], float32[32,32], …) ->
 * float32[32,96]". The inputs' order is the operator's signature.
 */
#include "analyze/layers.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model/framework/framework.h"

#define SIZES_MAX 8
#define ARGUMENTS_MAX 8

/* A tensor with its sizes, a list of numbers, or something else. */
struct argument {
	double sizes[SIZES_MAX];
	int count; /* -1: neither a tensor nor a list */
	bool list;
};

/* Reads "[2,3]" or "[2, 3]" at TEXT. The end, or NULL. */
static const char *
read_sizes(const char *text, struct argument *argument)
{
	argument->count = 0;
	if (*text++ != '[')
		return NULL;
	while (*text != ']') {
		char *end;
		if (argument->count == SIZES_MAX || *text < '0' || *text > '9')
			return NULL;
		argument->sizes[argument->count++] = strtod(text, &end);
		if (*end != ',' && *end != ']')
			return NULL;
		text = *end == ',' ? end + 1 : end;
		text += *text == ' ';
	}
	return text + 1;
}

/* Reads an argument at TEXT up to the comma or bracket that ends it. */
static const char *
read_argument(const char *text, struct argument *argument)
{
	int depth = 0;

	/* A tensor is a type's name with its sizes; a list of numbers begins with a bracket. */
	const char *sizes = text + strcspn(text, "[,)( ");
	argument->count = -1;
	argument->list = sizes == text;
	if (*sizes == '[' && !read_sizes(sizes, argument))
		argument->count = -1;
	for (; *text; text++) {
		if (!depth && (*text == ',' || *text == ')'))
			break;
		depth += *text == '[' || *text == '(';
		depth -= *text == ']' || *text == ')';
	}
	return text;
}

static bool
is_tensor(const struct argument *argument, int least)
{
	return !argument->list && argument->count >= least;
}

static double
count_elements(const struct argument *tensor)
{
	double product = 1;

	for (int i = 0; i < tensor->count; i++)
		product *= tensor->sizes[i];
	return product;
}

/* The size that is NUMBER from the last. */
static double
size_from_end(const struct argument *tensor, int number)
{
	return tensor->sizes[tensor->count - 1 - number];
}

/* 2·m·n·k of A·B, matrices or as many of them each. */
static double
product_of(const struct argument *a, const struct argument *b, int rank)
{
	if (!is_tensor(a, rank) || !is_tensor(b, rank) || a->count != rank || b->count != rank ||
	    size_from_end(a, 0) != size_from_end(b, 1) || (rank == 3 && a->sizes[0] != b->sizes[0]))
		return NAN;
	return 2 * count_elements(a) * size_from_end(b, 0);
}

/* As matmul has it: vectors count as a matrix of one row or column, what stands before is
 * broadcast. */
static double
matmul(const struct argument *a, const struct argument *b)
{
	double batches = 1;

	if (!is_tensor(a, 1) || !is_tensor(b, 1))
		return NAN;
	double rows = a->count > 1 ? size_from_end(a, 1) : 1;
	double columns = b->count > 1 ? size_from_end(b, 0) : 1;
	if (size_from_end(a, 0) != size_from_end(b, b->count > 1))
		return NAN;
	for (int i = 2; i < a->count || i < b->count; i++) {
		double x = i < a->count ? size_from_end(a, i) : 1,
		       y = i < b->count ? size_from_end(b, i) : 1;
		if (x != y && x != 1 && y != 1)
			return NAN;
		batches *= x == 1 ? y : x;
	}
	return 2 * batches * rows * size_from_end(a, 0) * columns;
}

static double
linear(const struct argument *in, const struct argument *weight)
{
	if (!is_tensor(in, 1) || !is_tensor(weight, 1) || weight->count > 2 ||
	    size_from_end(in, 0) != size_from_end(weight, 0))
		return NAN;
	return 2 * count_elements(in) * (weight->count == 2 ? weight->sizes[0] : 1);
}

/* Q·Kᵀ and what comes of it by V, of every head and query over all keys: masks are not looked at.
 * Keys may have fewer heads, which are then used by several. */
static double
attention(const struct argument *q, const struct argument *k, const struct argument *v)
{
	if (!is_tensor(q, 2) || !is_tensor(k, 2) || !is_tensor(v, 2) || q->count != k->count ||
	    q->count != v->count || size_from_end(q, 0) != size_from_end(k, 0) ||
	    size_from_end(k, 1) != size_from_end(v, 1))
		return NAN;
	for (int i = 2; i < q->count; i++)
		if (size_from_end(k, i) != size_from_end(v, i) || !(size_from_end(k, i) > 0) ||
		    (size_from_end(q, i) != size_from_end(k, i) &&
		     (i != 2 || fmod(size_from_end(q, i), size_from_end(k, i)) != 0)))
			return NAN;
	return 2 * count_elements(q) * size_from_end(k, 1) +
	       2 * count_elements(q) / size_from_end(q, 0) * size_from_end(v, 1) *
	               size_from_end(v, 0);
}

/* A value of a list for each place, or one for all; NAN: none. */
static double
value_of(const struct argument *list, int place)
{
	return !list->list || list->count < 1            ? NAN
	       : list->count > 1 && place >= list->count ? NAN
	                                                 : list->sizes[list->count > 1 ? place : 0];
}

/* The size that comes out of the input's in place PLACE, by the lists of ARGUMENTS. */
static double
size_out(const struct argument *arguments, int place, bool transposed)
{
	double in = arguments[0].sizes[place + 2];
	double stride = value_of(&arguments[3], place);
	double padding = 2 * value_of(&arguments[4], place);
	double reach = value_of(&arguments[5], place) * (arguments[1].sizes[place + 2] - 1) + 1;

	return transposed ? (in - 1) * stride - padding + reach + value_of(&arguments[7], place)
	                  : floor((in + padding - reach) / stride) + 1;
}

/*
 * (input, weight, bias, stride, padding, dilation, transposed, output padding, groups) -> output.
 * Truths stand by their type, so that the sizes tell whether it is transposed: then a filter is
 * taken for every element of the input, else of the output. Where lists are not recorded (the first
 * call has none) the channels tell, unless both are as many.
 */
static double
convolution(const struct argument *arguments, const struct argument *out)
{
	const struct argument *in = &arguments[0], *weight = &arguments[1];
	bool plain, transposed, listed = arguments[3].list;

	if (!is_tensor(in, 3) || !is_tensor(weight, 3) || !is_tensor(out, 3) ||
	    in->count != weight->count || out->count != weight->count || !(weight->sizes[0] > 0) ||
	    !(weight->sizes[1] > 0))
		return NAN;
	plain = out->sizes[1] == weight->sizes[0] && fmod(in->sizes[1], weight->sizes[1]) == 0;
	transposed = in->sizes[1] == weight->sizes[0] && fmod(out->sizes[1], weight->sizes[1]) == 0;
	for (int i = 2; i < weight->count && listed; i++) {
		plain &= out->sizes[i] == size_out(arguments, i - 2, false);
		transposed &= out->sizes[i] == size_out(arguments, i - 2, true);
	}
	if ((!plain && !transposed) ||
	    (plain && transposed && count_elements(in) != count_elements(out)))
		return NAN;
	return 2 * count_elements(plain ? out : in) * count_elements(weight) / weight->sizes[0];
}

/* (input, weight, bias, stride, padding, dilation, groups), with an output or without. */
static double
conv(const struct argument *arguments, const struct argument *out)
{
	const struct argument *in = &arguments[0], *weight = &arguments[1];
	double places = 1;

	if (!is_tensor(in, 3) || !is_tensor(weight, 3) || in->count != weight->count ||
	    !(weight->sizes[0] > 0))
		return NAN;
	if (is_tensor(out, 3))
		return 2 * count_elements(out) * count_elements(weight) / weight->sizes[0];
	for (int i = 2; i < weight->count; i++)
		places *= size_out(arguments, i - 2, false);
	return places >= 0 ? 2 * in->sizes[0] * places * count_elements(weight) : NAN;
}

static double
conv_transpose(const struct argument *arguments)
{
	const struct argument *in = &arguments[0], *weight = &arguments[1];

	if (!is_tensor(in, 3) || !is_tensor(weight, 3) || in->count != weight->count ||
	    !(weight->sizes[0] > 0) || in->sizes[1] != weight->sizes[0])
		return NAN;
	return 2 * count_elements(in) * count_elements(weight) / weight->sizes[0];
}

/* The work of one call by the rule of its operator, from its inputs and what comes out. */
static double
work_of(const struct plumb_framework_operator *operator, const struct argument * in,
        const struct argument *out)
{
	const struct argument *a = &in[operator->operand], *b = a + 1;

	switch (operator->flops) {
	case PLUMB_FLOPS_MATRICES:
		return product_of(a, b, 2);
	case PLUMB_FLOPS_BATCHES:
		return product_of(a, b, 3);
	case PLUMB_FLOPS_VECTOR:
		return is_tensor(b, 1) && b->count == 1 && a->count <= 2 ? matmul(a, b) : NAN;
	case PLUMB_FLOPS_MATMUL:
		return matmul(a, b);
	case PLUMB_FLOPS_LINEAR:
		return linear(a, b);
	case PLUMB_FLOPS_ATTENTION:
		return attention(a, b, a + 2);
	case PLUMB_FLOPS_CONVOLUTION:
		return convolution(a, out);
	case PLUMB_FLOPS_CONV:
		return conv(a, out);
	case PLUMB_FLOPS_CONV_TRANSPOSE:
		return conv_transpose(a);
	case PLUMB_FLOPS_NONE:
		break;
	}
	return NAN;
}

bool
plumb_flops_has(const char *name)
{
	const struct plumb_framework_operator *row = plumb_framework_operator(name);

	return row && row->flops;
}

double
plumb_flops_of(const char *name, const char *shapes)
{
	struct argument in[ARGUMENTS_MAX], out = { .count = -1 };
	const struct plumb_framework_operator *row = plumb_framework_operator(name);
	const char *at = shapes;

	for (int i = 0; i < ARGUMENTS_MAX; i++)
		in[i] = (struct argument){ .count = -1 };
	if (!row || !shapes || *at++ != '(')
		return NAN;
	for (int i = 0; *at && *at != ')'; i++) {
		struct argument other;
		at = read_argument(at, i < ARGUMENTS_MAX ? &in[i] : &other);
		at += *at == ',';
		at += *at == ' ';
	}
	if (!strncmp(at, ") -> ", 5))
		read_argument(at + 5, &out);
	return work_of(row, in, &out);
}
