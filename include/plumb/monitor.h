/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb's view of a deep-learning program, for other tools: what frameworks and GPU drivers do, as
 * events, and where the program is at that moment, as one call path through Python, operators,
 * ranges and driver calls.
 *
 *	static void
 *	on_launch(const struct plumb_monitor_event *event, void *data)
 *	{
 *		struct plumb_monitor_frame frames[64];
 *		size_t count = plumb_monitor_path(PLUMB_MONITOR_ALL_LAYERS, frames,
 *		                                  sizeof *frames, 64);
 *		…
 *	}
 *	…
 *	struct plumb_monitor_options options = { .size = sizeof options };
 *	if (plumb_monitor_init(&options) == 0)
 *		plumb_monitor_register(1u << PLUMB_MONITOR_LAUNCH, on_launch, NULL);
 *
 * The functions are in libplumb.so. A tool is a shared library that is preloaded beside it and
 * links against nothing (they are found when it is loaded), or a program that gets them by dlsym:
 *
 *	plumb run --tool /path/libtool.so -- python train.py
 *	LD_PRELOAD="/path/libplumb.so /path/libtool.so" python train.py
 *
 * Without `plumb run` (the second line) nothing is written anywhere: contexts are kept in the
 * process's memory. With it both work side by side.
 *
 * Structures begin with their size, as the tool was compiled, so that they can grow.
 */
#ifndef PLUMB_MONITOR_H
#define PLUMB_MONITOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUMB_MONITOR_VERSION 1

/* Kinds of event. A mask has the bit 1u << kind. */
enum plumb_monitor_kind {
	PLUMB_MONITOR_OPERATOR = 0,     /* a framework's operator: begins, ends */
	PLUMB_MONITOR_RANGE = 1,        /* a range that the program marked (record_function, NVTX,
	                                   plumb/annotate.h): begins, ends */
	PLUMB_MONITOR_COMPILED = 2,     /* a compiled region (torch.compile): begins, ends */
	PLUMB_MONITOR_TENSOR_ALLOC = 3, /* a tensor's memory was allocated */
	PLUMB_MONITOR_TENSOR_FREE = 4,  /* … and is given back */
	PLUMB_MONITOR_LAUNCH = 5,       /* a driver call that starts a kernel or a graph */
	PLUMB_MONITOR_COPY = 6,         /* … a copy */
	PLUMB_MONITOR_SET = 7,          /* … a set */
	PLUMB_MONITOR_DEVICE_ALLOC = 8, /* a driver call that allocates device memory */
	PLUMB_MONITOR_DEVICE_FREE = 9,  /* … frees it */
	PLUMB_MONITOR_SYNC = 10,        /* a driver call that waits for the GPU */
	PLUMB_MONITOR_KINDS = 11,
};

enum plumb_monitor_phase {
	PLUMB_MONITOR_BEGIN = 0,
	PLUMB_MONITOR_END = 1,
	PLUMB_MONITOR_AT = 2, /* at one moment: TENSOR_ALLOC, TENSOR_FREE */
};

/* Layers of a call path. */
enum plumb_monitor_layer {
	PLUMB_MONITOR_LAYER_PYTHON = 1 << 0,   /* Python frames */
	PLUMB_MONITOR_LAYER_MODULE = 1 << 1,   /* nn.Module instances */
	PLUMB_MONITOR_LAYER_OPERATOR = 1 << 2, /* operators, compiled regions */
	PLUMB_MONITOR_LAYER_RANGE = 1 << 3,    /* ranges */
	PLUMB_MONITOR_LAYER_NATIVE = 1 << 4,   /* native frames and libraries, where recorded */
	PLUMB_MONITOR_LAYER_GPU = 1 << 5,      /* driver calls and what is below */
};
#define PLUMB_MONITOR_ALL_LAYERS 0x3fu

#define PLUMB_MONITOR_UNKNOWN UINT64_MAX /* of a number that is not known */

/* Flags of an event and of a frame. */
enum {
	PLUMB_MONITOR_BACKWARD =
		1 << 0, /* work of a backward pass; its path is its forward operator's */
	PLUMB_MONITOR_ACCUMULATION =
		1 << 1,                   /* backward work that no single forward operator caused */
	PLUMB_MONITOR_TRUNCATED = 1 << 2, /* of a frame: deeper ones exist and are not known */
};

struct plumb_monitor_event {
	size_t size;   /* of what libplumb filled in; look at nothing behind it */
	uint32_t kind; /* enum plumb_monitor_kind */
	uint32_t phase;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t thread;  /* the kernel's number of the calling thread */
	uint32_t flags;
	/* An operator's, range's or driver function's name; the device's of a tensor ("cpu",
	 * "cuda"); NULL unknown. Valid until the callback returns. */
	const char *name;
	/* A forward operator's number, by which its backward finds it; -1 none. Of a backward one
	 * the number of its forward operator. */
	int64_t sequence;
	/* Driver calls: links begin, end and the GPU's own records. 0 none. */
	uint64_t correlation;
	/* Driver calls at their end: the result, 0 success. */
	int64_t result;
	/* Memory: where (at the end of an allocation), how much; PLUMB_MONITOR_UNKNOWN where not
	 * told. */
	uint64_t address, bytes;
	int32_t device; /* of a tensor: its index; -1 none or not told */
	uint32_t pad;
	/* Driver calls: the kernel's mangled name at its launch, or NULL. */
	const char *kernel;
	/* Driver calls: the call's parameters as CUPTI gives them (struct NAME_params); else
	 * NULL. */
	const void *parameters;
	/* Operators at their begin: types and shapes of the inputs as text, where they are recorded
	 * (PLUMB_MONITOR_SHAPES); else NULL. */
	const char *shapes;
};

/*
 * Called on the thread where it happens, while that thread waits. It must be quick, must not throw
 * or unwind, and may come on several threads at once. What it does itself gives no events.
 */
typedef void (*plumb_monitor_callback)(const struct plumb_monitor_event *event, void *data);

/* What to record beyond the default, by which events and paths say more. */
enum {
	PLUMB_MONITOR_SHAPES = 1 << 0,
	PLUMB_MONITOR_MEMORY = 1 << 1, /* needed for TENSOR_ALLOC and TENSOR_FREE */
	PLUMB_MONITOR_NATIVE = 1 << 2, /* native frames */
	PLUMB_MONITOR_NO_GPU = 1 << 3, /* leave the GPU alone */
};

struct plumb_monitor_options {
	size_t size;     /* sizeof(struct plumb_monitor_options) */
	uint32_t record; /* PLUMB_MONITOR_SHAPES, … added up; 0 the default */
	uint32_t pad;
	uint64_t memory; /* most bytes that contexts may take; 0: 256 MiB */
};

struct plumb_monitor_frame {
	/* as a frame's kind in a profile: 1 python, 2 module, 3 operator, 4 range, … */
	uint32_t kind;
	uint32_t line;    /* 0 unknown */
	const char *name; /* function, operator, range, driver function; never NULL */
	const char *file; /* of a Python frame; NULL unknown */
	uint32_t flags;
	uint32_t pad;
};

enum plumb_monitor_error {
	PLUMB_MONITOR_OK = 0,
	PLUMB_MONITOR_EARGUMENT = -1, /* an argument makes no sense */
	PLUMB_MONITOR_ELATE = -2,     /* too late: recording began otherwise, or is over */
	PLUMB_MONITOR_EFULL = -3,     /* no memory, or all PLUMB_MONITOR_CALLBACKS are in use */
};
#define PLUMB_MONITOR_CALLBACKS 16

/*
 * Begins. OPTIONS NULL: the default. Call it before the framework is imported and before the driver
 * is initialised, from the tool's constructor, say; where libplumb.so is not preloaded, events of a
 * framework begin when the driver is initialised. Under `plumb run` the run's own options hold. May
 * be called again, by several tools; the first call's options hold. 0, or PLUMB_MONITOR_E….
 */
int plumb_monitor_init(const struct plumb_monitor_options *options);

/*
 * From now on CALLBACK is called with DATA for events of the kinds in the mask KINDS. Returns a
 * handle above 0, or PLUMB_MONITOR_E…. Events cost the program nothing where nobody registered for
 * them.
 */
int plumb_monitor_register(uint32_t kinds, plumb_monitor_callback callback, void *data);

/* Ends what plumb_monitor_register began. A call on another thread may still be under way when this
 * returns: the callback's code must stay where it is. */
int plumb_monitor_unregister(int handle);

/*
 * Where the calling thread is: the frames of LAYERS, outermost first, FRAME_SIZE bytes apart (give
 * sizeof(struct plumb_monitor_frame)). At most CAPACITY are stored, the innermost ones; the result
 * is how many there are, which may be more. In a callback it is the event's own path, which ends
 * with the operator, range or driver call. Texts stay valid until plumb_monitor_finalize. 0 where
 * nothing is known. Callable on any thread.
 */
size_t plumb_monitor_path(uint32_t layers, struct plumb_monitor_frame *frames, size_t frame_size,
                          size_t capacity);

/* Ends all callbacks of all tools. Texts of paths go with the process. */
void plumb_monitor_finalize(void);

/* The version of the library: at least PLUMB_MONITOR_VERSION where it knows all that stands
 * here. */
int plumb_monitor_version(void);

#ifdef __cplusplus
}
#endif
#endif
