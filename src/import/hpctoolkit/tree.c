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
#define CHAIN_MOST 64

enum lexical { FUNCTION, LOOP, LINE, INSTRUCTION };
enum { HAS_FUNCTION = 1, HAS_SOURCE = 2, HAS_POINT = 4 };
#define INLINED 2u

/* Contexts side by side that are still to be read. */
struct pending {
	uint64_t at, end;
	uint32_t context, depth, work;
	uint32_t parent; /* in the reader's contexts */
	uint32_t kernel; /* the builder's context of the kernel that it is in, or PLUMB_NONE */
	uint64_t only;   /* the only kernel that was launched there, in meta.db; 0: not known */
	bool launching;  /* below "<gpu kernel>": functions are kernels */
	bool loose;      /* in a function that is not known, below "<gpu kernel>" */
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

/* Where the code at PLACE was written: the outermost line of a kernel, else the innermost one. */
static struct source
source_at(struct hpct_reader *reader, uint32_t module, const struct hpct_place *place, bool kernel)
{
	struct plumb_gpu_line chain[CHAIN_MOST];
	const struct hpct_module *own = &reader->modules.items[module];
	uint32_t count =
		plumb_module_lines(own->module, place->number, place->offset, chain, CHAIN_MOST);
	const struct plumb_gpu_line *line = count ? &chain[kernel ? count - 1 : 0] : NULL;
	if (!line || !line->file)
		return (struct source){ { NULL, 0 }, 0 };
	return (struct source){ { line->file, strlen(line->file) }, line->line };
}

/* The frame of the kernel that begins with the instruction at OFFSET of the module at MODULE. The
 * binary knows its name; without one it is its address. */
static uint32_t
kernel_frame(struct hpct_reader *reader, uint64_t module, uint64_t offset)
{
	uint32_t own = plumb_hpct_module(reader, module);
	struct hpct_place place = plumb_hpct_place(reader, own, offset);
	struct plumb_slice path = path_at(reader, module);
	struct plumb_slice name = { NULL, 0 };
	struct source source = { { NULL, 0 }, 0 };
	char text[512];
	if (place.function) {
		place.offset = 0;
		name = (struct plumb_slice){ place.function->name, strlen(place.function->name) };
		source = source_at(reader, own, &place, true);
	} else {
		snprintf(text, sizeof text, "%.*s+0x%" PRIx64, printed_bytes(base_of(path)),
		         path.at ? base_of(path).at : "?", offset);
		name = (struct plumb_slice){ text, strlen(text) };
	}
	uint32_t frame = plumb_trace_frame(reader->trace, PLUMB_FRAME_KERNEL, name);
	set_source(reader, frame, &source);
	return frame;
}

/* The name of the kernel whose function is at AT, from its binary; else NAME. */
static struct plumb_slice
kernel_name(struct hpct_reader *reader, const unsigned char *at, struct plumb_slice name)
{
	struct hpct_place place = plumb_hpct_place(
		reader, plumb_hpct_module(reader, hpct_u64(at + 8)), hpct_u64(at + 16));
	if (!place.function || place.offset)
		return name;
	return (struct plumb_slice){ place.function->name, strlen(place.function->name) };
}

/* The frame of the function at OFFSET (0: not known), or PLUMB_NONE for "<gpu kernel>" and for a
 * function below it that is not known. */
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
	if (!name.at && inner->launching) {
		inner->launching = false;
		inner->loose = true;
		inner->work = PLUMB_FRAME_KERNEL;
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
	if (kind == PLUMB_FRAME_KERNEL && at)
		name = kernel_name(reader, at, name);
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
		/* Without the structure of the GPU's code a kernel is its first instruction. */
		if (inner->launching) {
			inner->work = PLUMB_FRAME_KERNEL;
			inner->launching = false;
			return kernel_frame(reader, module, offset);
		}
		struct plumb_slice path = path_at(reader, module);
		struct hpct_place place = { 0 };
		snprintf(text, sizeof text, "%.*s+0x%" PRIx64, printed_bytes(base_of(path)),
		         path.at ? base_of(path).at : "?", offset);
		uint32_t own = plumb_hpct_module(reader, module);
		if (!source.file.bytes)
			place = plumb_hpct_place(reader, own, offset);
		if (place.function)
			source = source_at(reader, own, &place, false);
		uint32_t frame = plumb_trace_frame(reader->trace, PLUMB_FRAME_INSTRUCTION,
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
		*added = (struct hpct_context){
			.id = id,
			.context = of->context,
			.parent = of->parent,
			.work = of->work,
			.kernel = of->kernel,
			.module = PLUMB_NONE,
		};
}

/* Where the context at AT is in its module. False: it is no instruction. */
static bool
find_point(const unsigned char *at, uint64_t *module, uint64_t *offset)
{
	const unsigned char *flex = at + CONTEXT_BYTES;
	unsigned flags = at[0x14];
	if (at[0x16] != INSTRUCTION || !(flags & HAS_POINT))
		return false;
	flex += (flags & HAS_FUNCTION ? 8 : 0) + (flags & HAS_SOURCE ? 16 : 0);
	*module = hpct_u64(flex);
	*offset = hpct_u64(flex + 8);
	return true;
}

/* ---- kernels that no context names ---- */

static unsigned
words_wanted(unsigned flags)
{
	return (flags & HAS_FUNCTION ? 1 : 0) + (flags & HAS_SOURCE ? 2 : 0) +
	       (flags & HAS_POINT ? 2 : 0);
}

/* The only instruction among the contexts from AT to END: a kernel, if they are below
 * "<gpu kernel>". 0: there is none, or several. */
static uint64_t
find_only(struct hpct_reader *reader, uint64_t at, uint64_t bytes)
{
	uint64_t found = 0, end;
	if (!at || !plumb_hpct_get(reader, &reader->meta, at, bytes, 1))
		return 0;
	for (end = at + bytes; end - at >= CONTEXT_BYTES;) {
		const unsigned char *one = reader->meta.at + at;
		uint64_t size = CONTEXT_BYTES + 8 * (uint64_t)one[0x17];
		if (size > end - at || one[0x17] < words_wanted(one[0x14]))
			return 0; /* it is told when it is read */
		if (one[0x16] == INSTRUCTION && found)
			return 0;
		if (one[0x16] == INSTRUCTION)
			found = at;
		at += size;
	}
	return found;
}

/* hpcprof puts the instructions of kernels into a function that is not known, beside the kernels.
 * So each is in the kernel that its binary says, or in the only one that was launched there. */
static void
enter_kernel(struct hpct_reader *reader, const unsigned char *at, struct pending *inner)
{
	uint64_t module = 0, offset = 0;
	struct hpct_place place = { 0 };
	inner->loose = false;
	if (find_point(at, &module, &offset))
		place = plumb_hpct_place(reader, plumb_hpct_module(reader, module), offset);
	bool known = place.function && place.function->is_kernel;
	if (!known && inner->only)
		known = find_point(reader->meta.at + inner->only, &module, &offset);
	uint32_t frame = known ? kernel_frame(reader, module, offset)
	                       : plumb_trace_frame(reader->trace, PLUMB_FRAME_KERNEL,
	                                           (struct plumb_slice){ NULL, 0 });
	if (inner->depth >= DEPTH_MAX || frame == PLUMB_NONE)
		return;
	inner->context =
		plumb_builder_context(plumb_trace_builder(reader->trace), inner->context, frame, 0);
	if (known)
		inner->kernel = inner->context;
	inner->depth++;
}

/* ---- the tree ---- */

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
	uint64_t words = at[0x17], module, offset;
	top->at += CONTEXT_BYTES + 8 * words;
	if (top->at > top->end || words < words_wanted(flags)) {
		plumb_hpct_fail(reader, &reader->meta, here, "a context is cut short");
		return;
	}
	if (inner.loose)
		enter_kernel(reader, at, &inner);
	bool launched = inner.launching;
	uint32_t frame = frame_of(reader, at, &inner);
	if (inner.depth >= DEPTH_MAX)
		tree->too_deep++;
	else if (frame != PLUMB_NONE) {
		inner.context = plumb_builder_context(plumb_trace_builder(reader->trace),
		                                      inner.context, frame, 0);
		inner.depth++;
		if (launched &&
		    plumb_builder_get_frame(plumb_trace_builder(reader->trace), frame)->kind ==
		            PLUMB_FRAME_KERNEL)
			inner.kernel = inner.context;
	}
	if (inner.launching && !launched)
		inner.only = find_only(reader, hpct_u64(at + 8), hpct_u64(at));
	reader->no_memory |= inner.context == PLUMB_NONE;
	add_context(reader, here, hpct_u32(at + 0x10), &inner);
	if (find_point(at, &module, &offset) && reader->contexts.count) {
		struct hpct_context *added = &reader->contexts.items[reader->contexts.count - 1];
		added->module = plumb_hpct_module(reader, module);
		added->offset = offset;
	}
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
		struct pending top = { .parent = PLUMB_NONE, .kernel = PLUMB_NONE };
		add_context(reader, entries + i * size, hpct_u32(entry + 16), &top);
		top.parent = reader->contexts.count - 1;
		push_children(&tree, hpct_u64(entry + 8), hpct_u64(entry), &top);
		read_all(&tree);
	}
	plumb_trace_count(reader->trace, PLUMB_FATE_TOO_DEEP, NULL, tree.too_deep);
	plumb_vec_free(&tree.stack);
}
