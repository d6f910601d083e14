/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an instruction to its row: .eh_frame_hdr's sorted index gives the function's record (FDE),
 * whose common record (CIE) says how to read it, and a small program in both says where the frame's
 * parts are at each instruction. The program runs up to the instruction that is asked about.
 */
#include "collect/stack/eh_frame.h"

#include <string.h>

#include "base/search.h"

enum {
	REMEMBERED = 8,       /* nested DW_CFA_remember_state; compilers use one */
	AUGMENTATION = 8,     /* letters of a CIE's augmentation */
	LINEAR_MOST = 100000, /* records that a search without an index looks at */
};

/* ---- encoded pointers (DW_EH_PE_*) ---- */

enum {
	PE_ABSOLUTE = 0x00,
	PE_RELATIVE = 0x10,      /* to the pointer itself */
	PE_DATA_RELATIVE = 0x30, /* to .eh_frame_hdr, in it */
	PE_INDIRECT = 0x80,
	PE_OMITTED = 0xff,
	PE_INDEX = PE_DATA_RELATIVE | 0x0b, /* sdata4: the only index that linkers make */
};

/* The bare number, by the encoding's low half. */
static uint64_t
encoded_number(struct plumb_eh_cursor *cursor, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case 0x01:
		return plumb_eh_uleb(cursor);
	case 0x02:
		return plumb_eh_fixed(cursor, 2);
	case 0x03:
		return plumb_eh_fixed(cursor, 4);
	case 0x00: /* as wide as an address */
	case 0x04:
	case 0x0c:
		return plumb_eh_fixed(cursor, 8);
	case 0x09:
		return (uint64_t)plumb_eh_sleb(cursor);
	case 0x0a:
		return (uint64_t)(int16_t)plumb_eh_fixed(cursor, 2);
	case 0x0b:
		return (uint64_t)(int32_t)plumb_eh_fixed(cursor, 4);
	default:
		cursor->bad = true;
		return 0;
	}
}

static uintptr_t
encoded_pointer(struct plumb_eh_cursor *cursor, uint8_t encoding, const uint8_t *header)
{
	uintptr_t here = (uintptr_t)cursor->at;
	uint64_t number = encoded_number(cursor, encoding);
	switch (encoding & 0xf0) {
	case PE_ABSOLUTE:
		return number;
	case PE_RELATIVE:
		return here + number;
	case PE_DATA_RELATIVE:
		if (header)
			return (uintptr_t)header + number;
		break;
	default:
		break;
	}
	cursor->bad = true;
	return 0;
}

/* ---- opening ---- */

bool
plumb_eh_open(struct plumb_eh_image *image, const uint8_t *header, size_t bytes,
              const struct plumb_eh_range *segments, unsigned count)
{
	struct plumb_eh_cursor cursor = { header, header + bytes, false };
	uint8_t version = (uint8_t)plumb_eh_fixed(&cursor, 1);
	uint8_t frames_encoding = (uint8_t)plumb_eh_fixed(&cursor, 1);
	uint8_t count_encoding = (uint8_t)plumb_eh_fixed(&cursor, 1);
	uint8_t index_encoding = (uint8_t)plumb_eh_fixed(&cursor, 1);
	uintptr_t frames = encoded_pointer(&cursor, frames_encoding, header);
	*image = (struct plumb_eh_image){ .header = header };
	if (cursor.bad || version != 1)
		return false;
	for (unsigned i = 0; i < count && !image->frames; i++) {
		if (frames < (uintptr_t)segments[i].low || frames >= (uintptr_t)segments[i].high)
			continue;
		image->mapped = segments[i];
		image->frames = segments[i].low + (frames - (uintptr_t)segments[i].low);
	}
	if (index_encoding == PE_INDEX && count_encoding != PE_OMITTED) {
		uint64_t entries = encoded_number(&cursor, count_encoding);
		if (!cursor.bad && (count_encoding & 0xf0) == PE_ABSOLUTE && entries &&
		    entries <= (size_t)(cursor.end - cursor.at) / 8) {
			image->index = cursor.at;
			image->count = (uint32_t)entries;
		}
	}
	return image->frames != NULL;
}

/* ---- records ---- */

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* of pointers to code */
	bool augmented;   /* records carry a length of what augments them */
	bool signal;
	struct plumb_eh_cursor program;
};
struct fde {
	struct cie cie;
	uintptr_t start, bytes;
	struct plumb_eh_cursor program;
};

/* A record's content behind its length; false at the terminator, and for what is damaged. */
static bool
open_record(const struct plumb_eh_image *image, const uint8_t *at, struct plumb_eh_cursor *record)
{
	if (at < image->mapped.low || at >= image->mapped.high)
		return false;
	*record = (struct plumb_eh_cursor){ at, image->mapped.high, false };
	uint64_t length = plumb_eh_fixed(record, 4);
	if (length == 0xffffffff)
		length = plumb_eh_fixed(record, 8);
	if (record->bad || !length || length > (size_t)(record->end - record->at))
		return false;
	record->end = record->at + length;
	return true;
}

/* Reads what the letters of TEXT announce; false when one is unknown. */
static bool
read_augmentation(struct plumb_eh_cursor *record, const char *text, struct cie *cie)
{
	struct plumb_eh_cursor data = *record;
	if (!*text)
		return true;
	if (*text != 'z')
		return false;
	uint64_t bytes = plumb_eh_uleb(&data);
	if (data.bad || bytes > (size_t)(data.end - data.at))
		return false;
	cie->augmented = true;
	data.end = data.at + bytes;
	record->at = data.end;
	while (*++text) {
		uint8_t encoding;
		switch (*text) {
		case 'R':
			cie->encoding = (uint8_t)plumb_eh_fixed(&data, 1);
			break;
		case 'P': /* a personality routine, which is of no interest */
			encoding = (uint8_t)plumb_eh_fixed(&data, 1);
			if (encoding != PE_OMITTED)
				encoded_number(&data, encoding);
			break;
		case 'L':
			plumb_eh_fixed(&data, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* AArch64: the other key signs return addresses */
		case 'G': /* AArch64: tagged stack memory */
			break;
		default:
			return false;
		}
	}
	return !data.bad;
}

static bool
read_cie(const struct plumb_eh_image *image, const uint8_t *at, struct cie *cie)
{
	struct plumb_eh_cursor record;
	char text[AUGMENTATION + 1] = "";
	*cie = (struct cie){ .encoding = PE_ABSOLUTE };
	if (!open_record(image, at, &record) || plumb_eh_fixed(&record, 4) != 0)
		return false;
	uint8_t version = (uint8_t)plumb_eh_fixed(&record, 1);
	for (int i = 0; i < AUGMENTATION; i++) {
		text[i] = (char)plumb_eh_fixed(&record, 1);
		if (!text[i])
			break;
	}
	if (record.bad || text[AUGMENTATION - 1])
		return false;
	if (version == 4 && (plumb_eh_fixed(&record, 1) != 8 || plumb_eh_fixed(&record, 1) != 0))
		return false;
	if (version != 1 && version != 3 && version != 4)
		return false;
	cie->code_align = plumb_eh_uleb(&record);
	cie->data_align = plumb_eh_sleb(&record);
	uint64_t ra = version == 1 ? plumb_eh_fixed(&record, 1) : plumb_eh_uleb(&record);
	if (ra != PLUMB_EH_RA || !read_augmentation(&record, text, cie))
		return false;
	cie->program = record;
	return !record.bad;
}

/* The FDE at AT; false when it is none, or damaged. */
static bool
read_fde(const struct plumb_eh_image *image, const uint8_t *at, struct fde *fde)
{
	struct plumb_eh_cursor record;
	if (!open_record(image, at, &record))
		return false;
	const uint8_t *field = record.at;
	uint64_t back = plumb_eh_fixed(&record, 4);
	if (record.bad || !back || back > (size_t)(field - image->mapped.low) ||
	    !read_cie(image, field - back, &fde->cie))
		return false;
	if (fde->cie.encoding & PE_INDIRECT)
		return false;
	fde->start = encoded_pointer(&record, fde->cie.encoding, NULL);
	fde->bytes = encoded_number(&record, fde->cie.encoding);
	if (fde->cie.augmented) {
		uint64_t bytes = plumb_eh_uleb(&record);
		if (record.bad || bytes > (size_t)(record.end - record.at))
			return false;
		record.at += bytes;
	}
	fde->program = record;
	return !record.bad;
}

/* ---- searching ---- */

static int32_t
index_number(const struct plumb_eh_image *image, size_t number)
{
	int32_t value;
	memcpy(&value, image->index + 4 * number, sizeof value);
	return value;
}

static const uint8_t *
search_index(const struct plumb_eh_image *image, uintptr_t pc)
{
	intptr_t wanted = (intptr_t)(pc - (uintptr_t)image->header);
	size_t behind = plumb_search(i, image->count, index_number(image, 2ul * i) <= wanted);
	if (!behind)
		return NULL;
	/* Of the last entry that begins at or before it. */
	uintptr_t at = (uintptr_t)image->header + (intptr_t)index_number(image, 2 * behind - 1);
	if (at < (uintptr_t)image->mapped.low || at >= (uintptr_t)image->mapped.high)
		return NULL;
	return image->mapped.low + (at - (uintptr_t)image->mapped.low);
}

static bool
holds_pc(const struct fde *fde, uintptr_t pc)
{
	return pc >= fde->start && pc - fde->start < fde->bytes;
}

/* One record after the other, for an object without an index. */
static bool
search_linear(const struct plumb_eh_image *image, uintptr_t pc, struct fde *fde)
{
	const uint8_t *at = image->frames;
	struct plumb_eh_cursor record;
	for (int i = 0; i < LINEAR_MOST && open_record(image, at, &record); i++) {
		if (read_fde(image, at, fde) && holds_pc(fde, pc))
			return true;
		at = record.end;
	}
	return false;
}

static bool
find_fde(const struct plumb_eh_image *image, uintptr_t pc, struct fde *fde)
{
	if (!image->index)
		return search_linear(image, pc, fde);
	const uint8_t *at = search_index(image, pc);
	return at && read_fde(image, at, fde) && holds_pc(fde, pc);
}

bool
plumb_eh_extent(const struct plumb_eh_image *image, uintptr_t pc, uintptr_t *start, uintptr_t *end)
{
	struct fde fde;
	if (!find_fde(image, pc, &fde))
		return false;
	*start = fde.start;
	*end = fde.start + fde.bytes;
	return true;
}

/* ---- the program ---- */

/* Where a register's value for the caller is. */
struct rule {
	enum { SAME, UNDEFINED, AT_CFA, IN_REGISTER, EXPRESSION, OTHERWISE } how;
	int64_t offset; /* or the register */
	struct plumb_eh_cursor expression;
};
struct state {
	uint64_t base; /* register */
	int64_t cfa;
	bool by_expression;
	struct plumb_eh_cursor expression;
	struct rule fp, ra, other;
};
struct machine {
	const struct fde *fde;
	uint64_t other; /* a register that is asked about, too */
	struct plumb_eh_cursor code;
	uintptr_t location, pc;
	struct state now, initial, remembered[REMEMBERED];
	unsigned depth;
	bool bad;
};

static struct rule *
rule_of(struct state *state, uint64_t reg, uint64_t other)
{
	return reg == PLUMB_EH_FP   ? &state->fp
	       : reg == PLUMB_EH_RA ? &state->ra
	       : reg == other       ? &state->other
	                            : NULL;
}

static void
set_rule(struct machine *m, uint64_t reg, struct rule rule)
{
	struct rule *of = rule_of(&m->now, reg, m->other);
	if (of)
		*of = rule;
}

static void
restore_rule(struct machine *m, uint64_t reg)
{
	const struct rule *before = rule_of(&m->initial, reg, m->other);
	if (before)
		set_rule(m, reg, *before);
}

static int64_t
scale_offset(const struct machine *m, int64_t number)
{
	return (int64_t)((uint64_t)number * (uint64_t)m->fde->cie.data_align);
}

static void
saved_at(struct machine *m, uint64_t reg, int64_t number)
{
	set_rule(m, reg, (struct rule){ .how = AT_CFA, .offset = scale_offset(m, number) });
}

static void
define_cfa(struct machine *m, uint64_t base, int64_t offset)
{
	m->now.base = base;
	m->now.cfa = offset;
	m->now.by_expression = false;
}

static struct plumb_eh_cursor
take_block(struct machine *m)
{
	uint64_t bytes = plumb_eh_uleb(&m->code);
	if (bytes > (size_t)(m->code.end - m->code.at)) {
		m->bad = true;
		bytes = 0;
	}
	struct plumb_eh_cursor it = { m->code.at, m->code.at + bytes, false };
	m->code.at += bytes;
	return it;
}

/* The state of the stack of states is part of no rule: what is wrong there ends the decoding. */
static void
remember_state(struct machine *m)
{
	if (m->depth == REMEMBERED)
		m->bad = true;
	else
		m->remembered[m->depth++] = m->now;
}

static void
restore_state(struct machine *m)
{
	if (m->depth)
		m->now = m->remembered[--m->depth];
	else
		m->bad = true;
}

static void
advance_location(struct machine *m, uint64_t units)
{
	m->location += units * m->fde->cie.code_align;
}

/* DW_CFA_* that define the CFA. False: another one. */
static bool
step_cfa(struct machine *m, uint8_t op)
{
	uint64_t reg;
	switch (op) {
	case 0x0c: /* def_cfa */
		reg = plumb_eh_uleb(&m->code);
		define_cfa(m, reg, (int64_t)plumb_eh_uleb(&m->code));
		return true;
	case 0x12: /* def_cfa_sf */
		reg = plumb_eh_uleb(&m->code);
		define_cfa(m, reg, scale_offset(m, plumb_eh_sleb(&m->code)));
		return true;
	case 0x0d: /* def_cfa_register */
		define_cfa(m, plumb_eh_uleb(&m->code), m->now.cfa);
		return true;
	case 0x0e: /* def_cfa_offset */
		m->now.cfa = (int64_t)plumb_eh_uleb(&m->code);
		return true;
	case 0x13: /* def_cfa_offset_sf */
		m->now.cfa = scale_offset(m, plumb_eh_sleb(&m->code));
		return true;
	case 0x0f: /* def_cfa_expression */
		m->now.by_expression = true;
		m->now.expression = take_block(m);
		return true;
	default:
		return false;
	}
}

/* DW_CFA_* that say where a register is. False: another one. */
static bool
step_register(struct machine *m, uint8_t op)
{
	uint64_t reg;
	switch (op) {
	case 0x05: /* offset_extended */
		reg = plumb_eh_uleb(&m->code);
		saved_at(m, reg, (int64_t)plumb_eh_uleb(&m->code));
		return true;
	case 0x11: /* offset_extended_sf */
		reg = plumb_eh_uleb(&m->code);
		saved_at(m, reg, plumb_eh_sleb(&m->code));
		return true;
	case 0x2f: /* GNU_negative_offset_extended */
		reg = plumb_eh_uleb(&m->code);
		saved_at(m, reg, (int64_t)(0 - plumb_eh_uleb(&m->code)));
		return true;
	case 0x06: /* restore_extended */
		restore_rule(m, plumb_eh_uleb(&m->code));
		return true;
	case 0x07: /* undefined */
		set_rule(m, plumb_eh_uleb(&m->code), (struct rule){ .how = UNDEFINED });
		return true;
	case 0x08: /* same_value */
		set_rule(m, plumb_eh_uleb(&m->code), (struct rule){ .how = SAME });
		return true;
	case 0x09: /* register */
		reg = plumb_eh_uleb(&m->code);
		set_rule(m, reg,
		         (struct rule){ .how = IN_REGISTER,
		                        .offset = (int64_t)plumb_eh_uleb(&m->code) });
		return true;
	case 0x14: /* val_offset */
		reg = plumb_eh_uleb(&m->code);
		plumb_eh_uleb(&m->code);
		set_rule(m, reg, (struct rule){ .how = OTHERWISE });
		return true;
	case 0x15: /* val_offset_sf */
		reg = plumb_eh_uleb(&m->code);
		plumb_eh_sleb(&m->code);
		set_rule(m, reg, (struct rule){ .how = OTHERWISE });
		return true;
	case 0x10: /* expression */
		reg = plumb_eh_uleb(&m->code);
		set_rule(m, reg, (struct rule){ .how = EXPRESSION, .expression = take_block(m) });
		return true;
	case 0x16: /* val_expression */
		reg = plumb_eh_uleb(&m->code);
		take_block(m);
		set_rule(m, reg, (struct rule){ .how = OTHERWISE });
		return true;
	default:
		return false;
	}
}

static void
step_once(struct machine *m)
{
	uint8_t op = (uint8_t)plumb_eh_fixed(&m->code, 1), low = op & 0x3f;
	switch (op & 0xc0) {
	case 0x40:
		advance_location(m, low);
		return;
	case 0x80:
		saved_at(m, low, (int64_t)plumb_eh_uleb(&m->code));
		return;
	case 0xc0:
		restore_rule(m, low);
		return;
	default:
		break;
	}
	switch (op) {
	case 0x00: /* nop */
		return;
	case 0x01: /* set_loc */
		m->location = encoded_pointer(&m->code, m->fde->cie.encoding, NULL);
		return;
	case 0x02:
		advance_location(m, plumb_eh_fixed(&m->code, 1));
		return;
	case 0x03:
		advance_location(m, plumb_eh_fixed(&m->code, 2));
		return;
	case 0x04:
		advance_location(m, plumb_eh_fixed(&m->code, 4));
		return;
	case 0x0a:
		remember_state(m);
		return;
	case 0x0b:
		restore_state(m);
		return;
	case 0x2c: /* AArch64: the return address is signed, or no more; walk.c strips it always */
	case 0x2d:
		return;
	case 0x2e: /* GNU_args_size */
		plumb_eh_uleb(&m->code);
		return;
	default:
		if (!step_cfa(m, op) && !step_register(m, op))
			m->bad = true;
	}
}

static void
run_program(struct machine *m, struct plumb_eh_cursor program)
{
	m->code = program;
	/* What stands behind an advance beyond PC is for later instructions. */
	while (!m->bad && !m->code.bad && m->code.at < m->code.end && m->location <= m->pc)
		step_once(m);
	m->bad |= m->code.bad;
}

/* ---- rows ---- */

static bool
fits_int(int64_t number)
{
	return number >= INT32_MIN && number <= INT32_MAX;
}

static bool
evaluate_expression(const struct plumb_eh_cursor *expression, uintptr_t pc,
                    struct plumb_eh_value *value)
{
	return plumb_eh_evaluate(expression->at, (size_t)(expression->end - expression->at), pc,
	                         value) &&
	       fits_int(value->at) && fits_int(value->add);
}

/* The trampoline that a signal handler returns to: everything is in memory at fixed places. */
static bool
signal_row(const struct state *state, uintptr_t pc, struct plumb_eh_row *row)
{
	struct plumb_eh_value cfa, fp, ra;
	if (!state->by_expression || state->fp.how != EXPRESSION || state->ra.how != EXPRESSION ||
	    !evaluate_expression(&state->expression, pc, &cfa) ||
	    !evaluate_expression(&state->fp.expression, pc, &fp) ||
	    !evaluate_expression(&state->ra.expression, pc, &ra))
		return false;
	if (cfa.kind != PLUMB_EH_MEMORY || cfa.add || fp.kind != PLUMB_EH_REGISTER ||
	    ra.kind != PLUMB_EH_REGISTER || cfa.reg != PLUMB_EH_SP || fp.reg != PLUMB_EH_SP ||
	    ra.reg != PLUMB_EH_SP)
		return false;
	row->kind = PLUMB_EH_SIGNAL;
	row->cfa = (int32_t)cfa.at;
	row->fp = (int32_t)fp.add;
	row->ra = (int32_t)ra.add;
	return true;
}

static bool
cfa_row(const struct state *state, uintptr_t pc, struct plumb_eh_row *row)
{
	struct plumb_eh_value value = { .kind = PLUMB_EH_REGISTER,
		                        .reg = (uint32_t)state->base,
		                        .add = state->cfa };
	if (state->by_expression ? !evaluate_expression(&state->expression, pc, &value)
	                         : state->base > 31 || !fits_int(state->cfa))
		return false;
	if (value.kind == PLUMB_EH_NUMBER)
		return false;
	row->kind = PLUMB_EH_FRAME;
	row->base = (uint8_t)value.reg;
	row->deref = value.kind == PLUMB_EH_MEMORY;
	row->cfa = (int32_t)value.add;
	row->at = (int32_t)value.at;
	return true;
}

static bool
ra_row(const struct rule *ra, struct plumb_eh_row *row)
{
	if (!fits_int(ra->offset))
		return false;
	row->ra = (int32_t)ra->offset;
	row->link = PLUMB_EH_LINK && ra->how == SAME;
	row->in_register = ra->how == IN_REGISTER;
	return row->link || row->in_register || ra->how == AT_CFA;
}

static void
fp_row(const struct rule *fp, uintptr_t pc, struct plumb_eh_row *row)
{
	struct plumb_eh_value value;
	row->save = PLUMB_EH_FP_LOST;
	if (fp->how == SAME || fp->how == UNDEFINED) {
		row->save = PLUMB_EH_FP_SAME;
	} else if (fp->how == AT_CFA && fits_int(fp->offset)) {
		row->save = PLUMB_EH_FP_AT_CFA;
		row->fp = (int32_t)fp->offset;
	} else if (fp->how == EXPRESSION && evaluate_expression(&fp->expression, pc, &value) &&
	           value.kind == PLUMB_EH_REGISTER && value.reg == PLUMB_EH_FP) {
		row->save = PLUMB_EH_FP_AT_FP;
		row->fp = (int32_t)value.add;
	}
}

/* Runs the programs for the instruction at PC. */
static bool
run_to(const struct plumb_eh_image *image, uintptr_t pc, struct fde *fde, struct machine *m)
{
	if (!find_fde(image, pc, fde))
		return false;
	m->fde = fde;
	m->location = fde->start;
	m->pc = pc;
	m->now.base = UINT64_MAX;
	run_program(m, fde->cie.program);
	m->initial = m->now;
	if (!m->bad)
		run_program(m, fde->program);
	return !m->bad;
}

bool
plumb_eh_decode(const struct plumb_eh_image *image, uintptr_t pc, struct plumb_eh_row *row)
{
	struct machine m = { .other = PLUMB_EH_FP };
	struct fde fde;
	*row = (struct plumb_eh_row){ .kind = PLUMB_EH_NONE };
	if (!run_to(image, pc, &fde, &m))
		return false;
	if (fde.cie.signal && signal_row(&m.now, pc, row))
		return true;
	if (m.now.ra.how == UNDEFINED) {
		row->kind = PLUMB_EH_END;
		return true;
	}
	struct plumb_eh_row found = *row;
	if (!cfa_row(&m.now, pc, &found) || !ra_row(&m.now.ra, &found))
		return false;
	fp_row(&m.now.fp, pc, &found);
	*row = found;
	return true;
}

bool
plumb_eh_saved(const struct plumb_eh_image *image, uintptr_t pc, unsigned reg, bool *saved,
               int32_t *offset)
{
	struct machine m = { .other = reg };
	struct fde fde;
	if (!run_to(image, pc, &fde, &m) || !fits_int(m.now.other.offset))
		return false;
	*saved = m.now.other.how == AT_CFA;
	*offset = (int32_t)m.now.other.offset;
	return *saved || m.now.other.how == SAME;
}

/* ---- words ---- */

/* NUMBER / 8 in BITS bits at SHIFT. */
static bool
put_units(uint64_t *word, int32_t number, unsigned bits, unsigned shift)
{
	int32_t units = number / 8;
	if (number % 8 || units < -(1 << (bits - 1)) || units >= 1 << (bits - 1))
		return false;
	*word |= ((uint64_t)(int64_t)units & ((UINT64_C(1) << bits) - 1)) << shift;
	return true;
}

uint64_t
plumb_eh_pack(const struct plumb_eh_row *row)
{
	uint64_t word = (uint64_t)row->kind | (uint64_t)row->base << 2 | (uint64_t)row->save << 7 |
	                (uint64_t)row->deref << 9 | (uint64_t)row->link << 10 |
	                (uint64_t)row->internal << 11;
	if (row->kind == PLUMB_EH_NONE || row->in_register || !put_units(&word, row->cfa, 16, 12) ||
	    !put_units(&word, row->fp, 12, 28) || !put_units(&word, row->ra, 12, 40) ||
	    !put_units(&word, row->at, 12, 52))
		return 0;
	return word;
}
