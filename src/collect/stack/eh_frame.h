/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .eh_frame, decoded: how the frame of a function is left at one of its instructions. Private to
 * src/collect/stack. Every read is checked against the mapped bytes; what is damaged or uses a rule
 * that is not known has no row.
 */
#ifndef PLUMB_COLLECT_STACK_EH_FRAME_H
#define PLUMB_COLLECT_STACK_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__aarch64__)
enum { PLUMB_EH_FP = 29, PLUMB_EH_SP = 31, PLUMB_EH_RA = 30, PLUMB_EH_LINK = 1 };
#else
enum { PLUMB_EH_FP = 6, PLUMB_EH_SP = 7, PLUMB_EH_RA = 16, PLUMB_EH_LINK = 0 };
#endif

struct plumb_eh_range {
	const uint8_t *low, *high;
};

/* Where an object keeps its tables. Fill with plumb_eh_open. */
struct plumb_eh_image {
	const uint8_t *header; /* .eh_frame_hdr: what the index's numbers are relative to */
	const uint8_t *index;  /* COUNT pairs of int32_t (function, FDE), sorted; NULL: none */
	uint32_t count;
	const uint8_t *frames;        /* the first record of .eh_frame */
	struct plumb_eh_range mapped; /* readable bytes around it */
};

/* HEADER (BYTES long) is .eh_frame_hdr, SEGMENTS the object's readable segments. False: no
 * tables. */
bool plumb_eh_open(struct plumb_eh_image *image, const uint8_t *header, size_t bytes,
                   const struct plumb_eh_range *segments, unsigned count);

/* The registers here and now are the callee's: */
enum plumb_eh_kind {
	PLUMB_EH_NONE,   /* no rule */
	PLUMB_EH_FRAME,  /* CFA = base + cfa, or *(base + at) + cfa where `deref` */
	PLUMB_EH_SIGNAL, /* all are in memory: sp at sp + cfa, fp at sp + fp, pc at sp + ra */
	PLUMB_EH_END,    /* the thread begins here */
};
enum plumb_eh_fp {
	PLUMB_EH_FP_SAME,
	PLUMB_EH_FP_AT_CFA, /* saved at CFA + fp */
	PLUMB_EH_FP_AT_FP,  /* saved at fp + `fp` (a frame that was aligned anew) */
	PLUMB_EH_FP_LOST,
};

struct plumb_eh_row {
	uint8_t kind; /* enum plumb_eh_kind */
	uint8_t base; /* register, by its DWARF number */
	uint8_t save; /* enum plumb_eh_fp */
	bool deref;
	bool link;        /* the return address is in the link register (AArch64), … */
	bool in_register; /* … in the register `ra`, else at CFA + ra */
	bool internal;    /* the walk's own: see walk.c */
	int32_t cfa, at, fp, ra;
};

/* The row for the instruction at PC. False: no function of IMAGE holds it, or none that can be
 * decoded; *row is PLUMB_EH_NONE then. */
bool plumb_eh_decode(const struct plumb_eh_image *image, uintptr_t pc, struct plumb_eh_row *row);

/* Where the function that holds PC keeps its caller's register REG at that instruction: at CFA +
 * *offset where *saved, else still in the register. False: neither. */
bool plumb_eh_saved(const struct plumb_eh_image *image, uintptr_t pc, unsigned reg, bool *saved,
                    int32_t *offset);

/* The extent of the function that holds PC. */
bool
plumb_eh_extent(const struct plumb_eh_image *image, uintptr_t pc, uintptr_t *start, uintptr_t *end);

/* ---- as one word, to be kept ---- */

/* 0: it does not fit (a frame of more than 256 KiB, say), or is PLUMB_EH_NONE; so decode again. */
uint64_t plumb_eh_pack(const struct plumb_eh_row *row);

static inline void
plumb_eh_unpack(uint64_t word, struct plumb_eh_row *row)
{
	row->kind = word & 3;
	row->base = word >> 2 & 31;
	row->save = word >> 7 & 3;
	row->deref = word >> 9 & 1;
	row->link = word >> 10 & 1;
	row->in_register = false;
	row->internal = word >> 11 & 1;
	row->cfa = (int32_t)((int64_t)(word << 36) >> 48) * 8;
	row->fp = (int32_t)((int64_t)(word << 24) >> 52) * 8;
	row->ra = (int32_t)((int64_t)(word << 12) >> 52) * 8;
	row->at = (int32_t)((int64_t)word >> 52) * 8;
}

/* ---- for eh_expression.c ---- */

/* A value while an expression is evaluated: add, reg + add, or *(reg + at) + add. */
struct plumb_eh_value {
	enum { PLUMB_EH_NUMBER, PLUMB_EH_REGISTER, PLUMB_EH_MEMORY } kind;
	uint32_t reg;
	int64_t at, add;
};

/* Evaluates BYTES of a DWARF expression at the instruction PC. False: not of the form above. */
bool plumb_eh_evaluate(const uint8_t *expression, size_t bytes, uintptr_t pc,
                       struct plumb_eh_value *value);

/* ---- reading, for both files ---- */

struct plumb_eh_cursor {
	const uint8_t *at, *end;
	bool bad; /* a read went past the end: everything since then is 0 */
};

uint64_t plumb_eh_fixed(struct plumb_eh_cursor *cursor, unsigned bytes);
uint64_t plumb_eh_uleb(struct plumb_eh_cursor *cursor);
int64_t plumb_eh_sleb(struct plumb_eh_cursor *cursor);

#endif
