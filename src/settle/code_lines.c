/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF. The ranges of all compilation units are read at the first question. The functions of a
 * unit are read at the first question about it, and the inside of a function at each question. So a
 * library of some gigabytes costs only what is asked about it.
 */
#include "settle/code_private.h"

#include <dwarf.h>

#include "base/search.h"

#define TREE_MAX 64 /* namespaces and types inside each other, blocks inside a function */

/* ---- ranges ---- */

static bool
add_ranges(struct plumb_code_ranges *ranges, Dwarf_Die *die)
{
	Dwarf_Addr base, low, high;
	bool any = false;

	for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &low, &high)) > 0; any = true) {
		struct plumb_code_range *added = low < high ? plumb_vec_add(ranges) : NULL;

		if (added)
			*added = (struct plumb_code_range){ low, high, dwarf_dieoffset(die) };
	}
	return any;
}

static int
by_low(const void *x, const void *y)
{
	const struct plumb_code_range *a = x, *b = y;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	return a->high > b->high ? -1 : a->high < b->high;
}

static void
sort_ranges(struct plumb_code_ranges *ranges)
{
	if (ranges->count)
		qsort(ranges->items, ranges->count, sizeof *ranges->items, by_low);
}

/* The innermost range that holds ADDRESS. Few overlap, so only some before it are looked at. */
static const struct plumb_code_range *
find_range(const struct plumb_code_ranges *ranges, uint64_t address)
{
	uint32_t low = plumb_search(i, ranges->count, ranges->items[i].low <= address);
	for (uint32_t i = low; i > 0 && low - i < TREE_MAX; i--)
		if (address < ranges->items[i - 1].high)
			return &ranges->items[i - 1];
	return NULL;
}

/* ---- units ---- */

static void
index_units(struct plumb_code *code)
{
	Dwarf_Off at = 0, next;
	size_t head;

	while (!dwarf_nextcu(code->dwarf, at, &next, &head, NULL, NULL, NULL)) {
		Dwarf_Die die;
		if (dwarf_offdie(code->dwarf, at + head, &die))
			add_ranges(&code->units, &die);
		if (next <= at)
			break;
		at = next;
	}
	sort_ranges(&code->units);
	/* Looked at, and empty. */
	if (!code->units.count) {
		dwarf_end(code->dwarf);
		code->dwarf = NULL;
	}
}

/* May a function be defined inside a DIE of this kind? */
static bool
holds_functions(int tag, bool deep)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return true;
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_inlined_subroutine:
		return deep;
	default:
		return false;
	}
}

static void
take_functions(struct plumb_code_unit *unit, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;

	if (depth > TREE_MAX || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);
		if (tag == DW_TAG_subprogram)
			add_ranges(&unit->functions, &die);
		if (holds_functions(tag, unit->deep))
			take_functions(unit, &die, depth + 1);
	} while (!dwarf_siblingof(&die, &die));
}

/* The functions of the unit. DEEP: also those inside functions. NULL: no memory. */
static const struct plumb_code_unit *
functions_of(struct plumb_code *code, Dwarf_Die *unit_die, bool deep)
{
	struct plumb_code_unit *unit = NULL;

	for (uint32_t i = 0; i < code->unit_functions.count && !unit; i++)
		if (code->unit_functions.items[i].die == dwarf_dieoffset(unit_die))
			unit = &code->unit_functions.items[i];
	if (unit && unit->deep >= deep)
		return unit;
	if (!unit && !(unit = plumb_vec_add(&code->unit_functions)))
		return NULL;
	unit->die = dwarf_dieoffset(unit_die);
	unit->deep = deep;
	unit->functions.count = 0;
	take_functions(unit, unit_die, 0);
	sort_ranges(&unit->functions);
	return unit;
}

/* The function at ADDRESS. Most functions are not inside another one. Functions inside others are
 * only searched if no such function is found. */
static bool
find_function(struct plumb_code *code, Dwarf_Die *unit_die, uint64_t address, Dwarf_Die *function)
{
	for (int deep = 0; deep < 2; deep++) {
		const struct plumb_code_unit *unit = functions_of(code, unit_die, deep);
		const struct plumb_code_range *range =
			unit ? find_range(&unit->functions, address) : NULL;
		if (range)
			return dwarf_offdie(code->dwarf, range->die, function) != NULL;
	}
	return false;
}

/* ---- frames ---- */

/* The mangled name. Functions that no other unit can call have none. */
static const char *
linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name =
		dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));

	if (!name)
		name = dwarf_formstring(
			dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
	return name;
}

/* SYMBOL: its name in the symbol table, or NULL. This may say more than the plain name. */
static void
add_frame(struct plumb_code_place *place, Dwarf_Die *die, const char *symbol)
{
	const char *name = linkage_name(die);

	if (!name)
		name = symbol && !strncmp(symbol, "_Z", 2) ? symbol : dwarf_diename(die);
	place->frames[place->count++] = (struct plumb_code_frame){ .name = name };
}

/* FILE of the unit, which may be relative to the folder that it was compiled in. */
static void
set_file(struct plumb_code_frame *frame, Dwarf_Die *unit_die, const char *file)
{
	Dwarf_Attribute attribute;
	const char *folder = NULL;

	if (file && *file && *file != '/')
		folder = dwarf_formstring(dwarf_attr(unit_die, DW_AT_comp_dir, &attribute));
	frame->file = file;
	frame->folder = folder && *folder == '/' ? folder : NULL;
}

/* Where the inlined function DIE was called: the place of the frame above it. */
static void
set_call(struct plumb_code_frame *frame, Dwarf_Die *unit_die, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word file = 0, line = 0;
	size_t count = 0;

	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &line) &&
	    line <= UINT32_MAX)
		frame->line = (uint32_t)line;
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &file) &&
	    !dwarf_getsrcfiles(unit_die, &files, &count) && file < count)
		set_file(frame, unit_die, dwarf_filesrc(files, file, NULL, NULL));
}

static void
set_line(struct plumb_code_frame *frame, Dwarf_Die *unit_die, uint64_t address)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit_die, address);
	int number = 0;

	if (!line)
		return;
	set_file(frame, unit_die, dwarf_linesrc(line, NULL, NULL));
	if (!dwarf_lineno(line, &number) && number > 0)
		frame->line = (uint32_t)number;
}

/* Adds the functions that are inlined at ADDRESS, the outermost first. */
static void
take_inlined(struct plumb_code_place *place, Dwarf_Die *unit_die, Dwarf_Die *function,
             uint64_t address)
{
	Dwarf_Die at = *function, die;

	for (int depth = 0; depth < 2 * TREE_MAX && !dwarf_child(&at, &die); depth++) {
		int tag = 0;
		bool found = false;
		do {
			tag = dwarf_tag(&die);
			found = (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
			        dwarf_haspc(&die, address) > 0;
		} while (!found && !dwarf_siblingof(&die, &die));
		if (!found)
			return;
		if (tag == DW_TAG_inlined_subroutine) {
			if (place->count == PLUMB_CODE_FRAMES_MAX)
				return;
			set_call(&place->frames[place->count - 1], unit_die, &die);
			add_frame(place, &die, NULL);
		}
		at = die;
	}
}

/* Where the piece of the function that holds ADDRESS begins. */
static void
set_start(struct plumb_code_place *place, Dwarf_Die *function, uint64_t address)
{
	Dwarf_Addr base, low, high;

	for (ptrdiff_t at = 0; (at = dwarf_ranges(function, at, &base, &low, &high)) > 0;)
		if (address >= low && address < high) {
			place->start = low;
			place->bounded = true;
		}
}

void
plumb_code_lines(struct plumb_code *code, uint64_t address, struct plumb_code_place *place)
{
	const struct plumb_code_range *unit;
	Dwarf_Die unit_die, function;

	if (code->dwarf && !code->units.count)
		index_units(code);
	unit = code->dwarf ? find_range(&code->units, address) : NULL;
	if (!unit || !dwarf_offdie(code->dwarf, unit->die, &unit_die))
		return;
	if (find_function(code, &unit_die, address, &function)) {
		add_frame(place, &function, place->symbol);
		take_inlined(place, &unit_die, &function, address);
		if (!place->symbol)
			set_start(place, &function, address);
	} else {
		/* A line without a function: assembly, or reduced debug information. */
		place->frames[place->count++] = (struct plumb_code_frame){ .name = NULL };
	}
	set_line(&place->frames[place->count - 1], &unit_die, address);
}

void
plumb_code_lines_free(struct plumb_code *code)
{
	for (uint32_t i = 0; i < code->unit_functions.count; i++)
		plumb_vec_free(&code->unit_functions.items[i].functions);
	plumb_vec_free(&code->unit_functions);
	plumb_vec_free(&code->units);
	dwarf_end(code->dwarf);
	code->dwarf = NULL;
}
