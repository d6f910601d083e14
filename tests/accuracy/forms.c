/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hundreds of millions of instructions differ in the numbers of their registers and in their
 * constants alone. A form is what is left without those: the operation, its modifiers, and which of
 * its registers are the ones that are always zero. The examples of a form are those with the
 * smallest hashes, so they are all different, and the same in each run.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forms.h"
#include "isa/isa.h"
#include "isa/module.h"

struct word {
	uint64_t low, high;
};

struct example {
	struct word word;
	uint64_t hash;
};

struct form {
	struct word key; /* 0: free */
	uint64_t seen;
	uint32_t header, count;
	struct example *examples;
};

struct header {
	Elf64_Ehdr elf;
	char architecture[16];
};

struct table {
	struct form *forms;
	uint64_t size, used, instructions;
	unsigned most;
	struct header headers[64];
	uint32_t header_count, header;
};

/* Bits 105 to 125, the control word: the comparison looks at it in each instruction. */
#define WITHOUT_CONTROL ((UINT64_C(1) << 41) - 1)

static uint64_t
mixed(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 32;
}

/* Is it one of the numbers that mean none? */
static uint64_t
kind_of_register(uint64_t number)
{
	number &= 255;
	return number == 255 ? 2 : number == 63;
}

static uint64_t
kind_of_predicate(uint64_t number)
{
	return (number & 7) == 7 ? 7 : 0;
}

static struct word
form_of(struct word word)
{
	unsigned operation = word.low & 0x1ff, form = word.low >> 9 & 7;
	uint64_t low = word.low & 0xfff, high = word.high & WITHOUT_CONTROL & ~UINT64_C(0xff);

	low |= (word.low >> 15 & 1) << 15 | kind_of_predicate(word.low >> 12) << 12;
	low |= kind_of_register(word.low >> 16) << 16 | kind_of_register(word.low >> 24) << 24;
	high |= kind_of_register(word.high);
	if (operation >= 0x100) /* memory, control, matrices: a register, numbers and modifiers */
		low |= kind_of_register(word.low >> 32) << 32 | word.low >> 53 << 53;
	else if (form == 1 || form >= 6)
		low |= kind_of_register(word.low >> 32) << 32 | word.low >> 40 << 40;
	else if (form == 3 || form == 5)
		low |= word.low >> 59 << 59;
	for (unsigned at = 17; at <= 23; at += 3) {
		uint64_t predicate = kind_of_predicate(high >> at);
		high = (high & ~(UINT64_C(7) << at)) | predicate << at;
	}
	return (struct word){ low, high };
}

static struct form *
find(struct table *table, struct word key, uint32_t header)
{
	uint64_t at = mixed(key.low + header) ^ mixed(key.high);

	for (at &= table->size - 1; table->forms[at].seen; at = (at + 1) & (table->size - 1)) {
		struct form *form = &table->forms[at];
		if (form->key.low == key.low && form->key.high == key.high &&
		    form->header == header)
			break;
	}
	return &table->forms[at];
}

static void
grow(struct table *table)
{
	struct form *old = table->forms;
	uint64_t size = table->size;

	table->size = size ? 2 * size : 1 << 16;
	table->forms = calloc(table->size, sizeof *table->forms);
	if (!table->forms)
		abort();
	for (uint64_t i = 0; i < size; i++)
		if (old[i].seen)
			*find(table, old[i].key, old[i].header) = old[i];
	free(old);
}

/* Keeps it if it is among those with the smallest hashes. */
static void
offer(struct form *form, unsigned most, struct word word)
{
	uint64_t hash = mixed(word.low) ^ mixed(word.high & WITHOUT_CONTROL);
	unsigned at = 0;

	while (at < form->count && form->examples[at].hash < hash)
		at++;
	if (at == most || (at < form->count && form->examples[at].hash == hash))
		return;
	if (!form->examples)
		form->examples = calloc(most, sizeof *form->examples);
	if (!form->examples)
		abort();
	form->count += form->count < most;
	memmove(&form->examples[at + 1], &form->examples[at],
	        (form->count - at - 1) * sizeof *form->examples);
	form->examples[at] = (struct example){ word, hash };
}

static void
add(struct table *table, struct word word)
{
	struct word key = form_of(word);

	if (table->used * 2 >= table->size)
		grow(table);
	struct form *form = find(table, key, table->header);
	if (!form->seen++) {
		form->key = key;
		form->header = table->header;
		table->used++;
	}
	table->instructions++;
	offer(form, table->most, word);
}

/* The number of the header of its architecture. */
static uint32_t
header_of(struct table *table, const void *bytes, const char *architecture)
{
	uint32_t i;

	for (i = 0; i < table->header_count; i++)
		if (!strcmp(table->headers[i].architecture, architecture))
			return i;
	if (i == sizeof table->headers / sizeof *table->headers)
		abort();
	struct header *header = &table->headers[table->header_count++];
	memcpy(&header->elf, bytes, sizeof header->elf);
	snprintf(header->architecture, sizeof header->architecture, "%s", architecture);
	return i;
}

static int
add_module(void *own, const void *bytes, size_t size)
{
	struct table *table = own;
	struct plumb_module *module;

	if (plumb_module_open(bytes, size, &module, NULL) < 0)
		return 0;
	const char *architecture = plumb_module_architecture(module);
	bool is_known = plumb_isa_find(architecture);
	if (is_known)
		table->header = header_of(table, bytes, architecture);
	for (uint32_t i = 0; is_known && i < plumb_module_count(module); i++) {
		const struct plumb_module_function *function = plumb_module_function(module, i);
		for (size_t at = 0; at + sizeof(struct word) <= function->bytes;
		     at += sizeof(struct word)) {
			struct word word;
			memcpy(&word, (const char *)function->text + at, sizeof word);
			add(table, word);
		}
	}
	plumb_module_free(module);
	return 0;
}

static void
add_file(struct table *table, const char *path)
{
	struct plumb_error error;
	struct stat status;
	int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0 || fstat(file, &status) < 0) {
		fprintf(stderr, "%s: cannot be opened\n", path);
		return;
	}
	void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	close(file);
	if (bytes == MAP_FAILED)
		return;
	if (plumb_modules_in(bytes, (size_t)status.st_size, add_module, table, &error) < 0)
		fprintf(stderr, "%s: %s\n", path, error.message);
	munmap(bytes, (size_t)status.st_size);
}

int
forms_print(unsigned most, char **files, int count)
{
	struct table table = { .most = most };

	for (int i = 0; i < count; i++)
		add_file(&table, files[i]);
	for (uint32_t i = 0; i < table.header_count; i++) {
		const unsigned char *bytes = (const void *)&table.headers[i].elf;
		printf("header\t%" PRIu32 "\t%s\t", i, table.headers[i].architecture);
		for (size_t k = 0; k < sizeof table.headers[i].elf; k++)
			printf("%02x", bytes[k]);
		putchar('\n');
	}
	for (uint64_t i = 0; i < table.size; i++) {
		const struct form *form = &table.forms[i];
		for (uint32_t k = 0; k < form->count; k++)
			printf("form\t%" PRIu32 "\t%" PRIx64 "\t%" PRIx64 "\t%" PRIu64 "\n",
			       form->header, form->examples[k].word.low,
			       form->examples[k].word.high, form->seen);
		free(form->examples);
	}
	free(table.forms);
	printf("total\t%" PRIu64 "\t%" PRIu64 "\n", table.instructions, table.used);
	return 0;
}
