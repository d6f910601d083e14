/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libFuzzer: feeds the target it is linked with every file under the folders and
 * files named on the command line, and each also cut short and with single bits changed, always the
 * same ones. So a fuzz target is a plain regression test too.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	CUTS = 32,
	FLIPS = 128,
};

static unsigned long files, inputs;

/* The target gets an exact copy, so that a sanitizer sees a read past its end. */
static void
feed(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	inputs++;
}

static void
feed_all(uint8_t *data, size_t size)
{
	uint32_t random = 1;

	feed(data, size);
	for (size_t i = 0; i < CUTS && size; i++)
		feed(data, size * i / CUTS);
	for (size_t i = 0; i < FLIPS && size; i++) {
		random = random * 1664525u + 1013904223u;
		size_t at = ((uint64_t)random * size) >> 32;
		uint8_t bit = (uint8_t)(1u << (random >> 8 & 7));

		data[at] ^= bit;
		feed(data, size);
		data[at] ^= bit;
	}
}

static int
visit(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)where;
	if (kind != FTW_F)
		return 0;

	size_t size = (size_t)status->st_size;
	uint8_t *data = malloc(size + 1);
	FILE *file = fopen(path, "rb");

	if (!data || !file || fread(data, 1, size, file) != size) {
		fprintf(stderr, "%s: cannot read it\n", path);
		exit(1);
	}
	fclose(file);
	files++;
	fprintf(stderr, "%s\n", path); /* the last one named is the one that crashed */
	feed_all(data, size);
	free(data);
	return 0;
}

int
main(int argc, char **argv)
{
	feed((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++)
		nftw(argv[i], visit, 16, FTW_PHYS);
	printf("%lu files, %lu inputs\n", files, inputs);
	return 0;
}
