/* SPDX-License-Identifier: Apache-2.0 */
#include "import/text_table.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

/* ---- pieces of texts ---- */

struct plumb_slice
plumb_text_trim(struct plumb_slice text)
{
	while (text.bytes && isspace((unsigned char)*text.at)) {
		text.at++;
		text.bytes--;
	}
	while (text.bytes && isspace((unsigned char)text.at[text.bytes - 1]))
		text.bytes--;
	return text;
}

bool
plumb_text_has_all(struct plumb_slice text, const char *const *words)
{
	const char *at = text.at, *end = text.at + text.bytes;
	for (; at && *words; words++)
		at = memmem(at, (size_t)(end - at), *words, strlen(*words));
	return at != NULL;
}

bool
plumb_text_cut_number(struct plumb_slice *text, char open, char close, int64_t *number)
{
	const char *from = memrchr(text->at, open, text->bytes);
	const char *end = text->at + text->bytes;
	if (!from || end[-1] != close ||
	    !plumb_slice_decimal(plumb_text_between(from + 1, end - 1), 0, number))
		return false;
	text->bytes = (size_t)(from - text->at);
	return true;
}

bool
plumb_text_three(struct plumb_slice text, char mark, int64_t three[3])
{
	const char *at = text.at, *end = text.at + text.bytes;
	bool good = true;
	for (unsigned i = 0; i < 3; i++) {
		const char *found = at < end ? memchr(at, mark, (size_t)(end - at)) : NULL;
		const char *behind = found ? found : end;
		three[i] = PLUMB_UNKNOWN;
		good &= (i == 2) == !found;
		good &= plumb_slice_decimal(plumb_text_trim(plumb_text_between(at, behind)), 0,
		                            &three[i]);
		at = found ? found + 1 : end;
	}
	return good;
}

int
plumb_text_probe(const char *head, int (*score)(struct plumb_slice line))
{
	int best = 0;
	while (head) {
		const char *end = strchr(head, '\n');
		int sure = score(
			(struct plumb_slice){ head, end ? (size_t)(end - head) : strlen(head) });
		best = sure > best ? sure : best;
		head = end ? end + 1 : NULL;
	}
	return best;
}

/* ---- numbers ---- */

/*
 * A number with a comma: "1,234,567", "1,234.5", "1.234,5", "12,5". The last mark is the decimal
 * one if there is no other like it. "1,234" is a thousand if the number must be WHOLE, else nobody
 * knows what it is.
 */
static bool
read_separated(struct plumb_slice text, int scale, bool whole, int64_t *number)
{
	char plain[64];
	size_t bytes = 0;
	const char *at = text.at, *end = at + text.bytes, *point = end - 1;
	if (text.bytes >= sizeof plain)
		return false;
	if (*at == '-')
		plain[bytes++] = *at++;
	while (*point != ',' && *point != '.')
		point--;
	char group = *point == ',' ? '.' : ',';
	bool only = point > at && !memchr(at, group, (size_t)(point - at));
	if (point > at && (memchr(at, *point, (size_t)(point - at)) || (only && whole))) {
		group = *point;
		point = end;
	} else if (only && end - point == 4 && *at != '0') {
		return false;
	}
	bool grouped = point > at && memchr(at, group, (size_t)(point - at));
	for (const char *first = at; at < end; at++) {
		if (!grouped || at >= point || (point - at) % 4)
			plain[bytes++] = at == point ? '.' : *at;
		else if (*at != group || at == first)
			return false;
	}
	return plumb_slice_decimal((struct plumb_slice){ plain, bytes }, scale, number);
}

static bool
read_number(struct plumb_slice text, int scale, bool whole, int64_t *number)
{
	return text.bytes && memchr(text.at, ',', text.bytes)
	               ? read_separated(text, scale, whole, number)
	               : plumb_slice_decimal(text, scale, number);
}

/* Digits behind a second's point, of "s", "ms", "usec"; -1: no unit of time. */
static int
time_scale(const char *unit)
{
	static const char prefixes[] = "num";
	const char *prefix = *unit ? strchr(prefixes, *unit) : NULL;
	unit += prefix != NULL;
	if (strcmp(unit, "s") != 0 && strcmp(unit, "sec") != 0)
		return -1;
	return prefix ? 3 * (int)(prefix - prefixes) : 9;
}

/* Bytes of a unit of size; 0: none. */
static int64_t
size_scale(const char *unit, bool binary)
{
	static const char prefixes[] = "KMGT";
	const char *prefix = *unit ? strchr(prefixes, toupper((unsigned char)*unit)) : NULL;
	int64_t scale = 1, step;
	if (!strcmp(unit, "B") || !strcmp(unit, "byte") || !strcmp(unit, "bytes"))
		return 1;
	if (!prefix || (strcmp(unit + 1, "B") != 0 && strcmp(unit + 1, "iB") != 0))
		return 0;
	step = binary || unit[1] == 'i' ? 1024 : 1000;
	for (const char *at = prefixes; at <= prefix; at++)
		scale *= step;
	return scale;
}

static void
set_unit(char unit[8], struct plumb_slice text)
{
	snprintf(unit, 8, "%.*s", text.bytes < 8 ? (int)text.bytes : 0, text.at);
}

/* A time in ns, or a size in bytes, both rounded. The unit is the cell's own, else UNIT, which is
 * the column's. */
static bool
read_quantity(struct plumb_slice cell, const char *unit, bool time, bool binary, int64_t *quantity)
{
	char own_unit[8];
	size_t digits = 0;
	int64_t scale, millionths;
	while (digits < cell.bytes && cell.at[digits] &&
	       strchr("0123456789.,+-eE", cell.at[digits]))
		digits++;
	struct plumb_slice number = { cell.at, digits };
	struct plumb_slice own =
		plumb_text_trim((struct plumb_slice){ cell.at + digits, cell.bytes - digits });
	if (own.bytes) {
		set_unit(own_unit, own);
		unit = own_unit;
	}
	if (time)
		return time_scale(unit) >= 0 &&
		       read_number(number, time_scale(unit), false, quantity);
	scale = size_scale(unit, binary);
	if (!scale || !read_number(number, 6, false, &millionths) || millionths < 0)
		return false;
	__int128 exact = ((__int128)millionths * scale + 500000) / 1000000;
	if (exact > INT64_MAX)
		return false;
	*quantity = (int64_t)exact;
	return true;
}

/* ---- cells ---- */

static bool
is_text(enum plumb_text_cell kind)
{
	return kind == PLUMB_AS_TEXT || kind == PLUMB_AS_WORD;
}

/* CELL as column K's member at VALUE, which stays as it is if CELL is of another kind. */
static bool
read_cell(const struct plumb_text_table *table, uint32_t k, struct plumb_slice cell, void *value)
{
	enum plumb_text_cell kind = table->columns[k].kind;
	if (is_text(kind)) {
		*(struct plumb_slice *)value = cell;
		return true;
	}
	if (kind == PLUMB_AS_TIME || kind == PLUMB_AS_BYTES)
		return read_quantity(cell, table->heading.unit[k], kind == PLUMB_AS_TIME,
		                     table->binary, value);
	if (kind == PLUMB_AS_THREE && *cell.at == '(')
		return plumb_text_three(plumb_text_between(cell.at + 1, cell.at + cell.bytes - 1),
		                        ' ', value);
	while (kind == PLUMB_AS_LABEL && cell.bytes && !isdigit((unsigned char)*cell.at)) {
		cell.at++;
		cell.bytes--;
	}
	return read_number(cell, 0, true, value);
}

static void
clear_row(const struct plumb_text_table *table, void *row)
{
	for (uint32_t k = 0; k < table->count; k++) {
		void *value = (char *)row + table->columns[k].offset;
		if (is_text(table->columns[k].kind))
			*(struct plumb_slice *)value = (struct plumb_slice){ "", 0 };
		else
			*(int64_t *)value = PLUMB_UNKNOWN;
	}
}

/* NULL, or what is wrong. */
static const char *
read_cells(const struct plumb_text_table *table, void *row)
{
	clear_row(table, row);
	for (uint32_t k = 0; k < table->count; k++) {
		const struct plumb_text_column *column = &table->columns[k];
		uint32_t place = table->heading.place[k];
		struct plumb_slice cell = place == PLUMB_NONE ? (struct plumb_slice){ "", 0 }
		                                              : table->csv.cells[place];
		if (column->kind != PLUMB_AS_TEXT) {
			cell = plumb_text_trim(cell);
			cell.bytes = plumb_slice_is(cell, "-") ? 0 : cell.bytes;
		}
		if (!cell.bytes && column->presence == PLUMB_IN_EACH_ROW)
			return column->wrong;
		if (cell.bytes && !read_cell(table, k, cell, (char *)row + column->offset) &&
		    column->wrong)
			return column->wrong;
	}
	return NULL;
}

/* ---- how lines are split ---- */

/* A heading of plain text: names with two blanks or more between them. */
static bool
split_fixed_heading(struct plumb_text_table *table, struct plumb_text_heading *heading,
                    struct plumb_slice line)
{
	struct plumb_slice rest = line, *cells = table->csv.cells;
	uint32_t count = 0;
	while ((rest = plumb_text_trim(rest)).bytes && count < PLUMB_TEXT_COLUMNS_MAX) {
		const char *gap = memmem(rest.at, rest.bytes, "  ", 2);
		const char *end = rest.at + rest.bytes;
		cells[count] = plumb_text_trim(plumb_text_between(rest.at, gap ? gap : end));
		heading->edge[count] = (size_t)(cells[count].at + cells[count].bytes - line.at);
		rest = plumb_text_between(gap ? gap : end, end);
		count++;
	}
	if (!count || rest.bytes)
		return false;
	heading->edge[count - 1] = (size_t)(cells[count - 1].at - line.at);
	table->csv.count = count;
	return true;
}

static const char *
split_fixed(struct plumb_text_table *table, struct plumb_slice line)
{
	const struct plumb_text_heading *heading = &table->heading;
	struct plumb_slice *cells = table->csv.cells;
	uint32_t last = heading->cells - 1;
	size_t from = 0;
	if (heading->edge[last] >= line.bytes)
		return "the row ends before the table's last column";
	for (uint32_t i = 0; i < last; i++) {
		size_t to = heading->edge[i];
		cells[i] = (struct plumb_slice){ line.at + from, to - from };
		while (from < to && line.at[from] == ' ')
			from++;
		if (line.at[to] != ' ' || from == to)
			return "the row does not fit the columns of the table";
		from = to;
	}
	cells[last] = (struct plumb_slice){ line.at + from, line.bytes - from };
	table->csv.count = heading->cells;
	return NULL;
}

/* COUNT cells from the right end; what is left is the first one. */
static const char *
split_from_right(struct plumb_text_table *table, uint32_t count, struct plumb_slice line)
{
	struct plumb_slice *cells = table->csv.cells;
	const char *end = line.at + line.bytes;
	for (uint32_t i = count - 1; i > 0; i--) {
		const char *comma = memrchr(line.at, ',', (size_t)(end - line.at));
		if (!comma)
			return "the row has fewer cells than the heading";
		cells[i] = plumb_text_trim(plumb_text_between(comma + 1, end));
		end = comma;
	}
	cells[0] = plumb_text_trim(plumb_text_between(line.at, end));
	table->csv.count = count;
	return NULL;
}

/* ---- headings ---- */

/* "Bytes (MB)", "Start(nsec)", "Bytes:mem_B": the name, and the unit behind it. */
static struct plumb_slice
split_name(struct plumb_slice text, struct plumb_slice *unit)
{
	const char *end = text.at + text.bytes;
	const char *open = memchr(text.at, '(', text.bytes);
	const char *colon = memchr(text.at, ':', text.bytes);
	*unit = (struct plumb_slice){ end, 0 };
	if (open && end[-1] == ')') {
		*unit = plumb_text_between(open + 1, end - 1);
	} else if (colon) {
		const char *bar = memrchr(colon, '_', (size_t)(end - colon));
		open = colon;
		if (bar)
			*unit = plumb_text_between(bar + 1, end);
	} else {
		open = end;
	}
	return plumb_text_trim(plumb_text_between(text.at, open));
}

/* Whether NAME is one of NAMES: "Size|Bytes". */
static bool
is_named(struct plumb_slice name, const char *names)
{
	while (names) {
		size_t bytes = strcspn(names, "|");
		if (name.bytes == bytes && !strncasecmp(name.at, names, bytes))
			return true;
		names = names[bytes] ? names + bytes + 1 : NULL;
	}
	return false;
}

static void
find_columns(const struct plumb_text_table *table, struct plumb_text_heading *heading)
{
	memset(heading->place, 0xff, sizeof heading->place);
	heading->cells = table->csv.count;
	for (uint32_t i = 0; i < heading->cells; i++) {
		struct plumb_slice whole = plumb_text_trim(table->csv.cells[i]);
		struct plumb_slice unit, name = split_name(whole, &unit);
		for (uint32_t k = 0; k < table->count; k++)
			if (is_named(whole, table->columns[k].names) ||
			    is_named(name, table->columns[k].names)) {
				heading->place[k] = i;
				set_unit(heading->unit[k], unit);
			}
	}
}

int
plumb_text_table_heading(struct plumb_text_table *table, enum plumb_text_layout layout,
                         struct plumb_slice line, struct plumb_error *error)
{
	struct plumb_text_heading heading = { .layout = layout };
	int code = layout == PLUMB_LAYOUT_CSV ? plumb_csv_split(&table->csv, error) : 0;
	if (code < 0)
		return code;
	if (layout == PLUMB_LAYOUT_FIXED && !split_fixed_heading(table, &heading, line))
		return 0;
	if (layout == PLUMB_LAYOUT_FROM_RIGHT) {
		uint32_t count = 1;
		for (size_t i = 0; i < line.bytes && count <= PLUMB_CSV_CELLS_MAX; i++)
			count += line.at[i] == ',';
		if (count > PLUMB_CSV_CELLS_MAX)
			return 0;
		split_from_right(table, count, line);
	}
	find_columns(table, &heading);
	for (uint32_t k = 0; k < table->count; k++)
		if (table->columns[k].presence != PLUMB_MAY_MISS && heading.place[k] == PLUMB_NONE)
			return 0;
	table->heading = heading;
	return 1;
}

int
plumb_text_table_units(struct plumb_text_table *table, struct plumb_error *error)
{
	struct plumb_text_heading *heading = &table->heading;
	struct plumb_slice line;
	int code = plumb_csv_line(&table->csv, &line, error);
	if (code <= 0)
		return code;
	code = plumb_csv_split(&table->csv, error);
	if (code < 0)
		return code;
	bool good = table->csv.count == heading->cells;
	for (uint32_t k = 0; good && k < table->count; k++) {
		if (heading->place[k] == PLUMB_NONE)
			continue;
		set_unit(heading->unit[k], plumb_text_trim(table->csv.cells[heading->place[k]]));
		good = table->columns[k].kind != PLUMB_AS_TIME || time_scale(heading->unit[k]) >= 0;
	}
	code = plumb_text_table_check(
		table, good ? NULL : "the row of units is missing below the heading", error);
	return code ? code : 1;
}

bool
plumb_text_table_has(const struct plumb_text_table *table, size_t offset)
{
	for (uint32_t k = 0; k < table->count; k++)
		if (table->columns[k].offset == offset)
			return table->heading.place[k] != PLUMB_NONE;
	return false;
}

/* ---- rows and files ---- */

int
plumb_text_table_check(const struct plumb_text_table *table, const char *why,
                       struct plumb_error *error)
{
	return why ? plumb_csv_fail(&table->csv, error, "%s", why) : 0;
}

int
plumb_text_table_row(struct plumb_text_table *table, struct plumb_slice line, void *row,
                     struct plumb_error *error)
{
	enum plumb_text_layout layout = table->heading.layout;
	const char *why = NULL;
	int code = layout == PLUMB_LAYOUT_CSV ? plumb_csv_split(&table->csv, error) : 0;
	if (code < 0)
		return code;
	if (layout == PLUMB_LAYOUT_FIXED)
		why = split_fixed(table, line);
	else if (layout == PLUMB_LAYOUT_FROM_RIGHT)
		why = split_from_right(table, table->heading.cells, line);
	else if (table->csv.count != table->heading.cells)
		why = "the number of cells is not that of the heading";
	return plumb_text_table_check(table, why ? why : read_cells(table, row), error);
}

int
plumb_text_table_read(struct plumb_text_table *table, const struct plumb_import_file *file,
                      plumb_text_line *take, void *data, struct plumb_error *error)
{
	struct plumb_slice line;
	int code = plumb_csv_open(&table->csv, file->input, error);
	if (!code && table->head_only)
		plumb_csv_use(&table->csv, file->head, file->head_bytes);
	while (!code && (code = plumb_csv_line(&table->csv, &line, error)) > 0)
		code = take(data, line, error);
	plumb_csv_close(&table->csv);
	return code;
}
