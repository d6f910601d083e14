/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What frameworks call things: steps, loaders, optimizers, operators and their work. One table for
 * each framework (pytorch.c, jax.c, …), which everything reads through the lookups below.
 *
 * A new framework is one file with one struct plumb_framework_names, and a row in framework.c. A
 * field that is left out means that nothing is known. The first framework that knows a name counts.
 */
#ifndef PLUMB_MODEL_FRAMEWORK_FRAMEWORK_H
#define PLUMB_MODEL_FRAMEWORK_FRAMEWORK_H

#include "model/profile.h"

/* What a range, a Python function or the class of a module is for. */
enum plumb_purpose {
	PLUMB_PURPOSE_NONE,   /* not known */
	PLUMB_PURPOSE_OTHER,  /* known to be none of these */
	PLUMB_PURPOSE_DATA,   /* loads data */
	PLUMB_PURPOSE_LOADER, /* a loader, in the process that trains */
	PLUMB_PURPOSE_WORKER, /* a loader's worker process */
	PLUMB_PURPOSE_MODULE, /* calls a module */
	PLUMB_PURPOSE_LOSS,
	PLUMB_PURPOSE_FUNCTIONS, /* a function; those with the name of a loss are losses */
	PLUMB_PURPOSE_BACKWARD,
	PLUMB_PURPOSE_AGAIN, /* computes forward work again, for the backward pass */
	PLUMB_PURPOSE_OPTIMIZER,
	PLUMB_PURPOSE_OPTIMIZER_STEP, /* the part of the optimizer's work that changes parameters */
	PLUMB_PURPOSE_PARAMETERS,     /* moves a module's parameters */
};

/* What a program does before its loop; startup.c has the names. */
enum plumb_startup_kind {
	PLUMB_STARTUP_OTHER, /* or not known */
	PLUMB_STARTUP_IMPORTS,
	PLUMB_STARTUP_COMPILING,
	PLUMB_STARTUP_TUNING,  /* trying variants of kernels */
	PLUMB_STARTUP_CAPTURE, /* of GPU graphs */
	PLUMB_STARTUP_MODEL,   /* making and loading the model */
	PLUMB_STARTUP_DATA,
	PLUMB_STARTUP_GPU,   /* starting the GPU's runtime, loading code onto it */
	PLUMB_STARTUP_RANKS, /* meeting other ranks */
	PLUMB_STARTUP_KINDS
};

/* What an operator or a kernel does, as far as advice depends on it. */
enum plumb_work_kind {
	PLUMB_WORK_OTHER, /* or not known */
	PLUMB_WORK_COMMUNICATION,
	PLUMB_WORK_ATTENTION,
	PLUMB_WORK_CONVOLUTION,
	PLUMB_WORK_PRODUCT,
	PLUMB_WORK_RECURRENT,
	PLUMB_WORK_FUSED, /* by a compiler already */
	PLUMB_WORK_COPY,
	PLUMB_WORK_INDEXING,
	PLUMB_WORK_SORTING,
	PLUMB_WORK_LIGHT, /* elementwise work, normalisation, reductions: a compiler can fuse it */
	PLUMB_WORK_KINDS
};

/* How the floating-point operations of a call follow from its shapes; analyze/flops.c. */
enum plumb_flops_rule {
	PLUMB_FLOPS_NONE,
	PLUMB_FLOPS_MATRICES,  /* a matrix by a matrix */
	PLUMB_FLOPS_BATCHES,   /* as many matrices by as many */
	PLUMB_FLOPS_VECTOR,    /* a matrix or a vector by a vector */
	PLUMB_FLOPS_MATMUL,    /* any of these, with broadcasting */
	PLUMB_FLOPS_LINEAR,    /* input, weight */
	PLUMB_FLOPS_ATTENTION, /* query, key, value */
	/* input, weight, bias, stride, padding, dilation, transposed, output padding, groups */
	PLUMB_FLOPS_CONVOLUTION,
	PLUMB_FLOPS_CONV,           /* input, weight, bias, stride, padding, dilation, groups */
	PLUMB_FLOPS_CONV_TRANSPOSE, /* input, weight */
};

enum {
	PLUMB_OPERATOR_COPIES = 1,      /* it copies a tensor */
	PLUMB_OPERATOR_CARRIES = 2,     /* it carries out the copy that another operator wants */
	PLUMB_OPERATOR_TABLE_FIRST = 4, /* its first input is a table, not the batch */
};

/* An operator's NAME stands without the framework's prefix. It may have a "*", which is anything.
 * The first row that fits counts. */
struct plumb_framework_operator {
	const char *name;
	enum plumb_work_kind kind; /* PLUMB_WORK_OTHER: parts of its name tell */
	enum plumb_flops_rule flops;
	unsigned char operand; /* the input that the rule begins with, from 0 */
	unsigned char flags;   /* PLUMB_OPERATOR_* */
	const char *backward;  /* advice, if its backward pass takes long; NULL: none */
};

struct plumb_framework_range {
	const char *begins;
	enum plumb_purpose purpose;
};

/* FILE: a part of the path. FUNCTION: its name without the class, in which "*" is anything; NULL is
 * any. The first row that fits counts. */
struct plumb_framework_function {
	const char *file, *function;
	enum plumb_purpose purpose;
};

struct plumb_framework_part {
	const char *part;
	enum plumb_work_kind kind;
};

struct plumb_framework_names {
	const char *name; /* as people write it */
	/* How a profile tells that it is of this framework. */
	const char *version_key; /* fact of its environment */
	const char *format;      /* importer that reads this framework's files only */

	const char *operators; /* how the names of its operators begin */
	const struct plumb_framework_operator *operator_rows; /* up to a NULL name */
	const char *paths; /* operators that begin so are a path: the last part is the name */

	/* The range that its profiler puts around a step; "#" and a number may follow. */
	const char *steps;
	const struct plumb_framework_range *ranges; /* up to a NULL */
	/* Functions by phase of a training step. */
	const struct plumb_framework_function *phases; /* up to a NULL file */
	/* Other functions; FILE is how the path ends. */
	const struct plumb_framework_function *places; /* up to a NULL file */
	const char *losses;                            /* how the classes of its losses begin */
	const char *packages; /* what its Python packages are called, words with spaces between */

	const char *node; /* what the backward engine's ranges have before the name of a node */
	const char *engine[2];   /* how names begin that only the backward pass has */
	const char *engine_part; /* a part of such names, by which the framework is recognised */

	const char *copy_kernel;                  /* part of the names of kernels that only copy */
	const struct plumb_framework_part *parts; /* of other names, lower case; up to a NULL */
	/* Kernels that its compiler generates and numbers, with "*"; what stands before the names
	 * of the operators in them. */
	const char *generated, *fused;

	/* Advice that only its users can follow. NULL: that for all programs. */
	struct {
		const char *gpu, *host; /* for time on the GPU, on the host */
	} advice[PLUMB_WORK_KINDS];
	/* Of collectives: how gradients, and how parts of parameters, can be sent while the GPU
	 * computes; how fewer and larger ones can do; how to send fewer bytes. */
	struct {
		const char *reduce, *gather, *small, *bytes;
	} communication;
	const char *short_kernels; /* a part launches many short kernels */
	const char *slow_host;     /* the host does not keep up with the GPU */
	/* Needed if PLACES has a loader. */
	const char *loader;  /* what its loader is called */
	const char *workers; /* more worker processes than processors */
	const char *loading; /* the process that trains loads data itself */
};

/* ---- whose profile it is ---- */

/* By facts of the environment and the format that it was imported from; NULL. */
const struct plumb_framework_names *plumb_framework_find(const struct plumb_profile *profile);
/* By names of operators, which every profile of PyTorch has; NULL. */
const struct plumb_framework_names *
plumb_framework_of_operators(const struct plumb_profile *profile);
/* What the profile says of the framework's version; NULL. */
const char *plumb_framework_version(const struct plumb_profile *profile);

/* ---- what a name is ---- */

/* The operator's row; NULL: nothing is known of it. NAME may be NULL. */
const struct plumb_framework_operator *plumb_framework_operator(const char *name);
/* NAME without the prefix of a framework's operators; NULL: it has
 * none. */
const char *plumb_framework_operator_base(const char *name);
/* What an operator or a kernel does; PLUMB_WORK_OTHER: no framework knows. */
enum plumb_work_kind plumb_framework_work(const char *name);
/* By the first of PARTS, up to a NULL, that is in NAME. Template arguments do not count: they hold
 * all sorts of words. */
enum plumb_work_kind
plumb_work_by_parts(const struct plumb_framework_part *parts, const char *name);
bool plumb_framework_is_copy_kernel(const char *name);
/* Do its slashes part a path? */
bool plumb_framework_is_path(const char *name);

/* The name that steps have without a number, if NAME is one; else NULL. */
const char *plumb_framework_step(const char *name);
/* By the BYTES of NAME, which need not be terminated. */
enum plumb_purpose plumb_framework_range(const char *name, size_t bytes);
/* What a Python function does in a training step: file and name as a frame has them. */
enum plumb_purpose plumb_framework_phase(const char *file, const char *name);
/* What else the frame is for, if it is a Python function. *OF, which may be NULL: by whom. */
enum plumb_purpose plumb_framework_place(const struct plumb_profile *profile, uint32_t frame,
                                         const struct plumb_framework_names **of);
/* What a frame says of start-up, on its own. */
enum plumb_startup_kind
plumb_framework_startup(const struct plumb_profile *profile, uint32_t frame);
bool plumb_framework_is_loss_class(const char *name);
/* Is this the name of a framework's Python package? */
bool plumb_framework_is_package(const char *name, size_t bytes);

/* The name of the node if NAME is the engine's range around it; else NAME. */
const char *plumb_framework_node(const char *name);
/* Do only operators of the backward pass have names like this? */
bool plumb_framework_is_backward(const char *name);

/* Did a framework's compiler generate and number the kernel? */
bool plumb_framework_is_generated(const char *kernel);
/* "_add_relu_0" of the kernel "triton_poi_fused_add_relu_0"; NULL: its name does not tell. */
const char *plumb_framework_fused(const char *kernel);

/* Does TEXT match PATTERN, which has BYTES bytes? A "*" in it matches anything. */
bool plumb_name_fits(const char *text, const char *pattern, size_t bytes);

#endif
