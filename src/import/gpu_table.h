/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of GPU work, a row for each kernel and copy, as nvprof and Nsight Systems print them:
 * which column is what, in which unit, and what a row is.
 *
 *	struct plumb_gpu_table table = { .trace = trace, .process = process, .binary = true };
 *	plumb_gpu_table_header(&table, cells, count);
 *	plumb_gpu_table_units(&table, cells, count);	(nvprof: they are a row of their own)
 *	const char *why = plumb_gpu_table_row(&table, cells, count);
 */
#ifndef PLUMB_IMPORT_GPU_TABLE_H
#define PLUMB_IMPORT_GPU_TABLE_H

#include "import/trace.h"

#define PLUMB_GPU_DEVICES_MAX 64

enum plumb_gpu_column {
	PLUMB_GPU_START,
	PLUMB_GPU_DURATION,
	PLUMB_GPU_NAME,
	PLUMB_GPU_GRID, /* "(64 1 1)", or its X */
	PLUMB_GPU_GRID_Y,
	PLUMB_GPU_GRID_Z,
	PLUMB_GPU_BLOCK,
	PLUMB_GPU_BLOCK_Y,
	PLUMB_GPU_BLOCK_Z,
	PLUMB_GPU_REGISTERS,
	PLUMB_GPU_STATIC,
	PLUMB_GPU_DYNAMIC,
	PLUMB_GPU_BYTES,
	PLUMB_GPU_UNIFIED, /* bytes of migrations; of others an address */
	PLUMB_GPU_FROM,
	PLUMB_GPU_TO,
	PLUMB_GPU_DEVICE,
	PLUMB_GPU_CONTEXT,
	PLUMB_GPU_STREAM,
	PLUMB_GPU_CORRELATION,
	PLUMB_GPU_COLUMN_COUNT
};

struct plumb_gpu_table {
	struct plumb_trace *trace;
	uint32_t process;
	bool binary; /* "KB" is 1024 bytes */
	/* private */
	uint32_t cells;                          /* in a row */
	uint32_t column[PLUMB_GPU_COLUMN_COUNT]; /* which one is it; PLUMB_NONE: there is none */
	char unit[PLUMB_GPU_COLUMN_COUNT][8];
	char devices[PLUMB_GPU_DEVICES_MAX][64]; /* names of those that have no number */
};

/* The columns by their headings, and the units that those have: "Bytes (MB)". False: it is not such
 * a table. */
bool plumb_gpu_table_header(struct plumb_gpu_table *table, const struct plumb_slice *cells,
                            uint32_t count);
/* A row of units; false: it is none. */
bool plumb_gpu_table_units(struct plumb_gpu_table *table, const struct plumb_slice *cells,
                           uint32_t count);
/* Hands a row over; NULL, or what is wrong with it. */
const char *
plumb_gpu_table_row(struct plumb_gpu_table *table, const struct plumb_slice *cells, uint32_t count);

#endif
