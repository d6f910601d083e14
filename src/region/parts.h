/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a run: what each value of a region gained between two times. `plumb run` looks at the
 * values while the program runs (watch/parts.h), and leaves what it saw in a file beside the
 * region. Settle reads it. The file is untrusted input.
 *
 *   header | part | its values | its devices | part | …        (little endian, 8-byte aligned)
 */
#ifndef PLUMB_REGION_PARTS_H
#define PLUMB_REGION_PARTS_H

#include "base/error.h"
#include "region/layout.h"

#define PLUMB_PARTS_SUFFIX ".parts" /* after the name of the region's file */
#define PLUMB_PARTS_MAGIC "PLUMBPT\n"
#define PLUMB_PARTS_VERSION 1u
#define PLUMB_PARTS_MOST 32u /* of one process */

/* What a VALUE, VARIANT or SHAPE record gained; one that gained nothing is left out. */
struct plumb_part_value {
	plumb_id record;
	uint32_t pad;
	int64_t sum; /* of a variant or shape: its time, ns */
	uint64_t count;
	double m2; /* as plumb_observations; 0 for a variant or shape */
};
_Static_assert(sizeof(struct plumb_part_value) == 32, "value of a part");

/* What a DEVICE_TOTAL record gained. */
struct plumb_part_device {
	plumb_id device; /* DEVICE record */
	uint32_t pad;
	uint64_t kernels, kernel_ns;
	uint64_t copies, copy_ns, copy_bytes;
	uint64_t sets, set_ns, set_bytes;
	uint64_t busy_ns;
};
_Static_assert(sizeof(struct plumb_part_device) == 80, "device of a part");

/* Parts follow each other without holes, from the start of the process to its end. */
struct plumb_part {
	uint64_t start, end; /* CLOCK_MONOTONIC ns */
	uint32_t value_count, device_count;
	struct plumb_part_value *values;
	struct plumb_part_device *devices;
};

struct plumb_parts {
	uint64_t looks; /* how often plumb looked */
	uint32_t count;
	struct plumb_part *items;
};

/* Writes PARTS into PATH. PLUMB_ESYSTEM: it cannot be written; then nothing is left. */
int plumb_parts_write(const struct plumb_parts *parts, const char *path,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
/* Reads them. PLUMB_EEMPTY: there is no such file; PLUMB_EINPUT: it is damaged; PLUMB_ESYSTEM. In
 * any case plumb_parts_free may follow. */
int plumb_parts_read(struct plumb_parts *parts, const char *path,
                     struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_parts_free(struct plumb_parts *parts);

#endif
