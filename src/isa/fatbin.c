/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fatbin is a header and entries, each a module for one architecture, or PTX. Executables and
 * libraries have fatbins one after the other in sections (.nv_fatbin, __nv_relfatbin). Their
 * headers are looked for in the whole file, not in its sections, so stripped files and archives
 * need no rule of their own.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "isa/lz4.h"
#include "isa/module.h"

static const char fatbin_magic[4] = { 0x50, (char)0xed, 0x55, (char)0xba };

struct fatbin {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t bytes; /* of its entries */
};

struct entry {
	uint16_t kind, version;
	uint32_t header_bytes;
	uint64_t bytes;        /* of what follows the header, padded */
	uint32_t packed_bytes; /* without padding, if it is packed */
	uint32_t unused[5];
	uint64_t flags;
	uint64_t reserved;
	uint64_t unpacked_bytes;
};

enum { KIND_PTX = 1, KIND_ELF = 2 };
enum { PACKED_LZ4 = 0x2000, PACKED_ZSTD = 0x8000 };
/* Of a module. The largest of PyTorch's libraries has 70 MB. */
#define LARGEST (UINT64_C(1) << 30)
#define LZ4_RATIO 255 /* no byte of a block stands for more */

struct scan {
	int (*each)(void *own, const void *module, size_t size);
	void *own;
	uint32_t modules, packed_badly;
	bool has_ptx;
};

static size_t
unpack(const struct entry *entry, const char *packed, size_t size, void *to)
{
	if (entry->flags & PACKED_LZ4)
		return plumb_lz4_unpack(packed, size, to, entry->unpacked_bytes);
	size = ZSTD_decompress(to, entry->unpacked_bytes, packed, size);
	return ZSTD_isError(size) ? 0 : size;
}

static int
give_packed(struct scan *scan, const struct entry *entry, const char *packed,
            struct plumb_error *error)
{
	size_t size = entry->packed_bytes;
	uint64_t wanted = entry->unpacked_bytes;

	if (size > entry->bytes || wanted > LARGEST || !wanted ||
	    (entry->flags & PACKED_LZ4 && wanted / LZ4_RATIO > size)) {
		scan->packed_badly++;
		return 0;
	}
	char *module = malloc(wanted);
	if (!module)
		return plumb_fail_memory(error, "to unpack a module of GPU code");
	size = unpack(entry, packed, size, module);
	if (!size) {
		scan->packed_badly++;
		free(module);
		return 0;
	}
	scan->modules++;
	int code = scan->each(scan->own, module, size);
	free(module);
	return code;
}

/* The entries of a fatbin in SIZE bytes. */
static int
give_entries(struct scan *scan, const char *at, uint64_t size, struct plumb_error *error)
{
	struct entry entry;

	while (size >= sizeof entry) {
		int code = 0;

		memcpy(&entry, at, sizeof entry);
		if (entry.header_bytes < sizeof entry || entry.header_bytes > size ||
		    entry.bytes > size - entry.header_bytes)
			return 0;
		const char *body = at + entry.header_bytes;
		if (entry.kind == KIND_PTX)
			scan->has_ptx = true;
		else if (entry.kind == KIND_ELF && entry.flags & (PACKED_LZ4 | PACKED_ZSTD))
			code = give_packed(scan, &entry, body, error);
		else if (entry.kind == KIND_ELF) {
			scan->modules++;
			code = scan->each(scan->own, body, entry.bytes);
		}
		if (code)
			return code;
		at = body + entry.bytes;
		size -= entry.header_bytes + entry.bytes;
	}
	return 0;
}

static int
give_fatbins(struct scan *scan, const char *bytes, size_t size, struct plumb_error *error)
{
	const char *at = bytes, *end = bytes + size;
	struct fatbin head;

	while ((at = memmem(at, (size_t)(end - at), fatbin_magic, sizeof fatbin_magic))) {
		uint64_t left = (uint64_t)(end - at);
		if (left < sizeof head)
			break;
		memcpy(&head, at, sizeof head);
		if (head.version != 1 || head.header_bytes < sizeof head ||
		    head.header_bytes > left || head.bytes > left - head.header_bytes) {
			at++;
			continue;
		}
		at += head.header_bytes;
		int code = give_entries(scan, at, head.bytes, error);
		if (code)
			return code;
		at += head.bytes;
	}
	return 0;
}

static bool
is_module(const char *bytes, size_t size)
{
	Elf64_Ehdr head;

	if (size < sizeof head)
		return false;
	memcpy(&head, bytes, sizeof head);
	return !memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_machine == EM_CUDA;
}

int
plumb_modules_in(const void *bytes, size_t size,
                 int (*each)(void *own, const void *module, size_t size), void *own,
                 struct plumb_error *error)
{
	struct scan scan = { .each = each, .own = own };
	int code;

	if (is_module(bytes, size))
		return each(own, bytes, size);
	code = give_fatbins(&scan, bytes, size, error);
	if (code || scan.modules)
		return code;
	if (scan.packed_badly)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "its modules of GPU code cannot be unpacked: the file is "
		                  "damaged, or packed in a new way; extract them with cuobjdump "
		                  "-xelf all");
	if (scan.has_ptx)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "it has PTX only, no machine code; compile it for your GPU "
		                  "(nvcc -arch=sm_90)");
	return plumb_fail(error, PLUMB_EEMPTY,
	                  "it has no GPU code; give a cubin, a fatbin, or a program or library "
	                  "that was compiled with nvcc");
}
