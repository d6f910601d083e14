/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile in memory: what every collector and importer writes and every report, export and
 * analysis reads. Plain columns; nothing here knows a vendor, a framework or a file format.
 *
 * - Ids are indexes into the arrays below, from 0; PLUMB_NONE is "none" and "unknown".
 * - Contexts are in preorder: context 0 is the root, a context's subtree is [id, last[id]].
 * - Values are exclusive. Inclusive ones come from plumb_inclusive().
 * - Times are ns (CLOCK_MONOTONIC of the host that recorded them), sizes bytes.
 * - A profile is built with a plumb_builder (builder.h) and is then read only.
 */
#ifndef PLUMB_MODEL_PROFILE_H
#define PLUMB_MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/words.h"

#define PLUMB_NONE UINT32_MAX
#define PLUMB_UNKNOWN INT64_MIN /* an unknown number: printed as unknown, null in JSON */

/* A + B; unknown when either is, or when it is more than a number holds. */
static inline int64_t
plumb_add_known(int64_t a, int64_t b)
{
	int64_t sum;

	if (a == PLUMB_UNKNOWN || b == PLUMB_UNKNOWN || __builtin_add_overflow(a, b, &sum))
		return PLUMB_UNKNOWN;
	return sum;
}

/* Large binary content. It belongs to the profile that it is in; no data: unknown. */
struct plumb_blob {
	const void *data;
	uint64_t bytes;
};
/* So long may one be (SQLite hands over no row above 64 MiB), and all of a profile together. */
#define PLUMB_BLOB_MOST (INT64_C(1) << 25)
#define PLUMB_BLOBS_MOST (UINT64_C(1) << 30)

/* A frame's identity is (kind, name, file, line). The rest is not part of it: `display` is what to
 * show instead of the name (a demangled kernel name), source_file and source_line are where its
 * code stands when `file` and `line` say something else (a native frame, a kernel). */
struct plumb_frame {
	uint32_t kind; /* enum plumb_frame_kind */
	uint32_t name; /* string */
	uint32_t file; /* string; a module's class, a native frame's build id */
	uint32_t line; /* 0 unknown */
	uint32_t display;
	uint32_t source_file; /* string or PLUMB_NONE */
	uint32_t source_line; /* 0 unknown */
	/* What the name of a copy or set says. No column of the file: it follows from the name. */
	struct plumb_transfer transfer;
};

struct plumb_context {
	uint32_t parent; /* PLUMB_NONE for the root */
	uint32_t frame;
	uint32_t flags; /* PLUMB_CONTEXT_* */
	uint32_t last;  /* last descendant */
	uint32_t depth; /* 0 for the root */
};

/* The devices that a copy read and wrote: id + 1. 0: unknown, or it was no copy between two
 * devices, so that whoever makes a row of something else need not speak of them. */
struct plumb_ends {
	uint32_t from, to;
};

/* Values of a context and track that differ in their ends are rows of their own. */
struct plumb_value {
	uint32_t context;
	uint32_t metric;
	uint32_t track;
	int64_t sum;
	uint64_t count;
	int64_t min, max;
	double mean, m2;
	struct plumb_ends ends;
};

/* A metric that the program named (plumb.metric): number i + PLUMB_METRIC_USER; see
 * model/metric.h. */
struct plumb_user_metric {
	uint32_t name; /* string; no other metric has it */
	uint32_t unit; /* string or PLUMB_NONE */
};

/* Shape of repeated work at a context. A kernel's fields are PLUMB_UNKNOWN for other kinds and
 * `shapes` is PLUMB_NONE for a kernel. */
struct plumb_variant {
	uint32_t context;
	uint32_t track;
	uint32_t shapes; /* string: an operator's input shapes */
	int64_t grid[3], block[3];
	int64_t registers, static_shared, dynamic_shared;
	int64_t occupancy; /* theoretical, parts per million */
	uint64_t count;
	int64_t time, min, max; /* ns */
	/* When the first and the last one began; both 0: not known. No columns of the file. */
	int64_t first_ns, last_ns;
};

enum plumb_origin_reason {
	PLUMB_ORIGIN_OF_BACKWARD_CALL = 1, /* who called backward */
	PLUMB_ORIGIN_OF_GRAPH_CAPTURE = 2,
	PLUMB_ORIGIN_OF_FUSED = 3,
	PLUMB_ORIGIN_OF_INLINED = 4,
};
struct plumb_origin {
	uint32_t context;
	uint32_t origin; /* context */
	uint32_t reason; /* enum plumb_origin_reason */
};

struct plumb_process {
	int64_t pid, ppid;
	int64_t rank, local_rank; /* PLUMB_UNKNOWN where no launcher set them */
	uint32_t host;            /* string */
	uint32_t command;         /* string */
	int64_t start_ns, end_ns;
	int64_t exit_code;   /* 0…255, 128 + signal, or PLUMB_UNKNOWN */
	int64_t overhead_ns; /* plumb's own time on the busiest thread, or PLUMB_UNKNOWN */
};

enum plumb_track_kind {
	PLUMB_TRACK_THREAD = 1,
	PLUMB_TRACK_STREAM = 2,
	PLUMB_TRACK_MEMORY = 3, /* a device's memory, in one process */
};
struct plumb_track {
	uint32_t kind; /* enum plumb_track_kind */
	uint32_t process;
	uint32_t device;     /* of a stream; of memory, PLUMB_NONE for the CPU's */
	uint32_t name;       /* string, of a thread; of memory: "CPU", "cuda:0" */
	int64_t tid;         /* of a thread */
	int64_t stream;      /* of a stream: the GPU runtime's number */
	int64_t gpu_context; /* likewise its context's number */
	int64_t start_ns, end_ns;
	int64_t overhead_ns;
};

/* Exact totals of the work on a device; PLUMB_UNKNOWN where not recorded. Each is a member of the
 * struct that has them, and all of them together are its member `work`. */
#define PLUMB_DEVICE_TOTALS                                                                        \
	int64_t kernels, kernel_ns;                                                                \
	int64_t copies, copy_ns, copy_bytes;                                                       \
	int64_t sets, set_ns, set_bytes
struct plumb_device_work {
	PLUMB_DEVICE_TOTALS;
};
#define PLUMB_DEVICE_WORK                                                                          \
	union {                                                                                    \
		struct {                                                                           \
			PLUMB_DEVICE_TOTALS;                                                       \
		};                                                                                 \
		struct plumb_device_work work;                                                     \
	}

/* Adds FROM to INTO. A sum is unknown if one of its two parts is. */
void plumb_device_work_add(struct plumb_device_work *into, const struct plumb_device_work *from);

/* A GPU, one row for each physical one (by UUID, else by process and ordinal). */
struct plumb_device {
	uint32_t name; /* string */
	uint32_t uuid; /* string "GPU-xxxxxxxx-…" or PLUMB_NONE */
	int64_t ordinal;
	int64_t rank; /* of the process that used it, PLUMB_UNKNOWN when several or none */
	int64_t capability_major, capability_minor;
	int64_t multiprocessors, warps_per_multiprocessor;
	int64_t clock_khz, memory_clock_khz;
	int64_t memory_bytes;
	PLUMB_DEVICE_WORK;
	int64_t busy_ns, first_ns, last_ns; /* PLUMB_UNKNOWN where not recorded */
	int64_t late;                       /* work too late for the online union */
	int64_t contended_ns;               /* time when two or more processes had work on it */
};

/* What a process did on a device. */
struct plumb_device_process {
	uint32_t device, process;
	int64_t busy_ns, first_ns, last_ns; /* as the device's, of this process alone */
};

/* Linear map of a clock onto the host's CLOCK_MONOTONIC:
 * monotonic = gpu + offset_ns + slope * (gpu - reference_ns). Device PLUMB_NONE: realtime. */
struct plumb_clock {
	uint32_t process, device;
	int64_t reference_ns;
	int64_t offset_ns;
	double slope;        /* rate difference, dimensionless */
	int64_t residual_ns; /* greatest distance of a reading from the line */
	int64_t readings;
};

struct plumb_ledger_row {
	uint32_t process; /* PLUMB_NONE: the profile as a whole */
	uint32_t source;  /* enum plumb_source */
	uint32_t fate;    /* enum plumb_fate */
	uint32_t detail;  /* string or PLUMB_NONE */
	int64_t count;
};

/* The numbers of a process' ProfilerStep ranges, as the importers that cut them off keep them: "2 3
 * 4", "2..4". */
#define PLUMB_PROFILER_STEPS "profiler.steps"
/* What --compat hta needs of a process' file beside its spans. How many different ProfilerStep#N it
 * names, and when the last one on a GPU begins and ends, in the file's own ns: "6 1000 2000". Only
 * where there are some on a GPU. */
#define PLUMB_PROFILER_GPU_STEPS "profiler.gpu_steps"
/* What was added to the times of the file, ns; none: nothing. */
#define PLUMB_TRACE_BASE "trace.base_ns"

struct plumb_environment_row {
	uint32_t process; /* PLUMB_NONE: the run */
	uint32_t key, value;
};

/* What an analysis concluded; see analyze/. Evidence is a JSON object as text. */
enum plumb_severity {
	PLUMB_NOTE = 1,
	PLUMB_WARNING = 2,
	PLUMB_SERIOUS = 3,
};
struct plumb_finding {
	uint32_t id, rule, title, advice, evidence; /* strings */
	uint32_t severity;                          /* enum plumb_severity */
	uint32_t context;
	int64_t saving_ns;
	double confidence; /* 0…1, NAN unknown */
	uint32_t window;   /* string: the name of the window that it is of (window.h) */
};

/* Code that was loaded: a file of the host's code, which a native frame's `file` names by its
 * build id, else by its path; or a module of GPU code, which HASH identifies in all processes and
 * runs. */
struct plumb_code_object {
	uint32_t process;
	uint32_t kind;           /* string: "elf"; of GPU code: "cubin" */
	uint32_t path, build_id; /* strings; the build id in hexadecimal or PLUMB_NONE */
	uint32_t hash;           /* string: SHA-256 of the content in hexadecimal, or PLUMB_NONE */
	int64_t bytes;
};

/* A function of a module of GPU code that samples met, or that such a function calls. An offset in
 * it counts bytes from its first instruction. */
struct plumb_code_function {
	uint32_t object;       /* code object */
	uint32_t name;         /* string: mangled */
	uint32_t architecture; /* string: "sm_90" */
	uint32_t is_kernel;    /* 1, else 0: a function that kernels call */
	int64_t bytes;         /* of its machine code */
	/* What its module says of one thread or block; PLUMB_UNKNOWN */
	int64_t registers, stack_bytes, shared_bytes;
	struct plumb_blob text; /* the machine code; no data: not kept, the ledger says why */
};

/* The code at OFFSET has the address of NAME, which the loader puts there: a function that it
 * calls, or a variable. */
struct plumb_code_reference {
	uint32_t function; /* code function */
	uint32_t name;     /* string: mangled */
	int64_t offset;
};

/* Where the code from OFFSET to the next row's offset of the same function was written. Rows with
 * one offset are a chain: DEPTH 0 is the innermost line, 1 the line of the call that was inlined
 * there, and so on. */
struct plumb_code_line {
	uint32_t function; /* code function */
	uint32_t depth;
	int64_t offset;
	uint32_t file;    /* string or PLUMB_NONE */
	uint32_t line;    /* 0: unknown */
	uint32_t inlined; /* string: the function that was inlined, mangled; or PLUMB_NONE */
};

/* Samples of program counters of a device's warps, put together. Without a launch they belong to
 * the code and not to a context. */
struct plumb_code_sample {
	uint32_t function; /* code function */
	uint32_t process, device;
	uint32_t reason; /* string: why the warp stood there, in the vendor's word without prefix */
	uint32_t issued; /* 1: the scheduler issued another warp meanwhile, 0: it issued none */
	uint32_t context; /* of the launch, where sampling was serialised; else PLUMB_NONE */
	int64_t offset;
	int64_t launch_ns; /* when that launch began; PLUMB_UNKNOWN */
	uint64_t count;
};

/* Newest GPU work of a device, ascending by start. */
struct plumb_work_item {
	uint32_t context;
	uint32_t track;
	int64_t start_ns, end_ns;
};

/* What a framework's allocators handed out of a device's memory, in one process. */
struct plumb_memory {
	uint32_t track; /* of kind memory */
	int64_t peak_bytes, peak_ns;
	int64_t allocations, allocated_bytes;
	int64_t frees, freed_bytes; /* of what was allocated while recording */
	int64_t live_bytes;         /* at the end */
	/* The allocator's own account, PLUMB_UNKNOWN where it keeps none: bytes handed out and
	 * bytes taken from the device, at the peak, and the most that it ever took. */
	int64_t peak_allocated_bytes, peak_reserved_bytes;
	int64_t most_reserved_bytes;
};

/* One interval of a trace (`plumb run --trace`). A driver call and the GPU work that it started
 * have the same CORRELATION, which is unique within their process, ascends in the order of the
 * calls and is 0 for none. A call that waits may have one too, for the waits below to name. Spans
 * of a thread nest, of a stream they may overlap. BYTES: of a copy or set; 0 where they are not
 * known. */
struct plumb_span {
	uint32_t context;
	uint32_t track;
	int64_t start_ns, end_ns;
	uint64_t correlation;
	uint64_t bytes;
	struct plumb_ends ends;
};

/* A sample of CPU time, with its moment (`plumb run --trace --cpu`): at AT_NS the thread TRACK
 * computed at CONTEXT, and since the one before it had computed for NS. */
struct plumb_cpu_sample {
	uint32_t track, context;
	int64_t at_ns, ns;
};

/* Activity of a device over time as one process saw it. */
struct plumb_series_bin {
	uint32_t device, process;
	int64_t start_ns, width_ns;
	int64_t busy_ns, kernels, copies;
};

/* What was live of a track of kind memory over time, and at the end of the bin (`last`). Reserved
 * is what the allocator had taken from the device; PLUMB_UNKNOWN if it keeps no account. */
struct plumb_memory_series_bin {
	uint32_t track;
	int64_t start_ns, width_ns;
	int64_t min_bytes, max_bytes, last_bytes;
	int64_t max_reserved_bytes, last_reserved_bytes;
};

/* A hardware counter of a device over time, from samples of the whole device that one process took:
 * their least, mean (by the time that they cover) and greatest. METRIC and UNIT are strings. */
struct plumb_counter_series_bin {
	uint32_t device, process;
	uint32_t metric, unit;
	int64_t start_ns, width_ns;
	int64_t samples, sampled_ns;
	double min, mean, max;
};

/* Who waited for GPU work, by the recording (synchronisation records). TRACK, a thread or stream,
 * waited for the stream AWAITED, PLUMB_NONE: every stream of DEVICE (PLUMB_NONE: of any). CALL and
 * AFTER are correlations in TRACK's process: of the driver call that waited, or made the stream
 * wait, and of the call that recorded the event; 0: for all that was handed over before CALL. */
struct plumb_wait {
	uint32_t track, awaited, device;
	uint64_t call, after;
};

/* What the recording says of a collective operation: the span of the stream TRACK that begins at
 * START_NS. GROUP and RANKS are the process group's name and its ranks, as the framework writes
 * them ("[0, 1]"): the same on each of them. SEQUENCE numbers the group's operations, alike on all
 * of its ranks. */
struct plumb_collective {
	uint32_t track, group, ranks; /* strings or PLUMB_NONE */
	int64_t start_ns;
	int64_t size, sequence; /* ranks in the group; PLUMB_UNKNOWN */
	/*
	 * What the library itself tells (`plumb run --traffic`); else PLUMB_NONE and PLUMB_UNKNOWN.
	 * Its words: "AllReduce", "Send"; "ncclFloat32"; "RING"; "SIMPLE". BYTES are logical: what
	 * the call asked for, elements times their size. Without a stream the track is PLUMB_NONE,
	 * and START_NS is when the call was made.
	 */
	uint32_t context; /* of the call */
	uint32_t operation, datatype, algorithm, protocol;
	int64_t called_ns, end_ns; /* CALLED_NS on the host; END_NS on the device */
	int64_t bytes;
	int64_t rank, peer, root; /* in the group */
	int64_t channels;
};
/* For an initializer: nothing of what the library tells is known. */
#define PLUMB_COLLECTIVE_UNTOLD                                                                    \
	.context = PLUMB_NONE, .operation = PLUMB_NONE, .datatype = PLUMB_NONE,                    \
	.algorithm = PLUMB_NONE, .protocol = PLUMB_NONE, .called_ns = PLUMB_UNKNOWN,               \
	.end_ns = PLUMB_UNKNOWN, .bytes = PLUMB_UNKNOWN, .rank = PLUMB_UNKNOWN,                    \
	.peer = PLUMB_UNKNOWN, .root = PLUMB_UNKNOWN, .channels = PLUMB_UNKNOWN

/*
 * Data of the program: what one call path allocated on one device, put together. Its single
 * allocations are ranges. A tensor is a part of the segment that its framework allocated: WITHIN.
 */
struct plumb_object {
	uint32_t context; /* of the allocation; PLUMB_NONE: not known */
	uint32_t process; /* that allocated it */
	uint32_t device;  /* whose memory it is; PLUMB_NONE: the host's, or not known */
	uint32_t kind;    /* enum plumb_object_kind */
	uint32_t name;    /* string: what the program calls it; or PLUMB_NONE */
	uint32_t within;  /* object, or PLUMB_NONE */
	uint64_t allocations;
	int64_t bytes; /* of all of them together */
	int64_t most;  /* live at once */
	/* Bytes of its ranges that an access met at least once, of those of TOUCHABLE_BYTES that
	 * were looked at; PLUMB_UNKNOWN: no access was looked at. */
	int64_t touched_bytes, touchable_bytes;
};

/* One allocation of an object. END_NS PLUMB_UNKNOWN: it lived to the end of the recording. */
struct plumb_object_range {
	uint32_t object;
	int64_t address, bytes; /* ADDRESS as a pattern of 64 bits */
	int64_t start_ns, end_ns;
};

/* How often the bytes from OFFSET to OFFSET + WIDTH of an object's ranges were accessed by DEVICE.
 * No row: never. */
struct plumb_object_bin {
	uint32_t object;
	uint32_t device; /* that accessed it */
	uint32_t kind;   /* enum plumb_access_kind */
	int64_t offset, width;
	uint64_t accesses;
};

/*
 * Data that went from one device to another, put together: rows differ in everything but the
 * numbers. INITIATOR is the device whose code or copy engine asked for it; ENDS say which way the
 * data went, so a load has the initiator in `to`. An atomic counts once, as going to the owner.
 * Objects are those of the two ends.
 */
struct plumb_transfer_row {
	uint32_t context; /* of the launch, copy or call */
	uint32_t process;
	uint32_t kind;      /* enum plumb_access_kind */
	uint32_t route;     /* enum plumb_route */
	uint32_t initiator; /* device, or PLUMB_NONE */
	struct plumb_ends ends;
	uint32_t from_object, to_object; /* PLUMB_NONE */
	uint32_t function;               /* code function of an access, or PLUMB_NONE */
	int64_t offset;                  /* of the instruction; PLUMB_UNKNOWN without a function */
	int64_t width;                   /* bytes that one lane accesses; PLUMB_UNKNOWN */
	uint64_t accesses;               /* by lanes; or copies, or calls */
	int64_t warps;                   /* instructions executed by warps; PLUMB_UNKNOWN */
	int64_t bytes;
	/* Standard error of BYTES, if only a part was looked at (--traffic=sampled); 0: exact */
	double error_bytes;
};

/* What links two GPUs of a machine, or a GPU and its host, one row for each pair. GPUs are named by
 * their UUID, because ranks' profiles know only their own devices: joined, they have all. */
struct plumb_device_link {
	uint32_t uuid;            /* string, as of a device */
	uint32_t peer;            /* likewise, and greater; PLUMB_NONE: the host */
	uint32_t kind;            /* enum plumb_link_kind */
	uint32_t path;            /* string: a name of enum plumb_link_path, or PLUMB_NONE */
	int64_t links;            /* active NVLinks; of PCIe: lanes. PLUMB_UNKNOWN */
	int64_t generation;       /* of PCIe; PLUMB_UNKNOWN */
	int64_t bytes_per_second; /* of all together, in one direction; PLUMB_UNKNOWN */
	int64_t peer_access;      /* 1: they can reach each other's memory. PLUMB_UNKNOWN */
};

/* A stretch of the run or several alike, of one process: start-up, a loop, or the rest. */
enum plumb_window_kind {
	PLUMB_WINDOW_ALL = 0, /* no row of its own: it is the profile */
	PLUMB_WINDOW_STARTUP = 1,
	PLUMB_WINDOW_LOOP = 2,
	PLUMB_WINDOW_REST = 3,
	PLUMB_WINDOW_PART = 4, /* between two copies of the values; analyze says what it is of */
};
struct plumb_window {
	uint32_t process;
	uint32_t kind;      /* enum plumb_window_kind */
	uint32_t number;    /* of a loop or part, from 1 in order of time; else 0 */
	int64_t iterations; /* of a loop, or PLUMB_UNKNOWN; of a part: ns in which work ended */
};
/* From when to when. Stretches of a window do not overlap. */
struct plumb_window_stretch {
	uint32_t window;
	int64_t start_ns, end_ns;
};
/* What a window has of the value with the same context, metric, track and ends. What counts is
 * where an observation ended. A value of which the window has nothing has no row. */
struct plumb_window_value {
	uint32_t window;
	uint32_t context;
	uint32_t metric;
	uint32_t track;
	int64_t sum;
	uint64_t count;
	int64_t min, max; /* PLUMB_UNKNOWN where single observations are not known */
	double m2;
	struct plumb_ends ends;
};
/* What a window has of a variant with the same shape. */
struct plumb_window_variant {
	uint32_t window;
	struct plumb_variant variant; /* min and max: PLUMB_UNKNOWN */
};
/* What a process did on a device in a window; PLUMB_UNKNOWN where not known. */
struct plumb_window_device {
	uint32_t window, device;
	PLUMB_DEVICE_WORK;
	int64_t busy_ns;
};

/* What recording costs, measured by runs of the program with plumb and without. */
enum plumb_cost_scope {
	PLUMB_COST_OF_RUN = 1,  /* the runs as a whole were compared */
	PLUMB_COST_OF_STEP = 2, /* the main loop */
};
struct plumb_cost {
	uint32_t process;              /* whose loop; PLUMB_NONE: of the run as a whole */
	uint32_t scope;                /* enum plumb_cost_scope */
	int64_t pairs;                 /* of runs */
	int64_t steps;                 /* compared in each run; PLUMB_UNKNOWN */
	int64_t recorded_ns, plain_ns; /* a step, or the run, with plumb and without */
	double ratio, low, high;       /* of the times, and the 95 % interval; NAN: not known */
	uint32_t why;                  /* string: why it is not known, or PLUMB_NONE */
};

/* `plumb levels`: runs of the program in which ever more of it was observed. The profile is of a
 * run in which most was. */
enum plumb_level_kind {
	PLUMB_LEVEL_M = 1,          /* M: an iteration, or the run */
	PLUMB_LEVEL_ML = 2,         /* M/L: modules and operators, too */
	PLUMB_LEVEL_MLG = 3,        /* M/L/G: GPU work, and all layers of call paths, too */
	PLUMB_LEVEL_SERIALISED = 4, /* as M/L/G, and every launch waits for its work */
	PLUMB_LEVEL_COUNTED = 5, /* M/L/G/C: as M/L/G, and hardware events of kernels are counted */
};
enum plumb_level_bounds {
	PLUMB_LEVEL_BY_LAUNCHES = 1, /* the same launches of each run */
	PLUMB_LEVEL_BY_LOOP = 2,     /* the main loop of each run, as its profile has it */
	PLUMB_LEVEL_BY_RUN = 3,      /* the run as a whole */
};
/* The runs at one level. Times are of an iteration, or of the run if SCOPE says so. */
struct plumb_level_row {
	uint32_t level;                                /* enum plumb_level_kind */
	uint32_t scope;                                /* enum plumb_cost_scope */
	uint32_t bounds;                               /* enum plumb_level_bounds */
	int64_t runs;                                  /* that were made */
	int64_t kept;                                  /* of them; the others did other work */
	int64_t steps;                                 /* in each; PLUMB_UNKNOWN */
	int64_t time_ns, low_ns, high_ns;              /* PLUMB_UNKNOWN */
	int64_t added_ns, added_low_ns, added_high_ns; /* to the level before; PLUMB_UNKNOWN */
	uint32_t why; /* string: why runs were left out, or the time is not known; PLUMB_NONE */
};
/* A metric of a context at its own level, over all of the main loop (or the run, as the levels'
 * scope says). Times are inclusive, but for those that say own. */
struct plumb_level_value {
	uint32_t context, metric;
	uint32_t level;          /* at which it was measured */
	int64_t own_recorded_ns; /* in this profile */
	int64_t own_ns;          /* corrected; PLUMB_UNKNOWN: the runs differ here */
	int64_t measured_ns;     /* at the deepest level */
	int64_t corrected_ns, low_ns, high_ns;
	uint32_t passed; /* context: seems to cost less than this one, and costs more; or NONE */
};

/* The run as a whole. */
struct plumb_run {
	uint32_t command; /* string */
	int64_t start_ns, wall_ns;
	int64_t exit_code;
	int64_t overhead_ns;   /* of the busiest thread */
	uint32_t tool_version; /* string: of the plumb that settled it */
	/* Which analyses made the findings (PLUMB_ANALYSES, analyze.h); PLUMB_UNKNOWN: they had no
	 * number yet, or there were none. */
	int64_t analyses;
};

/*
 * The tables of a profile: number, name, type of a row, member of struct plumb_profile, and what
 * else of struct plumb_row_table (columns.h) is not 0. Each row of this list makes the enumerator
 * PLUMB_TABLE_<number>, the member, and the table. The columns of a member `waits` are the array
 * waits_columns in columns.c. An id refers to a table that comes before its own, or to its own.
 *
 * A column says by what the rows are ordered, if by anything. Work is ordered by device, then
 * start; spans are ordered by track, then start, the longer first.
 */
#define PLUMB_ROW_TABLES(T)                                                                        \
	T(PROCESSES, "processes", struct plumb_process, processes)                                 \
	T(DEVICES, "devices", struct plumb_device, devices)                                        \
	T(TRACKS, "tracks", struct plumb_track, tracks)                                            \
	T(FRAMES, "frames", struct plumb_frame, frames)                                            \
	T(CONTEXTS, "contexts", struct plumb_context, contexts)                                    \
	T(VALUES, "context_values", struct plumb_value, values)                                    \
	T(VARIANTS, "variants", struct plumb_variant, variants)                                    \
	T(ORIGINS, "origins", struct plumb_origin, origins)                                        \
	T(CLOCKS, "clocks", struct plumb_clock, clocks)                                            \
	T(LEDGER, "ledger", struct plumb_ledger_row, ledger)                                       \
	T(ENVIRONMENT, "environment", struct plumb_environment_row, environment)                   \
	T(FINDINGS, "findings", struct plumb_finding, findings)                                    \
	T(CODE_OBJECTS, "code_objects", struct plumb_code_object, code_objects)                    \
	T(CODE_FUNCTIONS, "code_functions", struct plumb_code_function, code_functions,            \
	  .since = 5, .may_lack = true)                                                            \
	T(CODE_REFERENCES, "code_references", struct plumb_code_reference, code_references,        \
	  .since = 5, .may_lack = true)                                                            \
	T(CODE_LINES, "code_lines", struct plumb_code_line, code_lines, .since = 5,                \
	  .may_lack = true)                                                                        \
	T(CODE_SAMPLES, "code_samples", struct plumb_code_sample, code_samples, .since = 5,        \
	  .may_lack = true)                                                                        \
	T(SERIES, "series", struct plumb_series_bin, series)                                       \
	T(MEMORY, "memory", struct plumb_memory, memory, .since = 2)                               \
	T(MEMORY_SERIES, "memory_series", struct plumb_memory_series_bin, memory_series,           \
	  .since = 5, .may_lack = true)                                                            \
	T(COUNTER_SERIES, "counter_series", struct plumb_counter_series_bin, counter_series,       \
	  .since = 6, .may_lack = true)                                                            \
	T(DEVICE_PROCESSES, "device_processes", struct plumb_device_process, device_processes,     \
	  .since = 2)                                                                              \
	T(WAITS, "waits", struct plumb_wait, waits, .since = 3)                                    \
	T(COLLECTIVES, "collectives", struct plumb_collective, collectives, .since = 3,            \
	  .may_lack = true)                                                                        \
	T(OBJECTS, "objects", struct plumb_object, objects, .since = 6, .may_lack = true)          \
	T(OBJECT_RANGES, "object_ranges", struct plumb_object_range, object_ranges, .since = 6,    \
	  .may_lack = true)                                                                        \
	T(OBJECT_BINS, "object_bins", struct plumb_object_bin, object_bins, .since = 6,            \
	  .may_lack = true)                                                                        \
	T(TRANSFERS, "transfers", struct plumb_transfer_row, transfers, .since = 6,                \
	  .may_lack = true)                                                                        \
	T(DEVICE_LINKS, "device_links", struct plumb_device_link, device_links, .since = 6,        \
	  .may_lack = true)                                                                        \
	T(WINDOWS, "windows", struct plumb_window, windows, .since = 5)                            \
	T(WINDOW_STRETCHES, "window_stretches", struct plumb_window_stretch, window_stretches,     \
	  .since = 5)                                                                              \
	T(WINDOW_VALUES, "window_values", struct plumb_window_value, window_values, .since = 5)    \
	T(WINDOW_VARIANTS, "window_variants", struct plumb_window_variant, window_variants,        \
	  .since = 5)                                                                              \
	T(WINDOW_DEVICES, "window_devices", struct plumb_window_device, window_devices,            \
	  .since = 5)                                                                              \
	T(COSTS, "costs", struct plumb_cost, costs, .since = 5, .may_lack = true)                  \
	T(LEVELS, "levels", struct plumb_level_row, levels, .since = 6, .may_lack = true)          \
	T(LEVEL_VALUES, "level_values", struct plumb_level_value, level_values, .since = 6,        \
	  .may_lack = true)                                                                        \
	T(CPU_SAMPLES, "cpu_samples", struct plumb_cpu_sample, cpu_samples, .since = 3,            \
	  .may_lack = true, .moments = true, .most = PLUMB_CPU_SAMPLES_MAX,                        \
	  .lost_as = PLUMB_SOURCE_SAMPLE_TIME)                                                     \
	T(WORK, "work", struct plumb_work_item, work, .chunks = "span_chunks", .source = "newest", \
	  .most = PLUMB_WORK_MAX, .lost_as = PLUMB_SOURCE_SPAN)                                    \
	T(SPANS, "spans", struct plumb_span, spans, .chunks = "span_chunks", .source = "trace",    \
	  .moments = true, .most = PLUMB_SPANS_MAX, .lost_as = PLUMB_SOURCE_SPAN)

/* So many rows a profile holds at most; without a number of their own, as many as have ids. */
#define PLUMB_CPU_SAMPLES_MAX (UINT32_C(1) << 24)
#define PLUMB_WORK_MAX (UINT32_C(1) << 24)
#define PLUMB_SPANS_MAX (UINT32_C(1) << 26)

enum plumb_table_number {
	PLUMB_TABLE_RUN,
#define T(number, ...) PLUMB_TABLE_##number,
	PLUMB_ROW_TABLES(T)
#undef T
		PLUMB_TABLES
};

/* `room`: for how many rows there is memory; private to model/. */
#define PLUMB_COLUMN(type, name)                                                                   \
	type *name;                                                                                \
	uint32_t name##_count, name##_room

/* Of which window a profile is (window.h). It is not in the file. */
#define PLUMB_WINDOW_NAME 24
struct plumb_profile_window {
	uint32_t kind; /* enum plumb_window_kind; PLUMB_WINDOW_ALL: the profile is of the whole */
	uint32_t number;
	int64_t start_ns, end_ns, iterations; /* as in struct plumb_window_sum */
	int64_t whole_ns;                     /* the wall time of the run */
	bool is_main;                         /* the main loop */
	char name[PLUMB_WINDOW_NAME];
};

struct plumb_profile {
	/* string id → text; strings[i] is NUL-terminated. Owned by the profile. */
	PLUMB_COLUMN(const char *, strings);
	PLUMB_COLUMN(struct plumb_user_metric, user_metrics);
#define T(number, name, type, column, ...) PLUMB_COLUMN(type, column);
	PLUMB_ROW_TABLES(T)
#undef T
	struct plumb_run run;
	struct plumb_profile_window window;
	void *storage;       /* what strings and blobs lie in; private to model/ */
	uint64_t blob_bytes; /* of all blobs */
};

void plumb_profile_free(struct plumb_profile *profile);

/* The text of string ID; NULL for PLUMB_NONE. */
static inline const char *
plumb_text(const struct plumb_profile *profile, uint32_t id)
{
	return id < profile->strings_count ? profile->strings[id] : NULL;
}

static inline const struct plumb_frame *
plumb_context_frame(const struct plumb_profile *profile, uint32_t context)
{
	return &profile->frames[profile->contexts[context].frame];
}

/* Did the run sample CPU time, in this part of it or another? */
static inline bool
plumb_profile_is_sampled(const struct plumb_profile *profile)
{
	for (uint32_t i = 0; i < profile->ledger_count; i++)
		if (profile->ledger[i].source == PLUMB_SOURCE_SAMPLE)
			return true;
	return false;
}

/* The process whose main thread TRACK is; PLUMB_NONE: it is none, or there is no such track. */
static inline uint32_t
plumb_profile_main_of(const struct plumb_profile *profile, uint32_t track)
{
	const struct plumb_track *t =
		track < profile->tracks_count ? &profile->tracks[track] : NULL;

	if (!t || t->kind != PLUMB_TRACK_THREAD || t->process >= profile->processes_count ||
	    t->tid != profile->processes[t->process].pid)
		return PLUMB_NONE;
	return t->process;
}

/* What the environment says of KEY: the run, else the first process that says it; NULL: nothing. */
const char *plumb_profile_environment(const struct plumb_profile *profile, const char *key);

/* Do its operators come from native frames (plumb run --mode lean)? Then their host times and calls
 * are unknown. */
static inline bool
plumb_profile_is_lean(const struct plumb_profile *profile)
{
	return plumb_profile_environment(profile, "framework.torch.operators");
}

/* Were launches counted (plumb run --counters)? Each ran several times and waited, so the program
 * was far slower than it is. */
static inline bool
plumb_profile_is_counted(const struct plumb_profile *profile)
{
	return plumb_profile_environment(profile, "gpu.counters");
}

/* A file may hold any number; times of centuries, or that end before they start, would overflow
 * sums. */
#define PLUMB_TIME_MOST (INT64_C(1) << 61)
static inline bool
plumb_is_time(int64_t start_ns, int64_t end_ns)
{
	return start_ns > -PLUMB_TIME_MOST && end_ns < PLUMB_TIME_MOST && start_ns <= end_ns;
}

/* The first of the spans of TRACK, or of the first track behind it that has any: those of TRACK lie
 * from there to where those of TRACK + 1 begin. */
uint32_t plumb_profile_first_span(const struct plumb_profile *profile, uint32_t track);

/* The same for samples of CPU time: the first of TRACK that was taken at AT_NS or later. */
uint32_t
plumb_profile_first_sample(const struct plumb_profile *profile, uint32_t track, int64_t at_ns);

/* How much CPU time sample I tells of between FROM_NS and TO_NS: what it counts passed evenly since
 * the sample of the thread before it. */
double plumb_profile_sampled_within(const struct plumb_profile *profile, uint32_t i,
                                    int64_t from_ns, int64_t to_ns);

/* What to show for a frame: its display name, else its name, else "?". Never NULL. */
const char *plumb_frame_label(const struct plumb_profile *profile, uint32_t frame);

/* A finding whose texts are the caller's; NULL is none. */
struct plumb_finding_text {
	const char *id, *rule, *title, *advice, *evidence, *window;
	uint32_t severity;
	uint32_t context;
	int64_t saving_ns;
	double confidence;
};

/* The changes that a finished profile takes. First: its findings become the COUNT rows of FINDINGS,
 * whose texts are copied and made valid UTF-8. They may point into PROFILE's own strings. An
 * unknown context becomes PLUMB_NONE, a severity out of range PLUMB_NOTE. PLUMB_ESYSTEM: no memory,
 * nothing changed. */
int
plumb_profile_set_findings(struct plumb_profile *profile, const struct plumb_finding_text *findings,
                           uint32_t count, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Second: COST is what recording cost, in place of what the profile said before. WHY is its text;
 * NULL: none. PLUMB_ESYSTEM: no memory, nothing changed. */
int plumb_profile_set_cost(struct plumb_profile *profile, const struct plumb_cost *cost,
                           const char *why, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Third: what `plumb levels` measured, in place of what the profile said before. WHYS are the texts
 * of the LEVELS; NULL: none. VALUES were malloced, and become the profile's. PLUMB_ESYSTEM: no
 * memory. */
int
plumb_profile_set_levels(struct plumb_profile *profile, const struct plumb_level_row *levels,
                         const char *const *whys, uint32_t count, struct plumb_level_value *values,
                         uint32_t values_count, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Fourth: values of metrics that are not plumb's own, which another run observed. The metric's
 * number is not VALUE's but that of NAME in PROFILE, and is made if missing. PLUMB_ESYSTEM: no
 * memory, or too many metrics. */
struct plumb_profile_count {
	const char *name, *unit; /* UNIT NULL: none */
	struct plumb_value value;
};
int
plumb_profile_add_counts(struct plumb_profile *profile, const struct plumb_profile_count *counts,
                         uint32_t count, struct plumb_error *error) PLUMB_MUST_CHECK;

/* One metric's observations put together. count 0 means there were none: then nothing else
 * holds. */
struct plumb_stat {
	int64_t sum;
	uint64_t count;
	int64_t min, max;
	double mean, m2;
};
static inline struct plumb_stat
plumb_value_stat(const struct plumb_value *v)
{
	return (struct plumb_stat){ v->sum, v->count, v->min, v->max, v->mean, v->m2 };
}
static inline struct plumb_stat
plumb_window_value_stat(const struct plumb_window_value *v)
{
	double mean = (double)v->sum / (double)v->count;
	return (struct plumb_stat){ v->sum, v->count, v->min, v->max, mean, v->m2 };
}
/* Adds B to A (parallel Welford). */
void plumb_stat_merge(struct plumb_stat *a, const struct plumb_stat *b);
/* Standard deviation of a sample (n-1), 0 for a single observation, NAN where m2 is. */
double plumb_stat_deviation(const struct plumb_stat *stat);

/*
 * The values of METRIC for every context: EXCLUSIVE[i] what is stored (over all tracks),
 * INCLUSIVE[i] merged over [i, last[i]]. Either may be NULL; both hold contexts_count entries.
 * TRACK limits to one track, PLUMB_NONE takes all. Linear time.
 */
void plumb_inclusive(const struct plumb_profile *profile, uint32_t metric, uint32_t track,
                     struct plumb_stat *exclusive, struct plumb_stat *inclusive);

#endif
