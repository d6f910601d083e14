/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of an operator from the text of its shapes: "(float32[96], float32[32,32], …) -> float32[32,96]".
 * The inputs' order is the operator's signature.
 */
#include "analyze/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIZES_MAX 8
#define TENSORS_MAX 4

struct tensor {
	double sizes[SIZES_MAX];
	int count; /* -1: no tensor */
};

/* Reads "[2,3]" at TEXT. The end, or NULL. */
static const char *
read_sizes(const char *text, struct tensor *tensor)
{
	tensor->count = 0;
	if (*text++ != '[')
		return NULL;
	while (*text != ']') {
		char *end;
		if (tensor->count == SIZES_MAX || *text < '0' || *text > '9')
			return NULL;
		tensor->sizes[tensor->count++] = strtod(text, &end);
		text = *end == ',' ? end + 1 : end;
		if (*end != ',' && *end != ']')
			return NULL;
	}
	return text + 1;
}

/* Reads an argument at TEXT up to the comma or bracket that ends it. */
static const char *
read_argument(const char *text, struct tensor *tensor)
{
	int depth = 0;

	tensor->count = -1;
	/* A tensor is a type's name with its sizes; a list of tensors or numbers begins with a bracket. */
	const char *sizes = text + strcspn(text, "[,)( ");
	if (*sizes == '[' && sizes != text && !read_sizes(sizes, tensor))
		tensor->count = -1;
	for (; *text; text++) {
		if (!depth && (*text == ',' || *text == ')'))
			break;
		depth += *text == '[' || *text == '(';
		depth -= *text == ']' || *text == ')';
	}
	return text;
}

static double
elements(const struct tensor *tensor)
{
	double product = 1;

	for (int i = 0; i < tensor->count; i++)
		product *= tensor->sizes[i];
	return product;
}

/* 2·m·n·k of A·B; both are matrices, or as many of them each. */
static double
product_of(const struct tensor *a, const struct tensor *b, int rank)
{
	if (a->count != rank || b->count != rank || a->sizes[rank - 1] != b->sizes[rank - 2] ||
	    (rank == 3 && a->sizes[0] != b->sizes[0]))
		return NAN;
	return 2 * elements(a) * b->sizes[rank - 1];
}

/* Every element of the output takes a filter of one output channel. */
static double
convolution(const struct tensor *weight, const struct tensor *out)
{
	if (weight->count < 3 || out->count < 3 || !(weight->sizes[0] > 0))
		return NAN;
	return 2 * elements(out) * elements(weight) / weight->sizes[0];
}

double
plumb_flops_of(const char *name, const char *shapes)
{
	struct tensor in[TENSORS_MAX], out = { .count = -1 };
	const char *at = shapes;

	for (int i = 0; i < TENSORS_MAX; i++)
		in[i].count = -1;
	if (!name || !shapes || *at++ != '(')
		return NAN;
	for (int i = 0; *at && *at != ')'; i++) {
		struct tensor other;
		at = read_argument(at, i < TENSORS_MAX ? &in[i] : &other);
		at += *at == ',';
		at += *at == ' ';
	}
	if (!strncmp(at, ") -> ", 5))
		read_argument(at + 5, &out);
	if (!strcmp(name, "aten::mm"))
		return product_of(&in[0], &in[1], 2);
	if (!strcmp(name, "aten::addmm"))
		return product_of(&in[1], &in[2], 2);
	if (!strcmp(name, "aten::bmm"))
		return product_of(&in[0], &in[1], 3);
	if (!strcmp(name, "aten::baddbmm"))
		return product_of(&in[1], &in[2], 3);
	/* The outermost of the operators that make one convolution. */
	if (!strcmp(name, "aten::convolution"))
		return convolution(&in[1], &out);
	return NAN;
}
