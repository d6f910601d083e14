/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling contexts of an HPCToolkit database: functions, loops, lines and instructions, of the
 * host and, below "<gpu kernel>", of the GPU. Each is a frame; "<gpu kernel>" itself only says that
 * a kernel follows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "import/hpctoolkit/hpctoolkit.h"

#define DEPTH_MAX 4096
#define CONTEXT_BYTES 32u
#define ENTRY_BYTES 32u
#define CONTEXT_SECTION 0x40u

enum lexical { FUNCTION, LOOP, LINE, INSTRUCTION };
enum { HAS_FUNCTION = 1, HAS_SOURCE = 2, HAS_POINT = 4 };
#define INLINED 2u

/* Contexts side by side that are still to be read. */
struct pending {
	uint64_t at, end;
	uint32_t context, depth, work;
	uint32_t parent; /* in the reader's contexts */
	bool launching;  /* below "<gpu kernel>": functions are kernels */
};

struct tree {
	struct hpct_reader *reader;
	PLUMB_VEC(struct pending) stack;
	int64_t too_deep;
};

struct source {
	struct plumb_slice file;
	int64_t line;
};

/* ---- what contexts point at ---- */

/* The path of a module or source file. */
static struct plumb_slice
path_at(struct hpct_reader *reader, uint64_t offset)
{
	const unsigned char *at =
		offset ? plumb_hpct_get(reader, &reader->meta, offset, 1, 16) : NULL;
	return at ? plumb_hpct_text(reader, &reader->meta, hpct_u64(at + 8))
	          : (struct plumb_slice){ NULL, 0 };
}

static struct plumb_slice
base_of(struct plumb_slice path)
{
	const char *slash = path.bytes ? memrchr(path.at, '/', path.bytes) : NULL;
	if (slash && slash + 1 < path.at + path.bytes)
		return (struct plumb_slice){ slash + 1,
			                     (size_t)(path.at + path.bytes - slash - 1) };
	return path;
}

static int
printed_bytes(struct plumb_slice text)
{
	return text.bytes < 400 ? (int)text.bytes : 400;
}

/* The frame of a placeholder for GPU work; its kind goes to WORK. PLUMB_NONE: it is no work. */
static uint32_t
make_placeholder(struct hpct_reader *reader, struct plumb_slice name, uint32_t *work)
{
	static const struct {
		const char *name;
		enum plumb_memory_kind from, to;
	} copies[] = {
		{ "<gpu copy>", PLUMB_MEMORY_UNKNOWN, PLUMB_MEMORY_UNKNOWN },
		{ "<gpu copyin>", PLUMB_MEMORY_HOST, PLUMB_MEMORY_DEVICE },
		{ "<gpu copyout>", PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_HOST },
	};
	for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
		if (plumb_slice_is(name, copies[i].name)) {
			*work = PLUMB_FRAME_COPY;
			return plumb_trace_copy_frame(reader->trace, copies[i].from, copies[i].to);
		}
	if (plumb_slice_is(name, "<gpu memset>")) {
		*work = PLUMB_FRAME_SET;
		return plumb_trace_set_frame(reader->trace, PLUMB_MEMORY_DEVICE);
	}
	return plumb_slice_begins(name, "<gpu ")
	               ? plumb_trace_frame(reader->trace, PLUMB_FRAME_GPU_API, name)
	               : PLUMB_NONE;
}

static void
set_source(struct hpct_reader *reader, uint32_t frame, const struct source *source)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	if (frame != PLUMB_NONE && source->file.bytes && source->line > 0)
		plumb_builder_frame_source(
			builder, frame,
			plumb_builder_string(builder, source->file.at, source->file.bytes),
			(uint32_t)source->line);
}

/* The frame of the function at OFFSET (0: not known), or PLUMB_NONE for "<gpu kernel>". */
static uint32_t
function_frame(struct hpct_reader *reader, uint64_t offset, bool inlined, struct pending *inner)
{
	struct plumb_slice name = { NULL, 0 }, module = { NULL, 0 };
	struct source source = { { NULL, 0 }, 0 };
	char text[512];
	const unsigned char *at =
		offset ? plumb_hpct_get(reader, &reader->meta, offset, 1, 40) : NULL;
	if (at) {
		if (hpct_u64(at))
			name = plumb_hpct_text(reader, &reader->meta, hpct_u64(at));
		module = path_at(reader, hpct_u64(at + 8));
		source.file = path_at(reader, hpct_u64(at + 24));
		source.line = hpct_u32(at + 32);
		if (!name.at) {
			snprintf(text, sizeof text, "%.*s+0x%" PRIx64,
			         printed_bytes(base_of(module)),
			         module.at ? base_of(module).at : "", hpct_u64(at + 16));
			name = (struct plumb_slice){ text, strlen(text) };
		}
	}
	if (name.at && plumb_slice_is(name, "<gpu kernel>")) {
		inner->launching = true;
		return PLUMB_NONE;
	}
	uint32_t frame = name.at ? make_placeholder(reader, name, &inner->work) : PLUMB_NONE;
	if (frame != PLUMB_NONE)
		return frame;
	uint32_t kind = inlined                             ? PLUMB_FRAME_INLINE
	                : inner->launching                  ? PLUMB_FRAME_KERNEL
	                : inner->work == PLUMB_FRAME_KERNEL ? PLUMB_FRAME_DEVICE_FUNCTION
	                                                    : PLUMB_FRAME_NATIVE;
	if (inner->launching)
		inner->work = PLUMB_FRAME_KERNEL;
	inner->launching = false;
	frame = plumb_trace_frame_at(
		reader->trace, kind, name,
		kind == PLUMB_FRAME_NATIVE ? module : (struct plumb_slice){ NULL, 0 }, 0);
	set_source(reader, frame, &source);
	return frame;
}

/* ---- contexts ---- */

/* The frame of the context at AT, whose `flex` has WORDS words at FLEX; PLUMB_NONE: it has none. */
static uint32_t
frame_of(struct hpct_reader *reader, const unsigned char *at, struct pending *inner)
{
	const unsigned char *flex = at + CONTEXT_BYTES;
	unsigned flags = at[0x14], lexical = at[0x16];
	uint64_t function = 0, module = 0, offset = 0;
	struct source source = { { NULL, 0 }, 0 };
	char text[512];
	if (flags & HAS_FUNCTION) {
		function = hpct_u64(flex);
		flex += 8;
	}
	if (flags & HAS_SOURCE) {
		source.file = path_at(reader, hpct_u64(flex));
		source.line = hpct_u32(flex + 8);
		flex += 16;
	}
	if (flags & HAS_POINT) {
		module = hpct_u64(flex);
		offset = hpct_u64(flex + 8);
	}
	switch (lexical) {
	case FUNCTION:
		return function_frame(reader, function, at[0x15] == INLINED, inner);
	case LOOP:
		return plumb_trace_frame_at(reader->trace, PLUMB_FRAME_LOOP,
		                            (struct plumb_slice){ "loop", 4 }, source.file,
		                            source.line);
	case LINE:
		snprintf(text, sizeof text, "%.*s:%" PRId64, printed_bytes(base_of(source.file)),
		         source.file.at ? base_of(source.file).at : "?", source.line);
		return plumb_trace_frame_at(reader->trace, PLUMB_FRAME_LINE,
		                            (struct plumb_slice){ text, strlen(text) }, source.file,
		                            source.line);
	case INSTRUCTION: {
		struct plumb_slice path = path_at(reader, module);
		snprintf(text, sizeof text, "%.*s+0x%" PRIx64, printed_bytes(base_of(path)),
		         path.at ? base_of(path).at : "?", offset);
		/* Without the structure of the GPU's code a kernel is its first instruction. */
		bool kernel = inner->launching;
		if (kernel)
			inner->work = PLUMB_FRAME_KERNEL;
		inner->launching = false;
		uint32_t frame = plumb_trace_frame(
			reader->trace, kernel ? PLUMB_FRAME_KERNEL : PLUMB_FRAME_INSTRUCTION,
			(struct plumb_slice){ text, strlen(text) });
		set_source(reader, frame, &source);
		return frame;
	}
	default: /* of a later version */
		return PLUMB_NONE;
	}
}

static void
add_context(struct hpct_reader *reader, uint64_t at, uint32_t id, const struct pending *of)
{
	if (plumb_hpct_context(reader, id)) {
		plumb_hpct_fail(reader, &reader->meta, at, "two contexts have the same number");
		return;
	}
	struct hpct_context *added = plumb_vec_add(&reader->contexts);
	if (!added ||
	    plumb_map_add(&reader->map, plumb_hash_mix(id, 0), reader->contexts.count - 1) < 0)
		reader->no_memory = true;
	else
		*added = (struct hpct_context){ id, of->context, of->parent, of->work };
}

static void
push_children(struct tree *tree, uint64_t at, uint64_t bytes, const struct pending *like)
{
	struct pending *added;
	if (!at || !bytes || !plumb_hpct_take(tree->reader, &tree->reader->meta, at, bytes, 1))
		return;
	added = plumb_vec_add(&tree->stack);
	if (!added) {
		tree->reader->no_memory = true;
		return;
	}
	*added = *like;
	added->at = at;
	added->end = at + bytes;
}

/* The context at the beginning of the last of `stack`, and its children onto it. */
static void
read_context(struct tree *tree)
{
	struct hpct_reader *reader = tree->reader;
	struct pending *top = &tree->stack.items[tree->stack.count - 1], inner = *top;
	const unsigned char *at = plumb_hpct_get(reader, &reader->meta, top->at, 1, CONTEXT_BYTES);
	uint64_t here = top->at;
	if (!at)
		return;
	unsigned flags = at[0x14];
	uint64_t words = at[0x17], wanted = (flags & HAS_FUNCTION ? 1 : 0) +
	                                    (flags & HAS_SOURCE ? 2 : 0) +
	                                    (flags & HAS_POINT ? 2 : 0);
	top->at += CONTEXT_BYTES + 8 * words;
	if (top->at > top->end || words < wanted) {
		plumb_hpct_fail(reader, &reader->meta, here, "a context is cut short");
		return;
	}
	uint32_t frame = frame_of(reader, at, &inner);
	if (inner.depth >= DEPTH_MAX)
		tree->too_deep++;
	else if (frame != PLUMB_NONE) {
		inner.context = plumb_builder_context(plumb_trace_builder(reader->trace),
		                                      inner.context, frame, 0);
		inner.depth++;
	}
	reader->no_memory |= inner.context == PLUMB_NONE;
	add_context(reader, here, hpct_u32(at + 0x10), &inner);
	inner.parent = reader->contexts.count - 1;
	push_children(tree, hpct_u64(at + 8), hpct_u64(at), &inner);
}

static void
read_all(struct tree *tree)
{
	struct hpct_reader *reader = tree->reader;
	while (tree->stack.count && !reader->why && !reader->no_memory) {
		const struct pending *top = &tree->stack.items[tree->stack.count - 1];
		if (top->at == top->end)
			tree->stack.count--;
		else
			read_context(tree);
	}
}

void
plumb_hpct_tree(struct hpct_reader *reader)
{
	struct hpct_file *meta = &reader->meta;
	struct tree tree = { .reader = reader };
	const unsigned char *header = plumb_hpct_get(reader, meta, CONTEXT_SECTION, 1, 16), *entry;
	uint64_t section = header ? hpct_u64(header + 8) : 0;
	const unsigned char *head = header ? plumb_hpct_get(reader, meta, section, 1, 11) : NULL;
	if (!head)
		return;
	uint64_t entries = hpct_u64(head), count = hpct_u16(head + 8), size = head[10];
	if (count && size < ENTRY_BYTES)
		plumb_hpct_fail(reader, meta, section, "an entry is too short");
	for (uint64_t i = 0; i < count && !reader->why && !reader->no_memory; i++) {
		entry = plumb_hpct_get(reader, meta, entries + i * size, 1, ENTRY_BYTES);
		if (!entry)
			break;
		/* "main thread" is no frame of the program: its contexts are the outermost ones. */
		struct pending top = { .parent = PLUMB_NONE };
		add_context(reader, entries + i * size, hpct_u32(entry + 16), &top);
		top.parent = reader->contexts.count - 1;
		push_children(&tree, hpct_u64(entry + 8), hpct_u64(entry), &top);
		read_all(&tree);
	}
	plumb_trace_count(reader->trace, PLUMB_FATE_TOO_DEEP, NULL, tree.too_deep);
	plumb_vec_free(&tree.stack);
}
