/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up to 3.12 CPython publishes no offsets, but neither did they move within a minor version since
 * its first release candidate: a table. From 3.13 on _PyRuntime begins with struct
 * _Py_DebugOffsets, whose own shape changes with the minor version. A few things are in neither and
 * are the same everywhere: str's state word, and that _co_firsttraceable lies two pointers before
 * the instructions.
 */
#include "collect/monitor/python_layout.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NONE PLUMB_PYTHON_ABSENT

enum {
	FIRST_MINOR = 9,
	FIRST_PUBLISHED = 13, /* the first with _Py_DebugOffsets */
	LAST_MINOR = 14,
	PROOF_FRAMES = 64,    /* frames that the proof looks at */
	DOUBTED_FRAMES = 512, /* what a frame that is none leads to shows itself sooner */
	PAGE = 4096,
	SIZE_MAX_OF_STRUCT = 1 << 14,
};

/* What all versions share. */
#define COMMON .type = 8, .flags = 168, .length = 16, .state = 32
#define FRAME_OBJECT                                                                               \
	.entry = 24, .indirect = NONE, .previous = 24, .code = 32, .owner = NONE, .file = 104,     \
	.name = 112, .qualified_name = NONE, .lines = 120, .first_line = 40, .bytecode = 48,       \
	.first_instruction = NONE, .traceable = NONE, .ascii_data = 48, .wide_data = 72
#define INTERPRETER_FRAME                                                                          \
	.entry = 56, .stack = 56, .instruction = 56, .locals = 72, .file = 112, .name = 120,       \
	.qualified_name = 128, .lines = 136, .bytecode = NONE

static const struct plumb_python_layout known[] = {
	[9] = { COMMON, FRAME_OBJECT, .stack = NONE, .instruction = 104, .lasti_scale = 1,
	        .locals = 360 },
	[10] = { COMMON, FRAME_OBJECT, .stack = 48, .instruction = 96, .lasti_scale = 2,
	         .locals = 352 },
	[11] = { COMMON, INTERPRETER_FRAME, .indirect = 8, .previous = 48, .code = 32, .owner = 69,
	         .first_line = 72, .traceable = 168, .first_instruction = 184, .ascii_data = 48,
	         .wide_data = 72 },
	[12] = { COMMON, INTERPRETER_FRAME, .indirect = 0, .previous = 8, .code = 0, .owner = 70,
	         .first_line = 68, .traceable = 176, .first_instruction = 192, .ascii_data = 40,
	         .wide_data = 56 },
};

/* Byte positions of the parts of _Py_DebugOffsets; each part begins with the size of its struct. */
static const struct published {
	uint16_t thread_state, frame, code, object, type, text;
} published[] = {
	[13] = { .thread_state = 152,
	         .frame = 224,
	         .code = 272,
	         .object = 352,
	         .type = 368,
	         .text = 536 },
	[14] = { .thread_state = 176,
	         .frame = 248,
	         .code = 312,
	         .object = 400,
	         .type = 416,
	         .text = 616 },
};

static bool
read_number(const char **text, int *value)
{
	const char *p = *text;
	int v = 0;

	for (int digits = 0; *p >= '0' && *p <= '9'; p++) {
		if (++digits > 4)
			return false;
		v = v * 10 + (*p - '0');
	}
	if (p == *text)
		return false;
	*text = p;
	*value = v;
	return true;
}

bool
plumb_python_release_parse(const char *text, struct plumb_python_release *release)
{
	const char *p = text;
	size_t bytes;

	if (!text || !read_number(&p, &release->major) || *p++ != '.' ||
	    !read_number(&p, &release->minor) || *p++ != '.' || !read_number(&p, &release->micro))
		return false;
	release->final = *p != 'a' && *p != 'b';
	while ((*p >= '0' && *p <= '9') || *p == 'a' || *p == 'b' || *p == 'r' || *p == 'c')
		p++;
	bytes = (size_t)(p - text);
	if (bytes >= sizeof release->text)
		return false;
	memcpy(release->text, text, bytes);
	release->text[bytes] = '\0';
	return true;
}

/* One part of _Py_DebugOffsets: the size of its struct, then offsets into it. */
struct part {
	const char *at;
	uint64_t size;
	bool sane;
};

static uint64_t
read_word(const char *at, size_t index)
{
	uint64_t value;

	memcpy(&value, at + index * 8, sizeof value);
	return value;
}

static struct part
part_at(const void *runtime, size_t position)
{
	struct part part = { .at = (const char *)runtime + position };

	part.size = read_word(part.at, 0);
	part.sane = part.size >= 8 && part.size <= SIZE_MAX_OF_STRUCT;
	return part;
}

/* The offset of a field of BYTES bytes, aligned to itself, that lies in its struct. */
static uint16_t
read_field(struct part *part, size_t index, size_t bytes)
{
	uint64_t offset = read_word(part->at, index);

	if (offset > part->size || bytes > part->size - offset || offset % bytes)
		part->sane = false;
	return (uint16_t)offset;
}

static bool
read_published(const struct published *where, const void *runtime,
               struct plumb_python_layout *layout)
{
	struct part thread_state = part_at(runtime, where->thread_state);
	struct part frame = part_at(runtime, where->frame);
	struct part code = part_at(runtime, where->code);
	struct part object = part_at(runtime, where->object);
	struct part type = part_at(runtime, where->type);
	struct part text = part_at(runtime, where->text);

	*layout = (struct plumb_python_layout){
		.entry = read_field(&thread_state, 4, 8),
		.indirect = NONE,
		.stack = NONE,
		.previous = read_field(&frame, 1, 8),
		.code = read_field(&frame, 2, 8),
		.instruction = read_field(&frame, 3, 8),
		.owner = read_field(&frame, 5, 1),
		.locals = read_field(&frame, 4, 8),
		.file = read_field(&code, 1, 8),
		.name = read_field(&code, 2, 8),
		.qualified_name = read_field(&code, 3, 8),
		.lines = read_field(&code, 4, 8),
		.first_line = read_field(&code, 5, 4),
		.bytecode = NONE,
		.first_instruction = read_field(&code, 9, 8),
		.type = read_field(&object, 1, 8),
		.flags = read_field(&type, 3, 8),
		.state = read_field(&text, 1, 4),
		.length = read_field(&text, 2, 8),
		.ascii_data = (uint16_t)read_word(text.at, 3),
	};
	if (!thread_state.sane || !frame.sane || !code.sane || !object.sane || !type.sane ||
	    !text.sane)
		return false;
	/* utf8_length and utf8 follow the short head of a str that is not ASCII. */
	layout->wide_data = layout->ascii_data + 16;
	if (layout->ascii_data < layout->state + 4 || layout->ascii_data % 8 ||
	    layout->wide_data + 8u > text.size)
		return false;
	/* The fields that plumb reads lie before the two that lie before the instructions. */
	if (layout->first_instruction < 16 || layout->file >= layout->first_instruction - 16 ||
	    layout->name >= layout->first_instruction - 16 ||
	    layout->qualified_name >= layout->first_instruction - 16 ||
	    layout->lines >= layout->first_instruction - 16)
		return false;
	layout->traceable = layout->first_instruction - 16;
	return true;
}

static int
find_published(const struct plumb_python_release *release, const void *runtime,
               struct plumb_python_layout *layout, struct plumb_error *error)
{
	uint64_t version;

	if (!runtime || memcmp(runtime, "xdebugpy", 8) != 0)
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"CPython %s does not publish its layout; use a build of python.org's "
			"sources with exported symbols to see Python lines",
			release->text);
	version = read_word(runtime, 1);
	if (version >> 24 != (uint64_t)release->major ||
	    (version >> 16 & 0xff) != (uint64_t)release->minor ||
	    (version >> 8 & 0xff) != (uint64_t)release->micro)
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"CPython %s publishes the layout of another version (%#llx); load one "
			"Python only to see Python lines",
			release->text, (unsigned long long)version);
	if (read_word(runtime, 2))
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"CPython %s is a free-threaded build, whose frames plumb cannot read; "
			"use the ordinary build to see Python lines",
			release->text);
	if (!read_published(&published[release->minor], runtime, layout))
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "CPython %s publishes an impossible layout; use a build of "
		                  "python.org's sources to see Python lines",
		                  release->text);
	if (release->minor >= 14)
		layout->tag = 7; /* references carry tags */
	return 0;
}

int
plumb_python_layout_find(const struct plumb_python_release *release, const void *runtime,
                         struct plumb_python_layout *layout, struct plumb_error *error)
{
	if (release->major != 3 || release->minor < FIRST_MINOR || release->minor > LAST_MINOR ||
	    !release->final)
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"CPython %s is not known; use a release of 3.%d to 3.%d to see Python "
			"lines",
			release->text, FIRST_MINOR, LAST_MINOR);
	if (release->minor >= FIRST_PUBLISHED)
		return find_published(release, runtime, layout, error);
	*layout = known[release->minor];
	return 0;
}

/* ---- the proof ---- */

/* The kernel reads the 8 bytes before it looks at the first
 * argument, which is wrong on purpose. Needs no permission, unlike process_vm_readv. */
bool
plumb_python_readable(const void *base, size_t offset)
{
	uintptr_t at = ((uintptr_t)base + offset) & ~(uintptr_t)7;

	if (!base || at < 4096)
		return false;
	return syscall(SYS_rt_sigprocmask, -1, at, NULL, (size_t)8) == 0 || errno != EFAULT;
}

static bool
read_pointer(const void *base, size_t offset, const char **value)
{
	if (!plumb_python_readable(base, offset) || ((uintptr_t)base & 7))
		return false;
	*value = plumb_python_pointer(base, offset);
	return true;
}

static bool
has_type(const struct plumb_python_layout *layout, const void *object, const void *type)
{
	const char *found;

	return read_pointer(object, layout->type, &found) && found == type;
}

static bool
is_text(const struct plumb_python_layout *layout, const struct plumb_python_api *api,
        const void *object)
{
	const char *type;
	int64_t length;
	int kind;

	if (!read_pointer(object, layout->type, &type) ||
	    !plumb_python_readable(type, layout->flags) ||
	    !plumb_python_is_text(layout, api->unicode_type, type))
		return false;
	if (!plumb_python_readable(object, layout->length) ||
	    !plumb_python_readable(object, layout->state))
		return false;
	length = plumb_python_size(object, layout->length);
	kind = plumb_python_int(object, layout->state) >> PLUMB_PYTHON_TEXT_KIND_SHIFT &
	       PLUMB_PYTHON_TEXT_KIND_MASK;
	return length >= 0 && length < 1 << 24 && (kind == 1 || kind == 2 || kind == 4);
}

/* How many bytes of instructions CODE has. */
static bool
code_bytes(const struct plumb_python_layout *layout, const struct plumb_python_api *api,
           const void *code, int64_t *bytes)
{
	const char *instructions;

	if (layout->bytecode ==
	    NONE) { /* the head of a variable-sized object: its number of units */
		if (!plumb_python_readable(code, layout->type + 8u))
			return false;
		*bytes = 2 * plumb_python_size(code, layout->type + 8u);
	} else {
		if (!read_pointer(code, layout->bytecode, &instructions) ||
		    !has_type(layout, instructions, api->bytes_type) ||
		    !plumb_python_readable(instructions, layout->type + 8u))
			return false;
		*bytes = plumb_python_size(instructions, layout->type + 8u);
	}
	return *bytes > 0 && *bytes < 1 << 28;
}

/* NULL, or what is wrong with the code object. */
static const char *
prove_code(const struct plumb_python_layout *layout, const struct plumb_python_api *api,
           const void *code)
{
	const char *file, *name, *qualified, *lines;

	if (!has_type(layout, code, api->code_type))
		return "a frame's code is not a code object";
	if (!read_pointer(code, layout->file, &file) || !is_text(layout, api, file))
		return "a file name is not a str";
	if (!read_pointer(code, layout->name, &name) || !is_text(layout, api, name))
		return "a function's name is not a str";
	if (layout->qualified_name != NONE &&
	    (!read_pointer(code, layout->qualified_name, &qualified) ||
	     !is_text(layout, api, qualified)))
		return "a qualified name is not a str";
	if (!read_pointer(code, layout->lines, &lines) || !has_type(layout, lines, api->bytes_type))
		return "a line table is not bytes";
	if (!plumb_python_readable(code, layout->first_line) ||
	    plumb_python_int(code, layout->first_line) != api->line(code, -1))
		return "a first line differs from the interpreter's";
	return NULL;
}

/* As prove_code for the place in the code. Counts FRAME when it gives a line. */
static const char *
prove_place(const struct plumb_python_layout *layout, const struct plumb_python_api *api,
            const char *frame, const char *code, int *proved)
{
	int64_t bytes, lasti;
	int line;

	if (!code_bytes(layout, api, code, &bytes))
		return "a code object has no instructions";
	if (!plumb_python_readable(frame, layout->instruction))
		return "an instruction cannot be read";
	if (layout->first_instruction == NONE) {
		lasti = (int64_t)plumb_python_int(frame, layout->instruction) * layout->lasti_scale;
	} else {
		uintptr_t at = (uintptr_t)plumb_python_pointer(frame, layout->instruction);
		int32_t traceable;

		if (!plumb_python_readable(code, layout->traceable))
			return "a code object is cut off";
		traceable = plumb_python_int(code, layout->traceable);
		/* 3.13's clean-up code of a class call says 4 and has 3 units: no sharper bound. */
		if (traceable < 0 || traceable > bytes)
			return "a first traceable instruction is outside its code";
		lasti = (int64_t)(at - ((uintptr_t)code + layout->first_instruction));
	}
	if (lasti < -2 || lasti >= bytes || (lasti != -1 && lasti & 1))
		return "an instruction is outside its code";
	line = api->line(code, (int)lasti);
	if (line < -1)
		return "a line number is impossible";
	if (line > 0)
		(*proved)++;
	return NULL;
}

static const char *
prove_frame(const struct plumb_python_layout *layout, const struct plumb_python_api *api,
            const char *frame, int *proved)
{
	const char *code, *wrong;

	if (layout->owner != NONE) {
		unsigned char owner;
		if (!plumb_python_readable(frame, layout->owner))
			return "a frame cannot be read";
		owner = (unsigned char)frame[layout->owner];
		if (owner > PLUMB_PYTHON_OWNER_LAST)
			return "a frame has an unknown owner";
		if (owner >= PLUMB_PYTHON_OWNER_INTERNAL)
			return NULL;
	}
	if (!read_pointer(frame, layout->code, &code))
		return "a frame cannot be read";
	code = (const char *)((uintptr_t)code & ~(uintptr_t)layout->tag);
	wrong = prove_code(layout, api, code);
	return wrong ? wrong : prove_place(layout, api, frame, code, proved);
}

/* Pages that could be read when this was last asked, in the walk at hand. */
struct pages {
	uintptr_t seen[32];
};

static bool
page_readable(struct pages *pages, const char *base, size_t offset)
{
	uintptr_t page = ((uintptr_t)base + offset) / PAGE;
	uintptr_t *seen = &pages->seen[page % (sizeof pages->seen / sizeof *pages->seen)];

	if (!page || !base || (uintptr_t)base & 7)
		return false;
	if (*seen != page && !plumb_python_readable(base, offset))
		return false;
	*seen = page;
	return true;
}

static bool
frame_walkable(const struct plumb_python_layout *layout, const struct plumb_python_api *api,
               struct pages *pages, const char *frame)
{
	const char *code;

	/* What a walk reads of a frame lies between its two ends. */
	if (!page_readable(pages, frame, 0) || !page_readable(pages, frame, layout->locals))
		return false;
	if (layout->owner != NONE) {
		unsigned char owner = (unsigned char)frame[layout->owner];
		if (owner > PLUMB_PYTHON_OWNER_LAST)
			return false;
		if (owner >= PLUMB_PYTHON_OWNER_INTERNAL)
			return true;
	}
	code = plumb_python_pointer(frame, layout->code);
	code = (const char *)((uintptr_t)code & ~(uintptr_t)layout->tag);
	return page_readable(pages, code, layout->type) &&
	       plumb_python_pointer(code, layout->type) == api->code_type;
}

bool
plumb_python_layout_walkable(const struct plumb_python_layout *layout,
                             const struct plumb_python_api *api, const void *top, const void *stop)
{
	struct pages pages = { { 0 } };
	const char *frame = top;

	for (int i = 0; frame && frame != stop && i < DOUBTED_FRAMES; i++) {
		if (!frame_walkable(layout, api, &pages, frame))
			return false;
		frame = plumb_python_pointer(frame, layout->previous);
	}
	return true;
}

int
plumb_python_layout_prove(const struct plumb_python_layout *layout,
                          const struct plumb_python_api *api, const void *thread_state,
                          struct plumb_error *error)
{
	const char *frame, *holder, *wrong = NULL;
	int proved = 0;

	if (!read_pointer(thread_state, layout->entry, &frame))
		wrong = "a thread state cannot be read";
	if (!wrong && layout->indirect != NONE) {
		holder = frame;
		if (!read_pointer(holder, layout->indirect, &frame))
			wrong = "a thread's frames cannot be read";
	}
	for (int i = 0; !wrong && frame && i < PROOF_FRAMES; i++) {
		wrong = prove_frame(layout, api, frame, &proved);
		if (!wrong && !read_pointer(frame, layout->previous, &frame))
			wrong = "a frame cannot be read";
	}
	if (wrong)
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"the frames of this Python do not look as expected for its version: %s; "
			"use a build of python.org's sources to see Python lines",
			wrong);
	return proved ? 0 : 1;
}

/* The one word in the beginning of the thread state that is SELF. It lies between 136 and 200 bytes
 * in all versions, and no thread state is shorter than what is searched. */
static uint16_t
find_thread_id(const char *thread_state, uint64_t self)
{
	enum { SEARCHED = 240 };
	uint16_t found = NONE;

	for (uint16_t at = 0; at < SEARCHED; at += 8) {
		uint64_t value;
		memcpy(&value, thread_state + at, sizeof value);
		if (value != self)
			continue;
		if (found != NONE)
			return NONE;
		found = at;
	}
	return found;
}

void
plumb_python_layout_widen(struct plumb_python_layout *layout, const void *thread_state,
                          uint64_t self, char *(*bytes_at)(void *bytes))
{
	const char *frame = plumb_python_pointer(thread_state, layout->entry), *code, *lines;
	ptrdiff_t offset = 0;

	layout->thread_id = find_thread_id(thread_state, self);
	layout->bytes_data = NONE;
	if (layout->indirect != NONE)
		frame = plumb_python_pointer(frame, layout->indirect);
	for (; bytes_at && frame; frame = plumb_python_pointer(frame, layout->previous)) {
		if (layout->owner != NONE &&
		    (unsigned char)frame[layout->owner] >= PLUMB_PYTHON_OWNER_INTERNAL)
			continue;
		code = plumb_python_pointer(frame, layout->code);
		code = (const char *)((uintptr_t)code & ~(uintptr_t)layout->tag);
		lines = plumb_python_pointer(code, layout->lines);
		offset = bytes_at((void *)(uintptr_t)lines) - lines;
		break;
	}
	if (offset >= layout->length + 8 && offset <= 64)
		layout->bytes_data = (uint16_t)offset;
}
