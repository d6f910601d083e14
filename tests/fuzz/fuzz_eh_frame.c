/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an object's unwind tables, .eh_frame_hdr first: opening and decoding them reads
 * nothing outside, and a row that is kept as a word comes back as it was. To reach deeper, the
 * header is mended when the first byte is odd.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collect/stack/eh_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUNCTIONS = 64 };

static bool
same(const struct plumb_eh_row *a, const struct plumb_eh_row *b)
{
	return a->kind == b->kind && a->base == b->base && a->save == b->save &&
	       a->deref == b->deref && a->link == b->link && a->in_register == b->in_register &&
	       a->internal == b->internal && a->cfa == b->cfa && a->at == b->at && a->fp == b->fp &&
	       a->ra == b->ra;
}

static void
check(const struct plumb_eh_image *image, uintptr_t pc)
{
	struct plumb_eh_row row, again = { 0 };
	uintptr_t start, end;
	int32_t offset;
	bool saved;
	if (plumb_eh_decode(image, pc, &row)) {
		uint64_t word = plumb_eh_pack(&row);
		if (word)
			plumb_eh_unpack(word, &again);
		if (row.kind == PLUMB_EH_NONE || (word && !same(&row, &again)))
			abort();
	}
	plumb_eh_saved(image, pc, 3, &saved, &offset);
	if (plumb_eh_extent(image, pc, &start, &end) && (pc < start || (end > start && pc >= end)))
		abort();
}

static void
check_all(const struct plumb_eh_image *whole, bool linear)
{
	struct plumb_eh_image image = *whole;
	static const uintptr_t places[] = { 0, 1, 5, 16, 100, 4096 };
	if (linear)
		image.index = NULL;
	for (uint32_t i = 0; i < whole->count && i < FUNCTIONS; i++) {
		int32_t function;
		memcpy(&function, whole->index + 8 * (size_t)i, sizeof function);
		for (size_t k = 0; k < sizeof places / sizeof *places; k++)
			check(&image, (uintptr_t)whole->header + (intptr_t)function + places[k]);
	}
	check(&image, 0);
	check(&image, UINTPTR_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plumb_eh_image image;
	if (size < 2)
		return 0;
	uint8_t *bytes = malloc(size - 1);
	if (!bytes)
		return 0;
	memcpy(bytes, data + 1, size - 1);
	if (data[0] & 1 && size > 13)
		memcpy(bytes, "\x01\x1b\x03\x3b", 4);
	struct plumb_eh_range all = { bytes, bytes + size - 1 };
	if (plumb_eh_open(&image, bytes, size - 1, &all, 1)) {
		check_all(&image, false);
		check_all(&image, true);
	}
	free(bytes);
	return 0;
}
