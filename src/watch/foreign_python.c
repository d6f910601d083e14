/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For a walk, the caller knows that the thread did not run meanwhile. The rest of the proof:
 *
 * - The thread state names its thread, and its neighbours in the interpreter's list name the thread
 *   state. So it was not freed, and not made again for another thread.
 * - In 3.11 and 3.12, each evaluation has a structure on the C stack that names its innermost frame
 *   (the "cframe"). The walk meets the frames of all of them, in order.
 * - Every frame runs a code object, or is the interpreter's own.
 *
 * For a glimpse, the thread may run. While plumb goes from a frame to the one that called it, that
 * one may go on and call another function, so what one look sees need not be a stack that ever was.
 * But what several looks see alike was one: a frame at the same address with the same code, and
 * each frame around it at the very instruction that called. A loop would have to come to the same
 * wrong moment at each look. So the looks do not come in a steady beat.
 */
#include "watch/foreign_python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "watch/python_lines.h"

enum {
	LIST_PREVIOUS = 0, /* in the thread state of every version: its neighbours, newest first */
	LIST_NEXT = 8,
	CODE_FLAGS = 36, /* in a code object of 3.9 and 3.10 */
	CODE_GENERATOR = 0x20,
	CODE_COROUTINE = 0x80,
	CODE_ASYNC_GENERATOR = 0x200,
	FRAME_BYTES = 512, /* no offset into a frame lies beyond */
	HOPS_MAX = 8 * PLUMB_FOREIGN_FRAMES,
	LOOKS = 6,         /* of a glimpse */
	TRIES = 16,        /* of a look: a stack that changes may lead nowhere */
	STARTS = 4,        /* of a glimpse, if nothing stayed */
	PAUSE_MOST = 1024, /* steps of a short loop between two looks */
	LARGEST_TABLE = 1 << 24,
};

/* ---- walking ---- */

/* Whether STATE is in a list of thread states, and belongs to the thread SELF. */
static bool
is_of_thread(struct plumb_foreign *memory, const struct plumb_region_python *python, uint64_t state,
             uint64_t self)
{
	uint64_t previous, next, back, thread;

	if (!plumb_foreign_pointer(memory, state + python->thread_id, &thread) || thread != self ||
	    !plumb_foreign_pointer(memory, state + LIST_PREVIOUS, &previous) ||
	    !plumb_foreign_pointer(memory, state + LIST_NEXT, &next))
		return false;
	if (previous &&
	    (!plumb_foreign_pointer(memory, previous + LIST_NEXT, &back) || back != state))
		return false;
	return !next ||
	       (plumb_foreign_pointer(memory, next + LIST_PREVIOUS, &back) && back == state);
}

/* A thread's cframes, from the innermost out. `frame` is the frame that `cframe` names. */
struct evaluations {
	uint64_t cframe; /* 0: there are no more */
	uint64_t frame;
};

static bool
next_evaluation(struct plumb_foreign *memory, const struct plumb_region_python *python,
                struct evaluations *at)
{
	uint64_t outer = 0;

	/* In both versions, the pointer to the outer cframe lies behind the frame's. */
	if (!plumb_foreign_pointer(memory, at->cframe + python->indirect + 8u, &outer))
		return false;
	at->cframe = outer;
	at->frame = 0;
	return !outer || plumb_foreign_pointer(memory, outer + python->indirect, &at->frame);
}

static uint64_t
word_at(const char *frame, size_t offset)
{
	uint64_t value = 0;
	if (offset + sizeof value <= FRAME_BYTES)
		memcpy(&value, frame + offset, sizeof value);
	return value;
}

static int32_t
int_at(const char *frame, size_t offset)
{
	int32_t value = 0;
	if (offset + sizeof value <= FRAME_BYTES)
		memcpy(&value, frame + offset, sizeof value);
	return value;
}

/* What FRAME says of its instruction: an address or a number. */
static int64_t
instruction_of(const struct plumb_region_python *python, const char *frame)
{
	return python->first_instruction == PLUMB_PYTHON_ABSENT
	               ? int_at(frame, python->instruction)
	               : (int64_t)word_at(frame, python->instruction);
}

/* Where a frame with this INSTRUCTION is in CODE, which it runs. False: before its body. */
static bool
place_in_code(struct plumb_foreign *memory, const struct plumb_region_python *python,
              int64_t instruction, uint64_t code, unsigned owner, int32_t *lasti)
{
	int64_t at;
	int32_t traceable;

	if (python->first_instruction == PLUMB_PYTHON_ABSENT) {
		at = instruction * python->lasti_scale;
	} else {
		at = (int64_t)((uint64_t)instruction - code - python->first_instruction);
		if (!plumb_foreign_read(memory, code + python->traceable, &traceable,
		                        sizeof traceable) ||
		    (at < 2 * (int64_t)traceable && owner != python->owner_generator))
			return false;
	}
	*lasti = at >= -2 && at <= INT32_MAX ? (int32_t)at : -1;
	return true;
}

/* How many bytes of a frame are read. */
static size_t
frame_bytes(const struct plumb_region_python *python)
{
	size_t last = python->previous > python->code ? python->previous : python->code;

	if (python->instruction > last)
		last = python->instruction;
	if (python->owner != PLUMB_PYTHON_ABSENT && python->owner > last)
		last = python->owner;
	return last + 8;
}

/* Adds the frame at ADDRESS if the program itself would see it. *previous gets the next outer one.
 * False: there is no frame at ADDRESS. */
static bool
take_frame(struct plumb_foreign *memory, const struct plumb_region_python *python, uint64_t address,
           struct plumb_foreign_walk *walk, uint64_t *previous)
{
	char frame[FRAME_BYTES] = "";
	uint64_t code, type;
	unsigned owner = 0;
	int32_t lasti;

	if (address % 8 || frame_bytes(python) > sizeof frame ||
	    !plumb_foreign_read(memory, address, frame, frame_bytes(python)))
		return false;
	*previous = word_at(frame, python->previous);
	if (python->owner != PLUMB_PYTHON_ABSENT) {
		owner = (unsigned char)frame[python->owner];
		if (owner >= python->owner_internal)
			return true;
	}
	code = word_at(frame, python->code) & ~(uint64_t)python->tag;
	if (!plumb_foreign_pointer(memory, code + python->type, &type))
		return false;
	if (type != python->code_type ||
	    !place_in_code(memory, python, instruction_of(python, frame), code, owner, &lasti))
		return true;
	if (walk->count == PLUMB_FOREIGN_FRAMES)
		walk->truncated = true;
	else
		walk->frames[walk->count++] = (struct plumb_foreign_frame){ code, lasti };
	return true;
}

bool
plumb_foreign_python_walk(struct plumb_foreign *memory, const struct plumb_region_python *python,
                          uint64_t state, uint64_t self, struct plumb_foreign_walk *walk)
{
	struct evaluations evaluations = { 0 };
	uint64_t frame;

	walk->count = 0;
	walk->truncated = false;
	if (!state || !self || !is_of_thread(memory, python, state, self) ||
	    !plumb_foreign_pointer(memory, state + python->entry, &frame))
		return false;
	if (python->indirect != PLUMB_PYTHON_ABSENT) {
		evaluations.cframe = frame;
		if (!plumb_foreign_pointer(memory, frame + python->indirect, &frame) ||
		    !next_evaluation(memory, python, &evaluations))
			return false;
	}
	for (int hop = 0; frame && !walk->truncated; hop++) {
		for (; evaluations.cframe && evaluations.frame == frame; hop++)
			if (hop >= HOPS_MAX || !next_evaluation(memory, python, &evaluations))
				return false;
		if (hop >= HOPS_MAX || !take_frame(memory, python, frame, walk, &frame))
			return false;
	}
	/* The outermost cframe is the thread state's own, which names no frame. */
	return walk->count && (walk->truncated || !evaluations.frame);
}

/* ---- a glimpse ---- */

static bool
see_frame(struct plumb_foreign *memory, const struct plumb_region_python *python, uint64_t address,
          struct plumb_foreign_seen *seen, uint64_t *previous)
{
	char frame[FRAME_BYTES] = "";

	if (address % 8 || frame_bytes(python) > sizeof frame ||
	    !plumb_foreign_read(memory, address, frame, frame_bytes(python)))
		return false;
	*previous = word_at(frame, python->previous);
	*seen = (struct plumb_foreign_seen){
		.address = address,
		.code = word_at(frame, python->code) & ~(uint64_t)python->tag,
		.at = instruction_of(python, frame),
		.owner = python->owner == PLUMB_PYTHON_ABSENT ? 0
		                                              : (unsigned char)frame[python->owner],
	};
	return true;
}

/* Can FRAME be a thread's outermost one? From 3.12 on, C code has a frame of its own there. Before,
 * a look may see a generator that just gave a value: it has lost the link to its caller. */
static bool
may_be_outermost(struct plumb_foreign *memory, const struct plumb_region_python *python,
                 const struct plumb_foreign_seen *frame)
{
	int32_t flags;

	if (python->minor >= 12)
		return frame->owner >= python->owner_internal;
	if (python->owner != PLUMB_PYTHON_ABSENT)
		return frame->owner != python->owner_generator;
	return plumb_foreign_read(memory, frame->code + CODE_FLAGS, &flags, sizeof flags) &&
	       !(flags & (CODE_GENERATOR | CODE_COROUTINE | CODE_ASYNC_GENERATOR));
}

/* The frames as one look sees them, outermost first. Returns how many; 0: they do not lead to where
 * a thread begins. */
static uint32_t
see_frames(struct plumb_foreign *memory, const struct plumb_region_python *python, uint64_t state,
           uint64_t self, struct plumb_foreign_seen *frames)
{
	uint32_t count = 0;
	uint64_t frame;

	if (!state || !self || !is_of_thread(memory, python, state, self) ||
	    !plumb_foreign_pointer(memory, state + python->entry, &frame) ||
	    (python->indirect != PLUMB_PYTHON_ABSENT &&
	     !plumb_foreign_pointer(memory, frame + python->indirect, &frame)))
		return 0;
	while (frame)
		if (count == PLUMB_FOREIGN_SEEN ||
		    !see_frame(memory, python, frame, &frames[count++], &frame))
			return 0;
	if (!count || !may_be_outermost(memory, python, &frames[count - 1]))
		return 0;
	for (uint32_t i = 0; i < count / 2; i++) {
		struct plumb_foreign_seen outer = frames[count - 1 - i];
		frames[count - 1 - i] = frames[i];
		frames[i] = outer;
	}
	return count;
}

static void
pause_a_little(struct plumb_foreign_glimpse *glimpse)
{
	glimpse->random = plumb_hash_mix(glimpse->random, 1);
	for (volatile uint32_t left = glimpse->random % PAUSE_MOST; left; left--)
		;
}

/* Looks until it sees FRAMES. Returns how many; 0: it never did. */
static uint32_t
look_for_frames(struct plumb_foreign *memory, const struct plumb_region_python *python,
                uint64_t state, uint64_t self, struct plumb_foreign_glimpse *glimpse,
                struct plumb_foreign_seen *frames)
{
	uint32_t count = 0;

	for (int i = 0; i < TRIES && !count && memory->error != ESRCH; i++) {
		pause_a_little(glimpse);
		plumb_foreign_refresh(memory);
		count = see_frames(memory, python, state, self, frames);
	}
	return count;
}

/* Keeps the frames that were seen again. The innermost one may have moved on. */
static void
keep_same(struct plumb_foreign_glimpse *glimpse)
{
	uint32_t kept = 0;

	while (kept < glimpse->count && kept < glimpse->again_count) {
		struct plumb_foreign_seen *old = &glimpse->frames[kept];
		const struct plumb_foreign_seen *now = &glimpse->again[kept];
		if (old->address != now->address || old->code != now->code ||
		    old->owner != now->owner)
			break;
		kept++;
		if (old->at != now->at) {
			*old = *now;
			break;
		}
	}
	glimpse->count = kept;
}

bool
plumb_foreign_python_confirm(struct plumb_foreign *memory, const struct plumb_region_python *python,
                             uint64_t state, uint64_t self, struct plumb_foreign_glimpse *glimpse)
{
	glimpse->again_count =
		look_for_frames(memory, python, state, self, glimpse, glimpse->again);
	keep_same(glimpse);
	return glimpse->count;
}

/* Keeps what LOOKS see alike of the frames of the glimpse. No fewer if they are the same: a short
 * loop comes to the same moment again. */
static void
look_on(struct plumb_foreign *memory, const struct plumb_region_python *python, uint64_t state,
        uint64_t self, struct plumb_foreign_glimpse *glimpse)
{
	for (int look = 1; glimpse->count && look < LOOKS; look++)
		plumb_foreign_python_confirm(memory, python, state, self, glimpse);
}

bool
plumb_foreign_python_glimpse(struct plumb_foreign *memory, const struct plumb_region_python *python,
                             uint64_t state, uint64_t self, struct plumb_foreign_glimpse *glimpse)
{
	/* Two looks that have not even the outermost frame in common: one of them saw no stack. */
	for (int start = 0; start < STARTS; start++) {
		glimpse->count =
			look_for_frames(memory, python, state, self, glimpse, glimpse->frames);
		if (!glimpse->count)
			return false;
		look_on(memory, python, state, self, glimpse);
		if (glimpse->count)
			return true;
	}
	return false;
}

enum plumb_foreign_place
plumb_foreign_python_place(struct plumb_foreign *code, const struct plumb_region_python *python,
                           const struct plumb_foreign_seen *seen, struct plumb_foreign_frame *frame)
{
	uint64_t type, units;

	if (python->owner != PLUMB_PYTHON_ABSENT && seen->owner >= python->owner_internal)
		return PLUMB_FOREIGN_INTERNAL;
	if (!plumb_foreign_pointer(code, seen->code + python->type, &type) ||
	    type != python->code_type)
		return PLUMB_FOREIGN_NONE;
	frame->code = seen->code;
	if (!place_in_code(code, python, seen->at, seen->code, seen->owner, &frame->lasti))
		return PLUMB_FOREIGN_INTERNAL;
	/* An instruction of the function that had this frame's place before. */
	if (python->first_instruction != PLUMB_PYTHON_ABSENT &&
	    (!plumb_foreign_pointer(code, seen->code + python->type + 8u, &units) ||
	     frame->lasti < 0 || (uint64_t)frame->lasti >= 2 * units))
		return PLUMB_FOREIGN_NONE;
	return PLUMB_FOREIGN_PLACE;
}

/* ---- text ---- */

/* Where a str's characters begin, how many bytes wide each is, and how many there are. */
static bool
find_text(struct plumb_foreign *memory, const struct plumb_region_python *python, uint64_t text,
          uint64_t *at, int *kind, uint64_t *length)
{
	uint64_t type, flags;
	uint32_t bits;

	if (!plumb_foreign_pointer(memory, text + python->type, &type) ||
	    (type != python->unicode_type &&
	     (!plumb_foreign_pointer(memory, type + python->flags, &flags) ||
	      !(flags & PLUMB_PYTHON_TEXT_TYPE))) ||
	    !plumb_foreign_read(memory, text + python->text_state, &bits, sizeof bits) ||
	    !plumb_foreign_pointer(memory, text + python->length, length))
		return false;
	*kind = bits >> PLUMB_PYTHON_TEXT_KIND_SHIFT & PLUMB_PYTHON_TEXT_KIND_MASK;
	if (bits & PLUMB_PYTHON_TEXT_COMPACT)
		*at = text +
		      (bits & PLUMB_PYTHON_TEXT_ASCII ? python->ascii_data : python->wide_data);
	else if (!plumb_foreign_pointer(memory, text + python->wide_data, at))
		return false;
	return *kind == 1 || *kind == 2 || *kind == 4;
}

/* Writes the str TEXT as UTF-8, as much of it as fits. */
static void
read_text(struct plumb_foreign *memory, const struct plumb_region_python *python, uint64_t text,
          char *out, size_t size)
{
	uint64_t at, length;
	size_t used = 0;
	int kind;

	if (!find_text(memory, python, text, &at, &kind, &length)) {
		snprintf(out, size, "<unknown>");
		return;
	}
	for (uint64_t i = 0; i < length && used + 1 < size; i++) {
		uint32_t character = 0; /* little endian */
		char bytes[4];
		if (!plumb_foreign_read(memory, at + i * (unsigned)kind, &character, (size_t)kind))
			break;
		size_t n = plumb_utf8_put(character, bytes);
		if (n > size - 1 - used)
			break;
		memcpy(out + used, bytes, n);
		used += n;
	}
	out[used] = '\0';
}

static uint32_t
read_line(struct plumb_foreign *memory, const struct plumb_region_python *python, uint64_t lines,
          int32_t first_line, int32_t lasti)
{
	uint64_t type, bytes;
	unsigned char *table;
	uint32_t line = 0;

	if (!plumb_foreign_pointer(memory, lines + python->type, &type) ||
	    type != python->bytes_type ||
	    !plumb_foreign_pointer(memory, lines + python->type + 8u, &bytes) ||
	    bytes > LARGEST_TABLE || !(table = malloc(bytes + 1)))
		return 0;
	if (plumb_foreign_read(memory, lines + python->bytes_data, table, bytes))
		line = plumb_python_line(python->minor, table, bytes, first_line, lasti);
	free(table);
	return line;
}

bool
plumb_foreign_python_symbol(struct plumb_foreign *memory, const struct plumb_region_python *python,
                            const struct plumb_foreign_frame *frame,
                            struct plumb_foreign_symbol *symbol)
{
	uint64_t file, name, lines;
	int32_t first_line;

	if (!plumb_foreign_pointer(memory, frame->code + python->file, &file) ||
	    !plumb_foreign_pointer(memory, frame->code + python->name, &name) ||
	    !plumb_foreign_pointer(memory, frame->code + python->lines, &lines) ||
	    !plumb_foreign_read(memory, frame->code + python->first_line, &first_line,
	                        sizeof first_line))
		return false;
	read_text(memory, python, file, symbol->file, sizeof symbol->file);
	read_text(memory, python, name, symbol->function, sizeof symbol->function);
	symbol->line = read_line(memory, python, lines, first_line, frame->lasti);
	return true;
}
