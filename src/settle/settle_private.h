/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of settle/ (and by its fuzz target), in the order in which they work:
 *
 *   control.c      whether recording was on, and processes that are not followed
 *   folders.c      finds the regions and opens them one after the other
 *   region.c       one region: what each record means
 *   tree.c         nodes → contexts, strings, values, variants, origins
 *   native.c       native nodes → functions, through symbolizer.h
 *   kernel_lines.c line tables of GPU code → where kernels were written, through gpu_lines.h
 *   provenance.c   kernels of compiled code → the operators and lines they come from (inductor.h)
 *   tracks.c       processes, threads, devices, streams
 *   clocks.c       readings of clocks → lines
 *   gpu.c          totals, newest work and series of devices
 *   memory.c       allocations and peaks
 *   stalls.c       samples of GPU program counters → rows of code and samples
 *   gpu_code.c     the modules of GPU code that they are in, through isa/module.h
 *   stall_values.c the same samples as metrics of contexts, and frames below kernels
 *   communication.c  operations of communication libraries
 *   traffic.c      objects and transfers
 *   copies.c       the parts of the run, and what values added up in them
 *   spans.c        single spans of a trace; iterations.c: which of them were asked for
 *   samples.c      moments of CPU samples, which lie among them
 *   ledger.c       tallies, and what follows from them; overhead
 *   environment.c  facts of processes → facts of the run
 *   settle.c       the run as a whole
 */
#ifndef PLUMB_SETTLE_PRIVATE_H
#define PLUMB_SETTLE_PRIVATE_H

#include "base/map.h"
#include "base/vec.h"
#include "code/rows.h"
#include "model/builder.h"
#include "region/copies.h"
#include "region/reader.h"
#include "settle/inductor.h"
#include "settle/settle.h"
#include "settle/symbolizer.h"

/* What settling needs to know about a context, by its provisional id. */
struct plumb_settle_context {
	uint8_t kind;
	uint8_t flags; /* of the context or any above it */
	bool python;   /* a Python frame is it or above it */
	uint32_t parent, depth, frame;
};

/* Pieces of GPU work added up. */
struct plumb_settle_tally {
	int64_t kernels, kernel_ns;
	int64_t copies, copy_ns, copy_bytes;
	int64_t sets, set_ns, set_bytes;
};

/* Beside each device of the builder. */
struct plumb_settle_device {
	uint32_t uuid; /* string; PLUMB_NONE: (process, ordinal) tells it */
	uint32_t process, ordinal;
	uint32_t serial;                 /* the last region that used it */
	bool total;                      /* … and whether it gave totals, */
	struct plumb_settle_tally tally; /* … and what its values add up to */
};

/* Busy time of a device as one process saw it. */
struct plumb_settle_share {
	uint32_t device, process, serial;
	int64_t first, last; /* PLUMB_UNKNOWN without a clock */
	int64_t busy;        /* PLUMB_UNKNOWN if its totals were torn */
	uint64_t pieces;     /* of work */
	/* All its busy intervals, when `exact`: a range of plumb_settler.intervals. */
	bool exact;
	uint32_t from, count;
};

/* All work of a device in one process, from a ring that did not wrap. */
struct plumb_settle_ring {
	uint32_t device, serial;
	uint32_t from, count; /* of plumb_settler.intervals */
};

struct plumb_settle_interval {
	int64_t start, end;
};

struct plumb_settle_fact {
	uint32_t process, key, value; /* strings */
	uint32_t order;
};

struct plumb_settle_process {
	uint32_t folder, pid;
	int64_t seen; /* the latest time that is known of it */
};

/* The parts of a run and what values added up in them; all pointers lead into BYTES. */
struct plumb_settle_copies {
	char *bytes; /* NULL: unknown */
	const struct plumb_copies_part *parts;
	const struct plumb_copies_region *regions;
	const struct plumb_copies_entry *entries;
	uint32_t part_count, region_count;
};

/* What `plumb run` wrote about a folder's run. */
struct plumb_settle_run {
	bool known;
	const char *path; /* the folder */
	uint32_t command, pid;
	int64_t start, end;
	int64_t exit; /* PLUMB_UNKNOWN while it runs */
	/* From its control file: recording was off at times; was on for so long in all, and since
	 * (0: off). */
	bool was_off;
	int64_t recorded, since;
	bool windows_told; /* the reason why windows are unknown was given */
	bool looked;       /* for windows; a recording inside a program is without looks */
	struct plumb_settle_copies copies;
};

/* A code object of one or several processes. */
struct plumb_settle_code {
	uint32_t path, build_id; /* strings */
	uint32_t file;           /* string: of its frames */
	uint32_t object;         /* of the symbolizer; PLUMB_NONE: it is not a file */
	enum plumb_code_state state;
};

/* A place in one, and the frames that it is. */
struct plumb_settle_site {
	uint32_t code, offset;
	bool interrupted;     /* an instruction, told by its function and what is inlined there */
	uint32_t from, count; /* of plumb_settler.site_frames, outermost first */
	bool named;
};

/* A place whose function may run an operator of a framework. */
struct plumb_settle_operation {
	uint32_t code, offset;
	uint32_t frame; /* PLUMB_NONE: it runs none */
	bool redispatch;
};

/* Where a kernel was written; strings. */
struct plumb_settle_kernel_line {
	uint32_t name, file, line;
};

/* A code object in a process. */
struct plumb_settle_mapped {
	uint32_t process, code;
};

/* Samples of GPU program counters that agree in everything but their number. */
struct plumb_settle_sample {
	uint64_t module, offset, count;
	int64_t launch;           /* PLUMB_UNKNOWN */
	uint32_t function;        /* string: mangled */
	uint32_t reason;          /* string: the vendor's word without prefix and suffix */
	uint32_t process, device; /* the device's ordinal until the region's end */
	uint32_t call;            /* context of the driver call, or PLUMB_NONE */
	bool marked;              /* no warp issued */
};

/* How a process sampled, as PLUMB_RECORD_STALLS says. */
struct plumb_settle_sampling {
	uint32_t process;
	uint64_t bare, marked, told, dropped, system;
};

/* A module of GPU code that a process loaded. */
struct plumb_settle_gpu_module {
	uint64_t id, hash;
	uint32_t folder, process;
	bool kept; /* its file should be there */
};

/* How long a kernel ran at a context, on a track. */
struct plumb_settle_kernel_time {
	uint32_t context, track;
	uint32_t name; /* string: the kernel's */
	int64_t ns;
};

struct plumb_settle_stalls {
	PLUMB_VEC(struct plumb_settle_sample) samples;
	PLUMB_VEC(struct plumb_settle_sampling) samplings;
	PLUMB_VEC(struct plumb_settle_gpu_module) modules;
	PLUMB_VEC(struct plumb_settle_kernel_time) times;
	uint64_t count; /* of all samples */
};

/* A rank's communicator of a communication library. */
struct plumb_settle_communicator {
	uint64_t id;   /* the same for all ranks of a group; 0: not known */
	uint32_t name; /* string or PLUMB_NONE */
	int64_t size, rank;
	uint32_t process, device; /* PLUMB_NONE: not known */
	uint32_t group, ranks;    /* strings, once all regions are read */
};
struct plumb_settle_collective {
	struct plumb_collective row; /* but for the group */
	uint32_t communicator;
};
/* Operations that agree in all but their number. */
struct plumb_settle_told {
	uint32_t context, communicator, kind;
	uint32_t from_object, to_object; /* of the settler's traffic, or PLUMB_NONE */
	int64_t peer;                    /* rank in the group, or PLUMB_UNKNOWN */
	uint64_t calls;
	int64_t bytes;
};
struct plumb_settle_communication {
	PLUMB_VEC(struct plumb_settle_communicator) communicators;
	PLUMB_VEC(struct plumb_settle_collective) collectives;
	PLUMB_VEC(struct plumb_settle_told) told;
};

/* An OBJECT record. */
struct plumb_settle_object {
	struct plumb_object row; /* without `within` */
	uint32_t within;         /* an index of these, or PLUMB_NONE; that one has none */
	uint32_t number;         /* row in the profile, or PLUMB_NONE */
};

/* An allocation. */
struct plumb_settle_object_range {
	uint32_t object;
	uint64_t address;
	int64_t bytes, start, end;
	uint64_t key;
};

/* A TRANSFER record. Objects are indexes. */
struct plumb_settle_transfer {
	struct plumb_transfer_row row;
	uint64_t module; /* 0: no code */
	uint32_t name;   /* string: the function's */
};

struct plumb_settle_traffic {
	PLUMB_VEC(struct plumb_settle_object) objects;
	PLUMB_VEC(struct plumb_settle_object_range) ranges;
	PLUMB_VEC(struct plumb_object_bin) bins; /* objects are indexes */
	PLUMB_VEC(struct plumb_settle_transfer) transfers;
};

struct plumb_settler {
	struct plumb_builder *builder;
	struct plumb_settle_stalls stalls;
	struct plumb_settle_communication communication;
	struct plumb_settle_traffic traffic;
	PLUMB_VEC(struct plumb_settle_context) contexts;
	PLUMB_VEC(struct plumb_settle_device) devices;
	PLUMB_VEC(struct plumb_settle_process) processes; /* beside the builder's */
	PLUMB_VEC(struct plumb_settle_run) runs;          /* by folder */
	PLUMB_VEC(struct plumb_settle_share) shares;
	PLUMB_VEC(struct plumb_settle_ring) rings;
	PLUMB_VEC(struct plumb_settle_interval) intervals;
	PLUMB_VEC(struct plumb_settle_fact) facts;
	PLUMB_VEC(struct plumb_device_link) links;
	PLUMB_VEC(char) warnings;
	struct plumb_map device_map;
	PLUMB_VEC(struct plumb_settle_code) codes;
	PLUMB_VEC(struct plumb_settle_site) sites;
	PLUMB_VEC(struct plumb_settle_mapped) mapped;
	PLUMB_VEC(uint32_t) site_frames;
	PLUMB_VEC(struct plumb_settle_operation) operations;
	struct plumb_map operation_map;
	uint32_t single_frame; /* of a node without a code object */
	struct plumb_map code_map, site_map;
	struct plumb_symbolizer *symbolizer;     /* once it is needed */
	PLUMB_VEC(struct plumb_origin) captures; /* origins of graphs' frames */
	struct plumb_inductor_log compiled;
	PLUMB_VEC(struct plumb_settle_kernel_line) kernel_lines;
	uint32_t serial;   /* regions so far */
	uint64_t captured; /* values */
	bool no_memory;
};

/* A line through readings of a clock: monotonic = t + offset + slope * (t - reference). */
struct plumb_settle_line {
	plumb_id device; /* 0: of the process */
	int64_t reference, offset;
	double slope;
	int64_t residual, readings;
};

struct plumb_settle_reading {
	plumb_id device;
	int64_t monotonic, realtime, gpu; /* PLUMB_UNKNOWN where not read */
	int64_t uncertainty;
};

/* What a context allocated of a pool, over all threads. */
struct plumb_settle_share_of_memory {
	uint32_t context, track;
	struct plumb_stat allocated, freed;
	int64_t held, peak;
};

/* A device's memory. */
struct plumb_settle_pool {
	uint32_t track;
	const struct plumb_record_memory_pool *record;
	int64_t peak;
};

#define PLUMB_SETTLE_METRICS 256u /* a process does not have more metrics of its own */

/* One region while it is settled. */
struct plumb_settle_region {
	struct plumb_settler *settler;
	const struct plumb_region_reader *reader;
	uint32_t folder, serial;
	bool is_run;      /* the one that `plumb run` wrote */
	uint32_t process; /* PLUMB_NONE for that one */
	uint32_t *known;  /* by id: what it became in the builder, + 1 */
	int64_t ledger[PLUMB_SOURCE_COUNT][PLUMB_FATE_COUNT];
	int64_t seen; /* the latest time in it */
	uint64_t replays;
	uint32_t samples; /* how many samples of stalls there were before this region */
	bool traffic;     /* it has objects or transfers */
	/* The program's own metrics: number in the region - PLUMB_METRIC_USER → in the builder; 0
	 * none */
	uint32_t metrics[PLUMB_SETTLE_METRICS];
	PLUMB_VEC(plumb_id) stack;
	PLUMB_VEC(struct plumb_settle_reading) readings;
	PLUMB_VEC(struct plumb_settle_line) lines; /* of GPU clocks */
	PLUMB_VEC(struct plumb_settle_share_of_memory) memory;
	PLUMB_VEC(struct plumb_settle_pool) pools;
	struct plumb_map memory_map;
};

/* ---- settle.c ---- */
bool plumb_settler_init(struct plumb_settler *settler, uint32_t folders);
void plumb_settler_free(struct plumb_settler *settler);
/* Everything that needs all regions to be there, and the profile. PLUMB_EEMPTY as plumb_settle. */
int plumb_settler_finish(struct plumb_settler *settler, const struct plumb_settle_options *options,
                         struct plumb_profile *profile, struct plumb_error *error);
void plumb_settle_warn(struct plumb_settler *settler, const char *format, ...) PLUMB_PRINTF(2, 3);

/* ---- control.c ---- */
/* Takes in the control file PATH of FOLDER, if it has one. */
void plumb_settle_control(struct plumb_settler *settler, uint32_t folder, const char *path);
/* Call it once all runs are complete: how long recording was on in runs in which it was off at
 * times. */
void plumb_settle_recorded(struct plumb_settler *settler);

/* ---- folders.c ---- */
int plumb_settle_folders(struct plumb_settler *settler, const char *const *folders, uint32_t count,
                         const struct plumb_settle_options *options, struct plumb_error *error);

/* ---- region.c ---- */
/* Takes an open region in. False: no memory (kept in the settler). */
bool plumb_settle_one(struct plumb_settler *settler, const struct plumb_region_reader *reader,
                      uint32_t folder, bool is_run);

/* ---- tree.c ---- */
#define PLUMB_SETTLE_NOTHING (UINT32_MAX - 1) /* in `known`: it was looked at, and it is nothing */
/* PLUMB_NONE for no string. */
uint32_t plumb_settle_string(struct plumb_settle_region *region, plumb_id id);
/* The context of a node; 0 is the root's. PLUMB_NONE: there is no node. */
uint32_t plumb_settle_node(struct plumb_settle_region *region, plumb_id id);
/* The devices between which the node of a copy moves something. */
struct plumb_ends plumb_settle_ends(struct plumb_settle_region *region, plumb_id node);
void
plumb_settle_value(struct plumb_settle_region *region, const struct plumb_record_value *record);
/* Before all values. */
void
plumb_settle_metric(struct plumb_settle_region *region, const struct plumb_record_metric *record);
void
plumb_settle_variant(struct plumb_settle_region *region, const struct plumb_record_variant *record);
void
plumb_settle_shape(struct plumb_settle_region *region, const struct plumb_record_shape *record);
void
plumb_settle_origin(struct plumb_settle_region *region, const struct plumb_record_origin *record);

/* The builder's number of a metric in the region; 0: unknown. */
uint32_t plumb_settle_metric_of(const struct plumb_settle_region *region, uint32_t number);
/* A variant without a place and numbers. */
struct plumb_variant plumb_settle_kernel_shape(const struct plumb_record_variant *record);
struct plumb_variant plumb_settle_operator_shape(uint32_t shapes);

/* ---- copies.c ---- */
/* Reads what `plumb run` noted in the folder. */
void plumb_settle_copies_read(struct plumb_settler *settler, const char *folder, uint32_t number);
/* The same with the SIZE BYTES of a file (malloced), which belong to the settler after that. False:
 * they are damaged. */
bool
plumb_settle_copies_take(struct plumb_settler *settler, char *bytes, size_t size, uint32_t number);
void plumb_settle_copies_free(struct plumb_settle_copies *copies);
/* After all regions: says so if there is no such file, and nothing says why. */
void plumb_settle_copies_miss(struct plumb_settler *settler, const char *folder, uint32_t number);
/* After the region's records: its process gets the parts of the run. */
void plumb_settle_copies(struct plumb_settle_region *region);

/* ---- native.c ---- */
/* The frames of a native node, outermost first: how many, and *FRAMES (valid until the next call).
 * 0: no memory, kept in the settler. */
uint32_t plumb_settle_native(struct plumb_settle_region *region,
                             const struct plumb_record_node *node, const uint32_t **frames);
/* The code object, in the settler's codes, of a native node. PLUMB_NONE: there is none. */
uint32_t
plumb_settle_native_code(struct plumb_settle_region *region, const struct plumb_record_node *node);
/* At the very end: rows for the code objects, a line for what was fetched. */
void plumb_settle_code_objects(struct plumb_settler *settler);
void plumb_settle_native_free(struct plumb_settler *settler);

/* ---- operations.c ---- */
/* The frame of the operator that the function of a native node runs. PLUMB_NONE: it runs none, or
 * goes on with one that is the innermost among ABOVE, the context above, and what called it. */
uint32_t plumb_settle_operation(struct plumb_settle_region *region,
                                const struct plumb_record_node *node, uint32_t above);
void plumb_settle_operations_free(struct plumb_settler *settler);

/* ---- provenance.c ---- */
/* Takes in the compiler's logs in the folder PATH that processes of the run FOLDER wrote;
 * UINT32_MAX: any run's. */
void plumb_settle_compile_logs(struct plumb_settler *settler, const char *path, uint32_t folder);
/* The same in the folder that the user of the program chose. */
void plumb_settle_users_logs(struct plumb_settler *settler);
/* When all contexts are there: gives kernels of compiled code their origins. */
void plumb_settle_provenance(struct plumb_settler *settler);

/* ---- kernel_lines.c ---- */
void plumb_settle_gpu_lines(struct plumb_settle_region *region,
                            const struct plumb_record_gpu_lines *record);
/* At the very end: kernels' frames say where they were written. */
void plumb_settle_kernel_lines(struct plumb_settler *settler);

/* ---- stalls.c ---- */
void
plumb_settle_sample(struct plumb_settle_region *region, const struct plumb_record_sample *record);
void
plumb_settle_sampling(struct plumb_settle_region *region, const struct plumb_record_stalls *record);
void plumb_settle_gpu_module(struct plumb_settle_region *region,
                             const struct plumb_record_gpu_code *record);
/* The devices of the region by ordinal; PLUMB_NONE: there is none. */
#define PLUMB_SETTLE_ORDINALS 64u
void
plumb_settle_ordinals(struct plumb_settle_region *region, uint32_t ordinals[PLUMB_SETTLE_ORDINALS]);
/* At the region's end: which devices its samples are of. */
void plumb_settle_sampled(struct plumb_settle_region *region);
/* When all contexts are there: rows of code and of samples, and values of contexts. */
void plumb_settle_stalls(struct plumb_settler *settler);
void plumb_settle_stalls_free(struct plumb_settler *settler);

/* ---- communication.c ---- */
/* A COMMUNICATOR, in the settler's list; PLUMB_NONE: there is none. */
uint32_t plumb_settle_communicator(struct plumb_settle_region *region, plumb_id id);
void plumb_settle_collective(struct plumb_settle_region *region,
                             const struct plumb_record_collective *record);
void plumb_settle_operations_told(struct plumb_settle_region *region, const uint32_t *ordinals,
                                  const struct plumb_record_communication *record);
/* When all regions were read, before plumb_settle_traffic: rows of collectives, and transfers. */
void plumb_settle_communications(struct plumb_settler *settler);
void plumb_settle_communications_free(struct plumb_settler *settler);

/* ---- gpu_code.c ---- */
/* A function that was sampled: from here to its row, and what its module says about it. */
struct plumb_settle_function {
	uint64_t module;      /* as samples name it */
	uint32_t name;        /* string */
	uint32_t folder;      /* of a run that has the module's file */
	uint32_t process;     /* one that loaded it, for the ledger */
	uint64_t count;       /* samples */
	uint32_t row;         /* code function, or PLUMB_NONE */
	int64_t bytes;        /* PLUMB_UNKNOWN */
	bool kept;            /* its code has room in the profile */
	enum plumb_fate fate; /* ATTRIBUTED, or why its code is unknown */
	/* Lines by offset, ascending: each holds until the next one. Strings of the builder. */
	struct plumb_code_lines lines;
};
/* What is known of the function NAME of the module that a process calls ID. */
void plumb_settle_function_of(const struct plumb_settler *settler, uint64_t id, uint32_t name,
                              uint32_t process, struct plumb_settle_function *function);
/* Reads the modules of COUNT functions, which are ordered by module, and makes their rows. Those
 * with the most samples keep their code if not all may. */
void plumb_settle_gpu_functions(struct plumb_settler *settler,
                                struct plumb_settle_function *functions, uint32_t count);

/* ---- traffic.c ---- */
/* At the region's end: its objects and transfers, if it has some. */
void plumb_settle_region_traffic(struct plumb_settle_region *region);
/* The object that is the record ID, in the settler's list; PLUMB_NONE: it is none. */
uint32_t
plumb_settle_object(struct plumb_settle_region *region, const uint32_t *ordinals, plumb_id id);
/* When all contexts are there: rows of them. */
void plumb_settle_traffic(struct plumb_settler *settler);
void plumb_settle_traffic_free(struct plumb_settler *settler);

/* ---- tensors.c ---- */
/* Accesses to segments that certainly are accesses to one tensor become those of the tensor. Bins
 * and transfers name objects by their rows. JOINED[object]: what it has become. */
void plumb_settle_tensors(struct plumb_settler *settler, const uint32_t *joined);

/* ---- links.c ---- */
void plumb_settle_link(struct plumb_settle_region *region,
                       const struct plumb_record_device_link *record);
/* When all devices are known: rows of the links that they have. */
void plumb_settle_links(struct plumb_settler *settler);

/* ---- stall_values.c ---- */
/* Samples of one place and reason. */
struct plumb_settle_stall {
	const struct plumb_settle_function *function;
	uint32_t process, device, reason, call;
	int64_t offset;
	uint64_t count;
};
/* Before the next two: puts the times of kernels in order. */
void plumb_settle_kernel_times(struct plumb_settler *settler);
/* Divides them among the contexts of their kernels. */
void plumb_settle_stall_values(struct plumb_settler *settler,
                               const struct plumb_settle_stall *stalls, uint32_t count);
/* The one context of the kernel NAME (a string) at or below the driver call at the context CALL; or
 * PLUMB_NONE: there is none, or more than one. */
uint32_t plumb_settle_kernel_of(const struct plumb_settler *settler, uint32_t call, uint32_t name);

/* ---- tracks.c ---- */
void plumb_settle_process(struct plumb_settle_region *region);
/* The track of a THREAD, STREAM or MEMORY_POOL record, the device of a DEVICE record, or
 * PLUMB_NONE. */
uint32_t plumb_settle_track(struct plumb_settle_region *region, plumb_id id);
uint32_t plumb_settle_device(struct plumb_settle_region *region, plumb_id id);
/* "GPU-" and the UUID, as the driver's tools print it. PLUMB_NONE: it is not known. */
uint32_t plumb_settle_uuid(struct plumb_builder *builder, const uint8_t uuid[16]);

/* ---- clocks.c ---- */
void
plumb_settle_reading(struct plumb_settle_region *region, const struct plumb_record_clock *record);
/* After all readings. */
void plumb_settle_lines(struct plumb_settle_region *region);
/* The line of the device's clock. If it has none, the line of the process's GPU clock, or NULL. */
const struct plumb_settle_line *
plumb_settle_line_of(const struct plumb_settle_region *region, plumb_id device);
/* The monotonic time of TIME on the clock. PLUMB_UNKNOWN: it cannot be known (LINE may be NULL). */
int64_t plumb_settle_time(const struct plumb_settle_line *line, uint64_t time);
/* Stores the line of a device. DEVICE is its number in the region. */
void plumb_settle_clock(struct plumb_settle_region *region, plumb_id id, uint32_t device);

/* ---- gpu.c ---- */
void plumb_settle_total(struct plumb_settle_region *region,
                        const struct plumb_record_device_total *record);
void
plumb_settle_ring(struct plumb_settle_region *region, const struct plumb_record_work_ring *record);
void
plumb_settle_series(struct plumb_settle_region *region, const struct plumb_record_series *record);
void plumb_settle_counter_series(struct plumb_settle_region *region,
                                 const struct plumb_record_counter_series *record);
/* Adds a value of GPU work to the tally of its device. */
void plumb_settle_tally(struct plumb_settle_region *region, const struct plumb_value *value);
/* At the region's end: if a device's totals were torn, it gets the sums of its values. */
void plumb_settle_tallies(struct plumb_settle_region *region);
/* At the very end: busy time of every device. */
void plumb_settle_busy(struct plumb_settler *settler);

/* ---- memory.c ---- */
/* The track of a MEMORY_POOL record. */
uint32_t plumb_settle_pool(struct plumb_settle_region *region,
                           const struct plumb_record_memory_pool *record);
void
plumb_settle_memory(struct plumb_settle_region *region, const struct plumb_record_memory *record);
void plumb_settle_memory_series(struct plumb_settle_region *region,
                                const struct plumb_record_memory_series *record);
/* At the region's end: what all threads did together. */
void plumb_settle_memories(struct plumb_settle_region *region);
/* ---- spans.c ---- */

/* A span as the region has it, with its times on the host's clock. */
struct plumb_settle_span {
	int64_t start, end;
	uint32_t context, track;
	plumb_id node;
	uint64_t correlation, bytes;
	struct plumb_ends ends;
	bool started; /* made by a call that had returned: other spans may cross it */
};
struct plumb_settle_trace;
/* Takes all spans of the region in, after its records. */
void plumb_settle_spans(struct plumb_settle_region *region);
/* Calls TAKE with each whole span of the region, in the order of the file; false ends it. */
bool
plumb_settle_each_span(struct plumb_settle_region *region, const struct plumb_settle_trace *trace,
                       bool (*take)(void *data, const struct plumb_settle_span *span), void *data);
/* The same for each note that says who waits for whom. */
bool
plumb_settle_each_note(struct plumb_settle_region *region,
                       bool (*take)(void *data, const struct plumb_note_entry *note), void *data);
/* The same for each sample of CPU time. SAMPLE is NULL if the sample is damaged. */
bool
plumb_settle_each_sample(struct plumb_settle_region *region, const struct plumb_settle_trace *trace,
                         bool (*take)(void *data, const struct plumb_cpu_sample *sample),
                         void *data);
/* ---- samples.c ---- */
/* Takes in what was sampled after CUTOFF; of the OVERWRITTEN entries of all kinds, returns how many
 * were samples. */
uint64_t
plumb_settle_samples(struct plumb_settle_region *region, const struct plumb_settle_trace *trace,
                     int64_t cutoff, uint64_t overwritten);
/* ---- waits.c ---- */
/* Takes the notes in, of a trace that has some. */
void plumb_settle_waits(struct plumb_settle_region *region, const struct plumb_settle_trace *trace);

/* ---- iterations.c ---- */
/* The end of the part before the last COUNT iterations, by the rule of docs/run.md. INT64_MIN:
 * there is no such part. PLUMB_SETTLE_NO_ITERATIONS: no iterations were found. */
#define PLUMB_SETTLE_NO_ITERATIONS INT64_MAX
int64_t plumb_settle_iterations(struct plumb_settle_region *region,
                                const struct plumb_settle_trace *trace, uint32_t count);

/* ---- ledger.c ---- */
/* Counts for the region's process. */
void plumb_settle_count(struct plumb_settle_region *region, enum plumb_source source,
                        enum plumb_fate fate, const char *detail, uint64_t count);
void
plumb_settle_ledger(struct plumb_settle_region *region, const struct plumb_record_ledger *record);
void plumb_settle_overhead(struct plumb_settle_region *region,
                           const struct plumb_record_overhead *record);
/* At the region's end, with the number of records that were read. */
void plumb_settle_balance(struct plumb_settle_region *region, uint64_t records);

/* ---- environment.c ---- */
void plumb_settle_fact(struct plumb_settle_region *region,
                       const struct plumb_record_environment *record);
void plumb_settle_environment(struct plumb_settler *settler);

/* ---- numbers of untrusted input ---- */

static inline int64_t
plumb_settle_number(uint64_t number)
{
	return number > INT64_MAX ? PLUMB_UNKNOWN : (int64_t)number;
}

static inline int64_t
plumb_settle_number32(uint32_t number)
{
	return number == UINT32_MAX ? PLUMB_UNKNOWN : (int64_t)number;
}

/* A + B for numbers ≥ 0; stops at the greatest. */
static inline int64_t
plumb_settle_sum(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

#endif
