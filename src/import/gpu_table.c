/* SPDX-License-Identifier: Apache-2.0 */
#include "import/gpu_table.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "import/copies.h"

static const struct {
	const char *name;
	enum plumb_gpu_column column;
} headings[] = {
	/* nvprof --csv */
	{ "Start", PLUMB_GPU_START },
	{ "Duration", PLUMB_GPU_DURATION },
	{ "Name", PLUMB_GPU_NAME },
	{ "Grid X", PLUMB_GPU_GRID },
	{ "Grid Y", PLUMB_GPU_GRID_Y },
	{ "Grid Z", PLUMB_GPU_GRID_Z },
	{ "Block X", PLUMB_GPU_BLOCK },
	{ "Block Y", PLUMB_GPU_BLOCK_Y },
	{ "Block Z", PLUMB_GPU_BLOCK_Z },
	{ "Registers Per Thread", PLUMB_GPU_REGISTERS },
	{ "Static SMem", PLUMB_GPU_STATIC },
	{ "Dynamic SMem", PLUMB_GPU_DYNAMIC },
	{ "Size", PLUMB_GPU_BYTES },
	{ "Unified Memory", PLUMB_GPU_UNIFIED },
	{ "SrcMemType", PLUMB_GPU_FROM },
	{ "DstMemType", PLUMB_GPU_TO },
	{ "Device", PLUMB_GPU_DEVICE },
	{ "Context", PLUMB_GPU_CONTEXT },
	{ "Stream", PLUMB_GPU_STREAM },
	{ "Correlation_ID", PLUMB_GPU_CORRELATION },
	/* its plain text */
	{ "Grid Size", PLUMB_GPU_GRID },
	{ "Block Size", PLUMB_GPU_BLOCK },
	{ "Regs*", PLUMB_GPU_REGISTERS },
	{ "SSMem*", PLUMB_GPU_STATIC },
	{ "DSMem*", PLUMB_GPU_DYNAMIC },
	/* Nsight Systems */
	{ "GrdX", PLUMB_GPU_GRID },
	{ "GrdY", PLUMB_GPU_GRID_Y },
	{ "GrdZ", PLUMB_GPU_GRID_Z },
	{ "BlkX", PLUMB_GPU_BLOCK },
	{ "BlkY", PLUMB_GPU_BLOCK_Y },
	{ "BlkZ", PLUMB_GPU_BLOCK_Z },
	{ "Reg/Trd", PLUMB_GPU_REGISTERS },
	{ "StcSMem", PLUMB_GPU_STATIC },
	{ "DymSMem", PLUMB_GPU_DYNAMIC },
	{ "Bytes", PLUMB_GPU_BYTES },
	{ "SrcMemKd", PLUMB_GPU_FROM },
	{ "DstMemKd", PLUMB_GPU_TO },
	{ "Ctx", PLUMB_GPU_CONTEXT },
	{ "Strm", PLUMB_GPU_STREAM },
	{ "CorrId", PLUMB_GPU_CORRELATION },
};

static struct plumb_slice
trim(struct plumb_slice text)
{
	while (text.bytes && isspace((unsigned char)*text.at)) {
		text.at++;
		text.bytes--;
	}
	while (text.bytes && isspace((unsigned char)text.at[text.bytes - 1]))
		text.bytes--;
	return text;
}

/* ---- units ---- */

/* Digits behind a second's point; -1: no unit of time. */
static int
time_scale(const char *unit)
{
	static const struct {
		const char *name;
		int scale;
	} units[] = {
		{ "s", 9 },  { "sec", 9 },  { "ms", 6 }, { "msec", 6 },
		{ "us", 3 }, { "usec", 3 }, { "ns", 0 }, { "nsec", 0 },
	};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(unit, units[i].name))
			return units[i].scale;
	return -1;
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

/* The number of CELL and its unit: the one behind it, else the column's. */
static bool
quantity_of(const struct plumb_gpu_table *table, enum plumb_gpu_column column,
            struct plumb_slice cell, struct plumb_slice *number, char unit[8])
{
	size_t digits = 0;
	while (digits < cell.bytes && strchr("0123456789.+-eE", cell.at[digits]) && cell.at[digits])
		digits++;
	*number = (struct plumb_slice){ cell.at, digits };
	struct plumb_slice own =
		trim((struct plumb_slice){ cell.at + digits, cell.bytes - digits });
	if (own.bytes >= 8)
		return false;
	if (own.bytes)
		snprintf(unit, 8, "%.*s", (int)own.bytes, own.at);
	else
		memcpy(unit, table->unit[column], 8);
	return true;
}

static bool
read_time(const struct plumb_gpu_table *table, enum plumb_gpu_column column,
          struct plumb_slice cell, int64_t *ns)
{
	struct plumb_slice number;
	char unit[8];
	return quantity_of(table, column, cell, &number, unit) && time_scale(unit) >= 0 &&
	       plumb_slice_decimal(number, time_scale(unit), ns);
}

/* Rounded to whole bytes. */
static bool
read_size(const struct plumb_gpu_table *table, enum plumb_gpu_column column,
          struct plumb_slice cell, int64_t *bytes)
{
	struct plumb_slice number;
	char unit[8];
	int64_t scale, millionths;
	if (!quantity_of(table, column, cell, &number, unit) ||
	    !(scale = size_scale(unit, table->binary)) ||
	    !plumb_slice_decimal(number, 6, &millionths) || millionths < 0)
		return false;
	__int128 exact = ((__int128)millionths * scale + 500000) / 1000000;
	if (exact > INT64_MAX)
		return false;
	*bytes = (int64_t)exact;
	return true;
}

/* ---- headings ---- */

/* "Bytes (MB)", "Start(nsec)", "Bytes:mem_B": the name, and the unit behind it. */
static struct plumb_slice
split_heading(struct plumb_slice heading, struct plumb_slice *unit)
{
	const char *end = heading.at + heading.bytes;
	const char *open = memchr(heading.at, '(', heading.bytes);
	const char *colon = memchr(heading.at, ':', heading.bytes);
	*unit = (struct plumb_slice){ end, 0 };
	if (open && end[-1] == ')')
		*unit = (struct plumb_slice){ open + 1, (size_t)(end - 1 - (open + 1)) };
	else if (colon) {
		const char *bar = memrchr(colon, '_', (size_t)(end - colon));
		open = colon;
		if (bar)
			*unit = (struct plumb_slice){ bar + 1, (size_t)(end - (bar + 1)) };
	} else
		open = end;
	return trim((struct plumb_slice){ heading.at, (size_t)(open - heading.at) });
}

static void
set_unit(struct plumb_gpu_table *table, uint32_t column, struct plumb_slice unit)
{
	bool fits = unit.bytes < sizeof table->unit[column];
	snprintf(table->unit[column], sizeof table->unit[column], "%.*s",
	         fits ? (int)unit.bytes : 0, unit.at);
}

bool
plumb_gpu_table_header(struct plumb_gpu_table *table, const struct plumb_slice *cells,
                       uint32_t count)
{
	memset(table->column, 0xff, sizeof table->column);
	memset(table->unit, 0, sizeof table->unit);
	table->cells = count;
	for (uint32_t i = 0; i < count; i++) {
		struct plumb_slice unit, name = split_heading(trim(cells[i]), &unit);
		for (size_t k = 0; k < sizeof headings / sizeof *headings; k++)
			if (plumb_slice_is(name, headings[k].name)) {
				table->column[headings[k].column] = i;
				set_unit(table, headings[k].column, unit);
			}
	}
	return table->column[PLUMB_GPU_START] != PLUMB_NONE &&
	       table->column[PLUMB_GPU_DURATION] != PLUMB_NONE &&
	       table->column[PLUMB_GPU_NAME] != PLUMB_NONE;
}

bool
plumb_gpu_table_units(struct plumb_gpu_table *table, const struct plumb_slice *cells,
                      uint32_t count)
{
	if (count != table->cells)
		return false;
	for (uint32_t k = 0; k < PLUMB_GPU_COLUMN_COUNT; k++)
		if (table->column[k] != PLUMB_NONE)
			set_unit(table, k, trim(cells[table->column[k]]));
	return time_scale(table->unit[PLUMB_GPU_START]) >= 0 &&
	       time_scale(table->unit[PLUMB_GPU_DURATION]) >= 0;
}

/* ---- rows ---- */

/* No bytes where there is no such column, or nothing in it. */
static struct plumb_slice
cell_of(const struct plumb_gpu_table *table, const struct plumb_slice *cells,
        enum plumb_gpu_column column)
{
	uint32_t i = table->column[column];
	struct plumb_slice cell = i == PLUMB_NONE ? (struct plumb_slice){ "", 0 } : trim(cells[i]);
	return plumb_slice_is(cell, "-") ? (struct plumb_slice){ "", 0 } : cell;
}

static int64_t
number_of(const struct plumb_gpu_table *table, const struct plumb_slice *cells,
          enum plumb_gpu_column column)
{
	int64_t number;
	return plumb_slice_decimal(cell_of(table, cells, column), 0, &number) ? number
	                                                                      : PLUMB_UNKNOWN;
}

/* "(64 1 1)", or three columns. */
static void
read_dimensions(const struct plumb_gpu_table *table, const struct plumb_slice *cells,
                enum plumb_gpu_column column, int64_t three[3])
{
	struct plumb_slice cell = cell_of(table, cells, column);
	if (!cell.bytes || *cell.at != '(') {
		for (unsigned i = 0; i < 3; i++)
			three[i] = number_of(table, cells, column + i);
		return;
	}
	const char *at = cell.at + 1, *end = cell.at + cell.bytes - 1;
	for (unsigned i = 0; i < 3 && at < end; i++) {
		const char *space = memchr(at, ' ', (size_t)(end - at));
		const char *behind = space ? space : end;
		if (!plumb_slice_decimal((struct plumb_slice){ at, (size_t)(behind - at) }, 0,
		                         &three[i]))
			three[i] = PLUMB_UNKNOWN;
		at = behind + 1;
	}
}

/* Which of the devices without a number has NAME; the last one has all that find no room. */
static uint32_t
nameless(struct plumb_gpu_table *table, struct plumb_slice name)
{
	char text[sizeof table->devices[0]];
	uint32_t i = 0;
	snprintf(text, sizeof text, "%.*s", (int)(name.bytes < sizeof text ? name.bytes : 0),
	         name.at);
	while (i < PLUMB_GPU_DEVICES_MAX - 1 && *table->devices[i] &&
	       strcmp(table->devices[i], text) != 0)
		i++;
	memcpy(table->devices[i], text, sizeof text);
	return i;
}

/* "Tesla V100 (1)". Devices without a number are told by their names. */
static uint32_t
device_of(struct plumb_gpu_table *table, struct plumb_slice cell)
{
	struct plumb_builder *builder = plumb_trace_builder(table->trace);
	struct plumb_slice name = cell;
	const char *open = memrchr(cell.at, '(', cell.bytes);
	int64_t ordinal = PLUMB_UNKNOWN, key;
	if (open && cell.at[cell.bytes - 1] == ')' &&
	    plumb_slice_decimal((struct plumb_slice){ open + 1, (size_t)(cell.at + cell.bytes - 1 -
	                                                                 (open + 1)) },
	                        0, &ordinal))
		name = trim((struct plumb_slice){ cell.at, (size_t)(open - cell.at) });
	key = ordinal;
	if (ordinal == PLUMB_UNKNOWN && name.bytes) {
		key = -2 - (int64_t)nameless(table, name);
	}
	uint32_t id = plumb_trace_device(table->trace, table->process, key, NULL);
	if (id == PLUMB_NONE || !name.bytes)
		return id;
	uint32_t text = plumb_builder_string(builder, name.at, name.bytes);
	struct plumb_device *device = plumb_builder_get_device(builder, id);
	device->ordinal = ordinal;
	device->name = text;
	return id;
}

/* NAME without the number that nvprof puts behind it: "kernel(int) [12]". */
static struct plumb_slice
cut_number(struct plumb_slice name, int64_t *number)
{
	const char *open = memrchr(name.at, '[', name.bytes);
	if (open && open > name.at + 1 && open[-1] == ' ' && name.at[name.bytes - 1] == ']' &&
	    plumb_slice_decimal((struct plumb_slice){ open + 1, (size_t)(name.at + name.bytes - 1 -
	                                                                 (open + 1)) },
	                        0, number))
		name.bytes = (size_t)(open - 1 - name.at);
	return name;
}

static uint64_t
correlation_of(const struct plumb_gpu_table *table, const struct plumb_slice *cells, int64_t number)
{
	int64_t own = number_of(table, cells, PLUMB_GPU_CORRELATION);
	if (own == PLUMB_UNKNOWN)
		own = number;
	return own > 0 ? (uint64_t)own : 0;
}

/* A driver or runtime call: "cudaLaunchKernel (kernel(int) [12])". */
static void
take_call(struct plumb_gpu_table *table, const struct plumb_slice *cells, int64_t start,
          int64_t end)
{
	struct plumb_slice name = cell_of(table, cells, PLUMB_GPU_NAME);
	const char *open = memmem(name.at, name.bytes, " (", 2);
	int64_t number = PLUMB_UNKNOWN;
	if (open && name.at[name.bytes - 1] == ')') {
		cut_number((struct plumb_slice){ open + 2,
		                                 (size_t)(name.at + name.bytes - 1 - (open + 2)) },
		           &number);
		name.bytes = (size_t)(open - name.at);
	}
	plumb_trace_host(table->trace,
	                 plumb_trace_thread(table->trace, table->process, PLUMB_UNKNOWN),
	                 plumb_trace_frame(table->trace, PLUMB_FRAME_GPU_API, name), start, end,
	                 correlation_of(table, cells, number));
}

/* With the kinds of memory, where the table has them: "Memcpy HtoD (Pinned -> Device)". */
static uint32_t
copy_frame(struct plumb_gpu_table *table, const struct plumb_slice *cells, struct plumb_slice name)
{
	struct plumb_slice from = cell_of(table, cells, PLUMB_GPU_FROM);
	struct plumb_slice to = cell_of(table, cells, PLUMB_GPU_TO);
	char text[200];
	if (name.bytes < 100 && from.bytes && from.bytes < 32 && to.bytes < 32) {
		int bytes = snprintf(text, sizeof text, "%.*s (%.*s%s%.*s)", (int)name.bytes,
		                     name.at, (int)from.bytes, from.at, to.bytes ? " -> " : "",
		                     (int)to.bytes, to.at);
		name = (struct plumb_slice){ text, (size_t)bytes };
	}
	return plumb_import_copy(table->trace, name);
}

static bool
has_word(struct plumb_slice text, const char *word)
{
	size_t bytes = strlen(word);
	for (size_t i = 0; i + bytes <= text.bytes; i++)
		if (!strncasecmp(text.at + i, word, bytes))
			return true;
	return false;
}

/* A copy or set, by its bytes. False: it is something else that happened to memory. */
static bool
read_copy(struct plumb_gpu_table *table, const struct plumb_slice *cells, struct plumb_slice name,
          struct plumb_trace_work *work)
{
	if (!has_word(name, "memcpy") && !has_word(name, "memset"))
		return false;
	if (!read_size(table, PLUMB_GPU_BYTES, cell_of(table, cells, PLUMB_GPU_BYTES),
	               &work->bytes) &&
	    !read_size(table, PLUMB_GPU_UNIFIED, cell_of(table, cells, PLUMB_GPU_UNIFIED),
	               &work->bytes))
		work->bytes = PLUMB_UNKNOWN;
	work->frame = copy_frame(table, cells, name);
	return true;
}

static void
read_launch(struct plumb_gpu_table *table, const struct plumb_slice *cells,
            struct plumb_trace_launch *launch)
{
	*launch = plumb_trace_no_launch;
	read_dimensions(table, cells, PLUMB_GPU_GRID, launch->grid);
	read_dimensions(table, cells, PLUMB_GPU_BLOCK, launch->block);
	launch->registers = number_of(table, cells, PLUMB_GPU_REGISTERS);
	read_size(table, PLUMB_GPU_STATIC, cell_of(table, cells, PLUMB_GPU_STATIC),
	          &launch->static_shared);
	read_size(table, PLUMB_GPU_DYNAMIC, cell_of(table, cells, PLUMB_GPU_DYNAMIC),
	          &launch->dynamic_shared);
}

const char *
plumb_gpu_table_row(struct plumb_gpu_table *table, const struct plumb_slice *cells, uint32_t count)
{
	struct plumb_trace *trace = table->trace;
	struct plumb_trace_launch launch;
	struct plumb_trace_work work = {
		.bytes = PLUMB_UNKNOWN,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
	int64_t duration = PLUMB_UNKNOWN, number = PLUMB_UNKNOWN;
	if (count != table->cells)
		return "the number of cells is not that of the table's heading";
	struct plumb_slice length = cell_of(table, cells, PLUMB_GPU_DURATION);
	struct plumb_slice device = cell_of(table, cells, PLUMB_GPU_DEVICE);
	struct plumb_slice name = cell_of(table, cells, PLUMB_GPU_NAME);
	if (!name.bytes)
		return "has no name";
	if (!read_time(table, PLUMB_GPU_START, cell_of(table, cells, PLUMB_GPU_START),
	               &work.start_ns))
		return "its start is not a time with a known unit";
	if (length.bytes && !read_time(table, PLUMB_GPU_DURATION, length, &duration))
		return "its duration is not a time with a known unit";
	if (duration == PLUMB_UNKNOWN ||
	    __builtin_add_overflow(work.start_ns, duration, &work.end_ns))
		work.end_ns = PLUMB_UNKNOWN;
	bool bracket = *name.at == '[';
	if (!bracket && !device.bytes) {
		take_call(table, cells, work.start_ns, work.end_ns);
		return NULL;
	}
	if (bracket && (duration == PLUMB_UNKNOWN || !read_copy(table, cells, name, &work))) {
		plumb_trace_count_slice(trace, PLUMB_FATE_UNUSED, name, 1);
		return NULL;
	}
	if (!bracket) {
		read_launch(table, cells, &launch);
		work.launch = &launch;
		name = cut_number(name, &number);
		work.frame = plumb_trace_frame(trace, PLUMB_FRAME_KERNEL, name);
	}
	work.correlation = correlation_of(table, cells, number);
	work.track = plumb_trace_stream(trace, table->process, device_of(table, device),
	                                number_of(table, cells, PLUMB_GPU_CONTEXT),
	                                number_of(table, cells, PLUMB_GPU_STREAM));
	plumb_trace_work(trace, &work);
	return NULL;
}
