/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where GPU kernels were written: their modules' line tables (DWARF 2 to 4, as CUDA's compilers
 * write them), of which only the first row of each function is wanted: the line that it begins at.
 * A relocation names the function whose address begins a sequence of rows.
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "model/user_code.h"
#include "settle/settle_private.h"

#define FILES_MAX 1024u

enum { LINES, RELOCATIONS, SYMBOLS, NAMES, SECTIONS };

/* Bytes that are read one after the other; FAILED once there were too few. */
struct bytes {
	const unsigned char *at, *end;
	bool failed;
};

struct module {
	struct plumb_settle_region *region;
	const char *section[SECTIONS];
	uint32_t size[SECTIONS];
};

/* A unit's files, and what its program is written in. */
struct unit {
	uint32_t folders[FILES_MAX],
		files[FILES_MAX]; /* offsets of names in .debug_line; 0: none */
	uint32_t folder_of[FILES_MAX];
	uint32_t folders_count, files_count;
	int8_t line_base;
	uint8_t line_range, opcode_base, lengths[256];
};

/* ---- numbers ---- */

static uint64_t
fixed(struct bytes *b, unsigned size)
{
	uint64_t number = 0;

	if ((size_t)(b->end - b->at) < size) {
		b->failed = true;
		return 0;
	}
	memcpy(&number, b->at, size);
	b->at += size;
	return number;
}

/* A number in LEB128. */
static uint64_t
leb(struct bytes *b, bool is_signed)
{
	uint64_t number = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)fixed(b, 1);
		if (shift < 64)
			number |= (uint64_t)(byte & 127) << shift;
		shift += 7;
	} while (byte & 128 && !b->failed);
	if (is_signed && shift < 64 && byte & 64)
		number |= ~UINT64_C(0) << shift;
	return number;
}

/* The text there, which ends before END; its offset from START, 0 for an empty one. */
static uint32_t
text(struct bytes *b, const char *start)
{
	const unsigned char *from = b->at, *zero = memchr(from, 0, (size_t)(b->end - from));

	if (!zero) {
		b->failed = true;
		return 0;
	}
	b->at = zero + 1;
	return zero == from ? 0 : (uint32_t)((const char *)from - start);
}

/* What the collector keeps of one section at the most. */
#define SECTION_MAX (64u << 10)

/* ---- functions ---- */

/* The name of the function whose address stands at OFFSET in .debug_line; NULL: not told. */
static const char *
function_at(const struct module *m, uint32_t offset)
{
	for (uint32_t i = 0; i + sizeof(Elf64_Rela) <= m->size[RELOCATIONS];
	     i += sizeof(Elf64_Rela)) {
		Elf64_Rela relocation;
		Elf64_Sym symbol;
		uint64_t at;
		memcpy(&relocation, m->section[RELOCATIONS] + i, sizeof relocation);
		at = ELF64_R_SYM(relocation.r_info) * sizeof symbol;
		if (relocation.r_offset != offset || at + sizeof symbol > m->size[SYMBOLS])
			continue;
		memcpy(&symbol, m->section[SYMBOLS] + at, sizeof symbol);
		if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_name < m->size[NAMES] &&
		    memchr(m->section[NAMES] + symbol.st_name, 0, m->size[NAMES] - symbol.st_name))
			return m->section[NAMES] + symbol.st_name;
	}
	return NULL;
}

static void
take_function(const struct module *m, const struct unit *u, const char *name, uint64_t file,
              uint64_t line)
{
	struct plumb_builder *builder = m->region->settler->builder;
	struct plumb_settle_kernel_line *added;
	const char *base, *folder;
	uint64_t of;
	char path[4096];
	int n;

	if (!name || !file || file > u->files_count || !line || line > UINT32_MAX)
		return;
	base = m->section[LINES] + u->files[file - 1];
	of = u->folder_of[file - 1];
	folder = of && of <= u->folders_count ? m->section[LINES] + u->folders[of - 1] : NULL;
	n = snprintf(path, sizeof path, "%s%s%s", folder && *base != '/' ? folder : "",
	             folder && *base != '/' ? "/" : "", base);
	/* Where Inductor put a kernel that it made says nothing: its origins do. */
	if (n <= 0 || n >= (int)sizeof path || plumb_user_code_generated(path))
		return;
	added = plumb_vec_add(&m->region->settler->kernel_lines);
	if (!added) {
		m->region->settler->no_memory = true;
		return;
	}
	added->name = plumb_builder_text(builder, name);
	added->file = plumb_builder_text(builder, path);
	added->line = (uint32_t)line;
}

/* ---- tables ---- */

/* False: a layout that is not known. */
static bool
read_header(struct bytes *b, const struct module *m, struct unit *u)
{
	uint16_t version = (uint16_t)fixed(b, 2);
	uint32_t length = (uint32_t)fixed(b, 4), name;
	const unsigned char *program;

	if (b->failed || version < 2 || version > 4 || length > (size_t)(b->end - b->at))
		return false;
	program = b->at + length;
	fixed(b, version < 4 ? 1 : 2); /* bytes of an instruction, instructions of a bundle */
	fixed(b, 1);                   /* whether rows are statements at first */
	u->line_base = (int8_t)fixed(b, 1);
	u->line_range = (uint8_t)fixed(b, 1);
	u->opcode_base = (uint8_t)fixed(b, 1);
	for (unsigned i = 1; i < u->opcode_base; i++)
		u->lengths[i] = (uint8_t)fixed(b, 1);
	while ((name = text(b, m->section[LINES])) && u->folders_count < FILES_MAX)
		u->folders[u->folders_count++] = name;
	while ((name = text(b, m->section[LINES])) && u->files_count < FILES_MAX) {
		uint64_t folder = leb(b, false);
		u->folder_of[u->files_count] = folder > FILES_MAX ? 0 : (uint32_t)folder;
		u->files[u->files_count++] = name;
		leb(b, false); /* time */
		leb(b, false); /* size */
	}
	b->at = program;
	return !b->failed && u->line_range && u->opcode_base;
}

/* The state of a unit's program, as far as it matters here. */
struct state {
	const char *function; /* of the sequence */
	uint64_t file, line;
	bool row; /* the sequence has a row */
};

static void
start(struct state *s)
{
	*s = (struct state){ .file = 1, .line = 1 };
}

static void
take_row(const struct module *m, const struct unit *u, struct state *s)
{
	if (!s->row)
		take_function(m, u, s->function, s->file, s->line);
	s->row = true;
}

static void
extended(struct bytes *b, const struct module *m, struct state *s)
{
	uint64_t length = leb(b, false);
	const unsigned char *operand;
	uint8_t opcode;

	if (b->failed || !length || length > (size_t)(b->end - b->at)) {
		b->failed = true;
		return;
	}
	opcode = *b->at;
	operand = b->at + 1;
	b->at += length;
	if (opcode == 1) /* the sequence ends */
		start(s);
	else if (opcode == 2) /* its address */
		s->function = function_at(m, (uint32_t)((const char *)operand - m->section[LINES]));
}

static void
run(struct bytes *b, const struct module *m, const struct unit *u)
{
	struct state s;

	start(&s);
	while (b->at < b->end && !b->failed) {
		uint8_t opcode = (uint8_t)fixed(b, 1);
		if (opcode >= u->opcode_base) {
			s.line += (uint64_t)(int64_t)(u->line_base +
			                              (opcode - u->opcode_base) % u->line_range);
			take_row(m, u, &s);
		} else if (opcode == 0) {
			extended(b, m, &s);
		} else if (opcode == 1) {
			take_row(m, u, &s);
		} else if (opcode == 3) {
			s.line += leb(b, true);
		} else if (opcode == 4) {
			s.file = leb(b, false);
		} else if (opcode == 9) {
			fixed(b, 2);
		} else {
			for (unsigned i = 0; i < u->lengths[opcode]; i++)
				leb(b, false);
		}
	}
}

void
plumb_settle_gpu_lines(struct plumb_settle_region *region,
                       const struct plumb_record_gpu_lines *record)
{
	static struct unit unit;
	struct module m = { .region = region };
	const char *at = (const char *)(record + 1);
	uint64_t left = record->head.length - sizeof *record;
	struct bytes all;

	for (int i = 0; i < SECTIONS; i++) {
		m.section[i] = at;
		m.size[i] = record->bytes[i];
		if (record->bytes[i] > left || record->bytes[i] > SECTION_MAX) {
			plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
			                   "lines of GPU code", 1);
			return;
		}
		at += record->bytes[i];
		left -= record->bytes[i];
	}
	all.at = (const unsigned char *)m.section[LINES];
	all.end = all.at + m.size[LINES];
	all.failed = false;
	while (all.at < all.end && !all.failed) {
		uint64_t length = fixed(&all, 4);
		struct bytes one = { all.at, all.end, false };
		if (all.failed || length > (size_t)(all.end - all.at))
			break;
		one.end = all.at + length;
		memset(&unit, 0, sizeof unit);
		if (read_header(&one, &m, &unit))
			run(&one, &m, &unit);
		all.at += length;
	}
}

/* ---- the end ---- */

/* Kernels of one name that were written in several places say none. */
void
plumb_settle_kernel_lines(struct plumb_settler *settler)
{
	struct plumb_builder *builder = settler->builder;
	uint32_t frames = plumb_builder_frame_count(builder);

	for (uint32_t f = 0; f < frames; f++) {
		const struct plumb_frame *frame = plumb_builder_get_frame(builder, f);
		const struct plumb_settle_kernel_line *found = NULL;
		bool contradict = false;
		if (frame->kind != PLUMB_FRAME_KERNEL)
			continue;
		for (uint32_t i = 0; i < settler->kernel_lines.count; i++) {
			const struct plumb_settle_kernel_line *own =
				&settler->kernel_lines.items[i];
			if (own->name != frame->name)
				continue;
			contradict =
				contradict ||
				(found && (found->file != own->file || found->line != own->line));
			found = own;
		}
		if (found && !contradict)
			plumb_builder_frame_source(builder, f, found->file, found->line);
	}
}
