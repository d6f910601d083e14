/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as layers, each a leaf module or a top-level operator, with what one of its calls took:
 * the rows that the standard tables (tables.h) are made of.
 *
 *	struct plumb_layers layers;
 *	if (plumb_layers_make(&profile, &(struct plumb_layers_options){ 0 }, &layers, &error) < 0) …
 *	… layers.items[i].device_us …
 *	plumb_layers_free(&layers);
 *
 * The model is the outermost module over all leaf modules, wherever it is called. Else it is the
 * innermost range around them, else a step that PyTorch's profiler marks. Layers are what the model
 * holds. Without a model, or with `whole`, they are all that the profile holds. Backward work is
 * separate: a layer's figures are for its forward work.
 *
 * Times are µs, NAN if unknown. A layer's times are for one run of the model. If the profile has
 * spans, they are the trimmed mean (or another statistic) of its calls, else the plain mean. Both
 * are multiplied by its calls in a run.
 */
#ifndef PLUMB_ANALYZE_LAYERS_H
#define PLUMB_ANALYZE_LAYERS_H

#include "analyze/statistic.h"
#include "model/profile.h"

enum plumb_layer_kind {
	PLUMB_LAYER_IS_EITHER,   /* leaf modules, and what runs under no leaf module by operator */
	PLUMB_LAYER_IS_MODULE,   /* leaf modules alone */
	PLUMB_LAYER_IS_OPERATOR, /* top-level operators alone */
};

/* What a time is. */
enum plumb_latency_kind {
	PLUMB_LATENCY_UNKNOWN,
	PLUMB_LATENCY_HOST_SPAN,  /* from entry to exit on the host */
	PLUMB_LATENCY_OPERATORS,  /* on the host in the operators of the layer */
	PLUMB_LATENCY_COMPLETE,   /* from entry on the host to the end of its last GPU work */
	PLUMB_LATENCY_SERIALISED, /* the host span of a run in which every launch waits */
	PLUMB_LATENCY_DEVICE,     /* from the first GPU work of the recording to the last */
	PLUMB_LATENCY_ML,         /* on the host, in runs at M/L (plumb levels) */
	PLUMB_LATENCY_M,          /* an iteration of runs at M (plumb levels) */
};
/* "host span", …; NULL for the unknown. */
const char *plumb_latency_kind_name(enum plumb_latency_kind kind);

struct plumb_layers_options {
	enum plumb_layer_kind kind;
	const char *model; /* the name of its frame, or NULL */
	bool whole;
	bool serialised;                  /* the profile is of a run in which every launch waits */
	int64_t runs;                     /* of the model; 0: one for each call of it */
	struct plumb_statistic statistic; /* for calls that have spans */
};

/* NAN: unknown. Occupancies are parts of 1. */
struct plumb_counters {
	double flops; /* DERIVED tells where they are from */
	double dram_read, dram_write;
	double achieved;    /* occupancy */
	double theoretical; /* occupancy */
	bool derived;       /* flops come from the shapes of operators */
};

/* Adds up counters of kernels. An unknown counter makes the sum unknown. Zero it to start. */
struct plumb_counters_sum {
	struct plumb_counters sum;
	double us;
	bool some;
};
/* Adds TIMES executions that have COUNTERS each and took US together. */
void plumb_counters_add(struct plumb_counters_sum *tally, const struct plumb_counters *counters,
                        double times, double us);
/* Occupancies are weighted by time. */
struct plumb_counters plumb_counters_end(const struct plumb_counters_sum *tally);

struct plumb_layer_kernel {
	uint32_t layer; /* PLUMB_NONE: of the model, and in no layer */
	uint32_t frame;
	double us;                      /* of one execution */
	double count;                   /* in a run */
	double total;                   /* µs in a run */
	struct plumb_counters counters; /* of one execution */
};

struct plumb_layer_row {
	uint32_t frame;         /* a module or an operator */
	uint32_t context;       /* the first of it */
	uint32_t shapes;        /* string: of the most frequent output, or PLUMB_NONE */
	double calls;           /* in a run; NAN unknown */
	double host_us;         /* on the host; HOST tells how */
	double latency_us;      /* with its GPU work; LATENCY tells how */
	double idle_us;         /* of latency_us, without GPU work; never negative */
	double busy_us;         /* of latency_us, with it */
	double serialised_us;   /* on the host, of another run that was serialised */
	double device_us;       /* sum over its kernels; 0 where it has none */
	double backward_us;     /* likewise of its backward work; NAN unknown */
	double allocated, peak; /* bytes; NAN unknown */
	enum plumb_latency_kind host, latency;
	struct plumb_counters counters; /* of a run; occupancies weighted by time */
	bool work_unknown;              /* an operator has work that nothing tells */
};

struct plumb_layers {
	const struct plumb_profile *profile;
	/* in the order of first execution where IN_ORDER, else of contexts */
	struct plumb_layer_row *items;
	uint32_t count;
	struct plumb_layer_kernel *kernels; /* by layer, those in none last */
	uint32_t kernel_count;
	uint32_t model; /* the first context that calls it, or PLUMB_NONE */
	bool in_order;
	int64_t runs; /* ≥ 1 */
	double model_us;
	double device_us, backward_us; /* sums over all kernels of the model, in layers or not */
	enum plumb_latency_kind model_kind;
};

/* PLUMB_EEMPTY: there is no layer. PLUMB_ESYSTEM: no memory. PROFILE must outlive LAYERS. */
int
plumb_layers_make(const struct plumb_profile *profile, const struct plumb_layers_options *options,
                  struct plumb_layers *layers, struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_layers_free(struct plumb_layers *layers);

/* SERIALISED is a run in which every launch waited. Gives LAYERS the times of its layers with the
 * same names. They become the latency of layers whose latency with GPU work is unknown.
 * PLUMB_ESYSTEM: no memory. */
int plumb_layers_take_serialised(struct plumb_layers *layers,
                                 const struct plumb_layers *serialised) PLUMB_MUST_CHECK;

/* Floating-point operations of one call of the operator NAME with SHAPES, as recorded
 * (docs/run.md). It knows matrix products, convolutions and attention. Each multiplication and each
 * addition counts as one. NAN: unknown. */
double plumb_flops_of(const char *name, const char *shapes);
/* Is NAME one of these operators? Others have almost no work. */
bool plumb_flops_has(const char *name);

#endif
