/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two readers of CPython's memory share: the collector, inside the process, and `plumb run`,
 * outside it. The collector proves where things lie (collect/monitor/python_layout.h), and writes
 * it into the region's header.
 */
#ifndef PLUMB_REGION_PYTHON_H
#define PLUMB_REGION_PYTHON_H

#include <stdint.h>

#define PLUMB_PYTHON_ABSENT 0xffff /* an offset that this version does not have */

/* A type's flag: str, or a class made from it. */
#define PLUMB_PYTHON_TEXT_TYPE (UINT64_C(1) << 28)

/* A str's state word: how wide its characters are (1, 2, 4 bytes), and where they lie. */
enum {
	PLUMB_PYTHON_TEXT_KIND_SHIFT = 2,
	PLUMB_PYTHON_TEXT_KIND_MASK = 7,
	PLUMB_PYTHON_TEXT_COMPACT = 1 << 5, /* right behind the object's head */
	PLUMB_PYTHON_TEXT_ASCII = 1 << 6,   /* … and that head is the short one */
};

/*
 * How to read the Python frames of the process from outside: offsets in bytes, as in
 * collect/monitor/python_layout.h, and addresses in the process. It is for `plumb run`, while the
 * process lives. Settle does not look at it.
 */
#define PLUMB_REGION_PYTHON_READY 2u
struct plumb_region_python {
	_Atomic uint32_t state; /* 0: there is none, 1: being written, PLUMB_REGION_PYTHON_READY */
	uint16_t minor;         /* 11 of 3.11 */
	uint16_t thread_id;     /* in the thread state: pthread_self() of its thread */
	uint16_t entry, indirect;
	uint16_t previous, code, instruction, owner, owner_internal, owner_generator;
	uint16_t tag, lasti_scale, first_instruction, traceable;
	uint16_t file, name, lines, first_line; /* name: the qualified one where there is one */
	uint16_t type, flags, length, text_state, ascii_data, wide_data;
	uint16_t bytes_data; /* in a bytes object, its first byte */
	uint16_t pad;
	uint64_t code_type, unicode_type, bytes_type;
	/* Address of a 32-bit count. While the count stays and is not 0, no code object took
	 * another's place. */
	uint64_t codes_freed;
};

#endif
