/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of layers*.c and layer_*.c share. Private to them. */
#ifndef PLUMB_ANALYZE_LAYER_CALLS_H
#define PLUMB_ANALYZE_LAYER_CALLS_H

#include "analyze/layers.h"

struct plumb_layers_making {
	struct plumb_layers *layers;
	const struct plumb_layers_options *options;
	uint32_t *layer_of; /* by context; PLUMB_NONE */
	/* by context: is it, or an ancestor of it, backward work? */
	unsigned char *backward;
	unsigned char *calls_model; /* by context: it is where the model is called */
	unsigned char *in_model;    /* by context: it or an ancestor calls the model */
	unsigned char *starts;      /* by context: it is where a layer is called */
	uint32_t *kernel_of;        /* by context: index into layers->kernels, or PLUMB_NONE */
	bool tells_backward;        /* the profile says which work is backward work */
	double model_calls;         /* in all; 0 unknown */
	int64_t *first_ns;          /* by layer: its first span, INT64_MAX */
};

/* Measures single calls by their spans: host_us, latency_us, busy_us, idle_us of layers, us of
 * kernels, model_us, first_ns. PLUMB_ESYSTEM: no memory. */
int plumb_layers_calls(struct plumb_layers_making *making);

/* How many calls of the model a run has: 1, unless the user said how many runs there were. */
double plumb_layers_model_times(const struct plumb_layers_making *making);

/* Does CONTEXT belong to the model, as the options define it? */
bool plumb_layers_in_model(const struct plumb_layers_making *making, uint32_t context);

/* US is the time on the host in a run where every launch waits: makes it the latency of ROW. */
void plumb_layer_serialised(struct plumb_layer_row *row, double us);

/* Takes each time from its own level, if the profile has levels. PLUMB_ESYSTEM: no memory. */
int plumb_layers_levels(struct plumb_layers_making *making);

/* Finds the kernels, their counters and the layers' derived work. PLUMB_ESYSTEM: no memory. */
int plumb_layers_kernels(struct plumb_layers_making *making);
/* The layers' counters from those of their kernels; PLUMB_ESYSTEM. */
int plumb_layers_counters(struct plumb_layers_making *making);

#endif
