/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs can do at most, for rooflines; docs/tables.md has the same table. */
#ifndef PLUMB_ANALYZE_PEAKS_H
#define PLUMB_ANALYZE_PEAKS_H

enum plumb_precision {
	PLUMB_FP32,
	PLUMB_TF32,
	PLUMB_FP16,
	PLUMB_BF16,
	PLUMB_FP8,
	PLUMB_PRECISIONS
};

struct plumb_peak {
	const char *name;                /* what a device's name has in it */
	double tflops[PLUMB_PRECISIONS]; /* dense; 0: none, or not known */
	double terabytes;                /* of memory bandwidth in a second; 0: not known */
	const char *source;
};

/* That of the GPU of a device's NAME ("NVIDIA H100 80GB HBM3"); NULL: not known. */
const struct plumb_peak *plumb_peak_of(const char *name);

/* All, in the order in which they are looked for; the last one has no name. */
extern const struct plumb_peak plumb_peaks[];

#endif
