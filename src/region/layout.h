/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region: the mapped file that the collector writes while a program runs and settle reads.
 *
 *   header page | chunk | chunk | …          (chunks are PLUMB_CHUNK_SIZE or a multiple of it)
 *   chunk:  chunk header | record | record | …
 *   record: {type, flags, length} | payload  (8-byte aligned, length counts the head)
 *
 * - Each chunk belongs to one arena, and an arena has one writer at a time, so nothing is locked.
 *   A chunk's `used` is stored with release order after a record is complete: a reader sees whole
 *   records only, whenever the writer died. Records are never moved or freed.
 * - An id is the offset of a record's head in the region, in units of 8 bytes; 0 is "none". Ids may
 *   point into any arena.
 * - Values, variants, tallies, work rings, device totals and memory are updated in place. Each
 *   carries a sequence word that is odd while it is written; a torn one is counted, not used.
 * - Readers skip record types and trailing fields that they do not know: a record may grow at its
 *   end, `length` tells how far it goes. Everything in a region is untrusted input to a reader.
 * - Numbers are little endian, times CLOCK_MONOTONIC nanoseconds, sizes bytes. The times of GPU
 *   work (WORK_RING, DEVICE_TOTAL, SERIES, SPAN on a stream) are the GPU runtime's own, as
 *   plumb_record_clock.gpu reads them: settle converts them with the line through the readings.
 *   Those of a SPAN on a thread are ticks, which settle converts by plumb_record_ticks.
 */
#ifndef PLUMB_REGION_LAYOUT_H
#define PLUMB_REGION_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#include "region/python.h"

#define PLUMB_REGION_MAGIC "PLUMBRG\n"
#define PLUMB_REGION_VERSION 1
#define PLUMB_REGION_ENDIAN 0x01020304u
#define PLUMB_REGION_HEADER_SIZE 4096u
#define PLUMB_CHUNK_SIZE 65536u
#define PLUMB_CHUNK_MAGIC 0x4b484350u /* "PCHK" */
#define PLUMB_REGION_SUFFIX ".region"
#define PLUMB_REFUSAL_SUFFIX ".off" /* beside regions: why a process could not make one, as text */
#define PLUMB_COMPILE_LOGS                                                                         \
	"torch_trace"           /* the folder beside them that PyTorch logs its compiler in */
#define PLUMB_STRING_MAX 32768u /* a longer string is cut there */

typedef uint32_t plumb_id; /* offset of a record in the region / 8; 0 is none */

enum plumb_region_state {
	PLUMB_REGION_RECORDING = 1,
	PLUMB_REGION_ENDED = 2, /* the exit hook ran to its end: everything was flushed */
};

/* What no arena could count, of one source of the ledger. */
#define PLUMB_REGION_SOURCES 64u
struct plumb_region_lost {
	_Atomic uint64_t received, attributed;
	_Atomic uint64_t full;     /* lost since the region is full … */
	_Atomic uint64_t no_space; /* … or since the file system is */
};

struct plumb_region_header {
	char magic[8];
	uint32_t version;     /* of the writer */
	uint32_t min_version; /* a reader older than this must refuse */
	uint32_t endian;
	uint32_t header_size;
	uint32_t chunk_size;
	uint32_t pid;
	uint64_t size; /* the file's: the memory cap */
	uint64_t start_monotonic;
	uint64_t start_realtime;
	_Atomic uint64_t next; /* offset of the first byte that no chunk has */
	_Atomic uint32_t state;
	/* `plumb run` increments flush_wanted; the collector flushes GPU records and then stores
	 * the number it served in flush_done. */
	_Atomic uint32_t flush_wanted;
	_Atomic uint32_t flush_done;
	_Atomic uint32_t flush_served; /* 1: a thread of the process serves flush_wanted */
	/* Records of no known source that no arena could count: region full */
	_Atomic uint64_t lost_full;
	_Atomic uint64_t lost_no_space; /* likewise: no space left on the device */
	/* process start time of /proc/PID/stat: tells a reused pid */
	uint64_t start_boottime_ticks;
	_Atomic uint64_t end_monotonic; /* 0 until the end */
	_Atomic uint32_t newest_thread; /* THREAD record, or 0 */
	/* 1: the recording began only so that `plumb run` can look at the main thread (host.time).
	 * If nothing else was recorded, the process is none of the profile's. */
	uint32_t for_looks;
	struct plumb_region_python python;
	struct plumb_region_lost lost[PLUMB_REGION_SOURCES]; /* by enum plumb_source */
	/* Bytes of files that the process made beside the region (code.h). They count against the
	 * limit, so the region may not take them as well. */
	_Atomic uint64_t beside;
};
_Static_assert(sizeof(struct plumb_region_header) <= PLUMB_REGION_HEADER_SIZE, "header fits");

struct plumb_chunk_header {
	uint32_t magic;
	uint32_t arena; /* numbered from 1 */
	uint32_t size;  /* bytes, this header counted */
	uint32_t pad;
	_Atomic uint32_t used; /* bytes of whole records after this header */
	uint32_t pad2;
};
_Static_assert(sizeof(struct plumb_chunk_header) == 24, "chunk header");

enum plumb_record_type {
	PLUMB_RECORD_NODE = 1,
	PLUMB_RECORD_VALUE = 2,
	PLUMB_RECORD_VARIANT = 3,
	PLUMB_RECORD_ORIGIN = 4,
	PLUMB_RECORD_SPAN = 5,
	PLUMB_RECORD_SAMPLE = 6, /* of GPU program counters */
	PLUMB_RECORD_TRANSFER = 7,
	PLUMB_RECORD_OBJECT = 8,
	PLUMB_RECORD_CODE = 9, /* a mapped code object that native frames lie in */
	PLUMB_RECORD_CLOCK = 10,
	PLUMB_RECORD_PROCESS = 11,
	PLUMB_RECORD_STRING = 12,
	PLUMB_RECORD_LEDGER = 13,
	PLUMB_RECORD_THREAD = 14,
	PLUMB_RECORD_DEVICE = 15,
	PLUMB_RECORD_STREAM = 16,
	PLUMB_RECORD_ENVIRONMENT = 17,
	PLUMB_RECORD_WORK_RING = 18,
	PLUMB_RECORD_DEVICE_TOTAL = 19,
	PLUMB_RECORD_OVERHEAD = 20,
	PLUMB_RECORD_SERIES = 21,
	PLUMB_RECORD_SHAPE = 22,
	PLUMB_RECORD_METRIC = 23,
	PLUMB_RECORD_MEMORY = 24,
	PLUMB_RECORD_MEMORY_POOL = 25,
	PLUMB_RECORD_GPU_LINES = 26,
	PLUMB_RECORD_MEMORY_SERIES = 27,
	PLUMB_RECORD_GPU_CODE = 28,
	PLUMB_RECORD_STALLS = 29,
	PLUMB_RECORD_OBJECT_RANGE = 30,
	PLUMB_RECORD_OBJECT_BIN = 31,
	PLUMB_RECORD_COLLECTIVE = 32,
	PLUMB_RECORD_COMMUNICATOR = 33,
	PLUMB_RECORD_COMMUNICATION = 34,
	PLUMB_RECORD_DEVICE_LINK = 35,
	PLUMB_RECORD_COUNTER_SERIES = 36,
};

struct plumb_record {
	uint16_t type;
	uint16_t flags;
	uint32_t length; /* bytes, this head counted; a multiple of 8 */
};
_Static_assert(sizeof(struct plumb_record) == 8, "record head");

/* A string's bytes follow; `bytes` says how many. A zero follows them, for the collector's own
 * use. */
struct plumb_record_string {
	struct plumb_record head;
	uint32_t bytes;
	uint32_t pad;
	/* char text[bytes] */
};

/* A context. The fields from `kind` to `line` are the frame's identity, see the design:
 *   python: name = function, file, line     operator, range, gpu_api, collective, library: name
 *   module: name = qualified name, file = class, line = number of the call from the second on
 *   kernel: name = mangled name             copy, set: name, e.g. "copy pageable→device"
 *   native: name = the code object's path, file = id of its CODE record (no string), line = the
 *           call's offset in it, as plumb_record_code tells. Code that no file holds (a
 *           compiler's at run time): name = "[generated code]", file and line 0. With the flag
 *           INTERRUPTED it is no call but an instruction that a sample met: settle puts those of
 *           one function together
 * Flags are PLUMB_CONTEXT_*. A parent of 0 is the root. */
struct plumb_record_node {
	struct plumb_record head;
	plumb_id parent;
	uint8_t kind;  /* enum plumb_frame_kind */
	uint8_t flags; /* PLUMB_CONTEXT_* */
	uint16_t pad;
	plumb_id name;
	plumb_id file;
	uint32_t line;
	plumb_id first_value;   /* chain of the values that the owner arena keeps on this node */
	plumb_id first_variant; /* likewise the variants */
	uint32_t pad2;
};
_Static_assert(sizeof(struct plumb_record_node) == 40, "node");

/* A NODE record of a copy between two devices; its flags have PLUMB_CONTEXT_ENDS. One context has a
 * node for each pair of devices, so values and spans at it have no ends of their own. */
struct plumb_record_copy {
	struct plumb_record_node node;
	plumb_id from, to; /* DEVICE records */
};
_Static_assert(sizeof(struct plumb_record_copy) == 48, "copy");

/* Observations put together. */
struct plumb_observations {
	int64_t sum;
	uint64_t count;
	int64_t min;
	int64_t max;
	double mean;
	double m2;
};

/* One metric at one node on one track (a THREAD, STREAM or MEMORY_POOL record). */
struct plumb_record_value {
	struct plumb_record head;
	plumb_id node;
	plumb_id track;
	uint16_t metric;
	uint16_t pad;
	plumb_id next;
	_Atomic uint32_t sequence;
	uint32_t pad2;
	union {
		struct plumb_observations moments;
		struct {
			int64_t sum;
			uint64_t count;
			int64_t min;
			int64_t max;
			double mean;
			double m2;
		};
	};
};
_Static_assert(sizeof(struct plumb_record_value) == 80, "value");

/* A kernel's launch configuration at a node, with how often and how long. */
struct plumb_record_variant {
	struct plumb_record head;
	plumb_id node;
	plumb_id track;
	plumb_id next;
	_Atomic uint32_t sequence;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t registers;      /* a thread */
	uint32_t static_shared;  /* bytes a block */
	uint32_t dynamic_shared; /* bytes a block */
	uint32_t occupancy;      /* theoretical, parts per million; UINT32_MAX unknown */
	uint64_t count;
	int64_t time; /* ns, sum */
	int64_t min;
	int64_t max;
};
_Static_assert(sizeof(struct plumb_record_variant) == 96, "variant");

/* The shapes of an operator's inputs and outputs, or of a module's output, at a node: how often,
 * and how long (an operator's own time, a module's from its first operator to its last). */
struct plumb_record_shape {
	struct plumb_record head;
	plumb_id node;
	plumb_id track;
	plumb_id next;
	_Atomic uint32_t sequence;
	plumb_id text;
	uint32_t hash; /* of the text; the collector's own */
	uint64_t count;
	int64_t time; /* ns, sum */
	int64_t min;
	int64_t max;
};
_Static_assert(sizeof(struct plumb_record_shape) == 64, "shape");

enum plumb_origin_kind {
	PLUMB_ORIGIN_BACKWARD_CALL = 1, /* node is backward work, origin the context that called
	                                   backward */
	PLUMB_ORIGIN_GRAPH_CAPTURE = 2,
	PLUMB_ORIGIN_FUSED = 3,
	PLUMB_ORIGIN_INLINED = 4,
};

/* A second context that explains the first. */
struct plumb_record_origin {
	struct plumb_record head;
	plumb_id node;
	plumb_id origin;
	uint16_t kind; /* enum plumb_origin_kind */
	uint16_t pad[3];
};

/* A mapped code object: the program, a library or the vDSO, one record for each address that it was
 * loaded at. A native frame's offset is address - bias: the address of the call as the object's own
 * symbol and line tables have it. The address is of the calling instruction's last byte (the return
 * address - 1), or of the very instruction where the code was interrupted by a signal. */
struct plumb_record_code {
	struct plumb_record head;
	plumb_id path;           /* absolute; "linux-vdso.so.1" and the like have no file */
	uint32_t build_id_bytes; /* 0: it has none */
	uint8_t build_id[32];    /* cut there */
	uint64_t bias;           /* what the loader added to the object's own addresses */
	uint64_t start, end;     /* where it was mapped */
};
_Static_assert(sizeof(struct plumb_record_code) == 72, "code");

/* A host thread. Its name is read again when the process ends. A flag: it is plumb's own, so that
 * its waiting is nobody's. */
#define PLUMB_THREAD_OWN 1u
struct plumb_record_thread {
	struct plumb_record head;
	uint32_t tid;
	plumb_id name; /* 0 unknown */
	uint64_t start;
	uint64_t end; /* 0 while it lives */
	/* While waiting is recorded: the node of the operator it is in, 0 none, UINT32_MAX where
	 * its waiting is measured by itself. */
	_Atomic uint32_t current;
	plumb_id before; /* the THREAD record that was the newest when this one was made */
	/* While waiting is recorded: addresses in the process. */
	_Atomic uint64_t python; /* the thread's Python thread state as last seen, 0 none */
	uint64_t self;           /* its pthread_self(); 0: not looked for Python yet */
	_Atomic uint64_t waited; /* ns of waiting that were measured where they were, so far */
	/* ns for which it had computed or been ready to, by the kernel's account … */
	uint64_t awake;
	_Atomic uint64_t awake_at; /* … when it was met; 0: unknown */
	uint64_t awake_end;        /* the same at its end; 0: unknown */
};

/* A GPU. UINT32_MAX and UINT64_MAX mean unknown. */
struct plumb_record_device {
	struct plumb_record head;
	uint32_t ordinal; /* as the process sees it */
	plumb_id name;
	uint8_t uuid[16];
	uint32_t capability_major, capability_minor;
	uint32_t multiprocessors;
	uint32_t warps_per_multiprocessor;
	uint32_t clock_khz, memory_clock_khz;
	uint64_t memory_bytes;
};

/* A stream of a device: the track of GPU work. */
struct plumb_record_stream {
	struct plumb_record head;
	plumb_id device;
	uint32_t context; /* the GPU runtime's number of its context */
	uint64_t stream;  /* its number of the stream */
};

/* Simultaneous readings of the clocks. gpu is 0 where it was not read. */
struct plumb_record_clock {
	struct plumb_record head;
	plumb_id device; /* 0: of no device */
	uint32_t pad;
	uint64_t monotonic;
	uint64_t realtime;
	uint64_t gpu;         /* ns of the GPU runtime's clock */
	uint64_t uncertainty; /* ns: how long the reading took */
};

/* A CLOCK record that also read the counter which times callbacks. Written by --trace only. */
struct plumb_record_ticks {
	struct plumb_record_clock clock;
	uint64_t ticks;
	/* as calibrated at the start: ns a tick, 32.32 fixed point; 0: ticks are ns */
	uint64_t scale;
};

/* The process. Ranks are -1 where no launcher set them. */
struct plumb_record_process {
	struct plumb_record head;
	uint32_t pid, ppid;
	int32_t rank, local_rank;
	plumb_id command; /* argument vector joined by spaces, quoted as a shell would need */
	plumb_id host;
	plumb_id executable;
	uint32_t exit_known; /* 1 when exit_status holds (written by `plumb run` for its child) */
	int32_t exit_status; /* 0…255, or 128 + signal */
	uint32_t pad;
	uint64_t start_monotonic, end_monotonic; /* end 0 unknown */
};

/* A fact of the run's environment: key and value, e.g. "python.version". */
struct plumb_record_environment {
	struct plumb_record head;
	plumb_id key;
	plumb_id value;
};

/* A tally, kept by one arena for one (source, fate), added to in place. */
struct plumb_record_ledger {
	struct plumb_record head;
	uint16_t source; /* enum plumb_source */
	uint16_t fate;   /* enum plumb_fate */
	plumb_id detail; /* a string that says more, or 0 */
	_Atomic uint64_t count;
};

/* A metric that the program named: what values with this number are of. */
struct plumb_record_metric {
	struct plumb_record head;
	uint32_t number; /* PLUMB_METRIC_USER and up */
	plumb_id name;
	plumb_id unit; /* 0: none told */
	uint32_t pad;
};

/* Newest GPU work of a device, wrapping: entry i of the process is work[i % capacity]. */
struct plumb_work {
	plumb_id node;
	plumb_id stream;
	uint64_t start, end;
};
struct plumb_record_work_ring {
	struct plumb_record head;
	plumb_id device;
	uint32_t capacity;
	_Atomic uint64_t written; /* entries ever written; the newest may be torn after a crash */
				  /* struct plumb_work work[capacity] */
};

/* What an entry of a ring of spans is. The first three are notes of who waits for whom. */
enum plumb_entry_kind {
	PLUMB_ENTRY_EVENT = 1, /* the call recorded the event on the stream of `where` */
	/* The call waited for the event, in the stream of `where`, or on the host if that is
	 * NO_STREAM. */
	PLUMB_ENTRY_WAIT = 2,
	/* The call waited on the host for the stream of `where`; NO_STREAM: for all of its
	 * context. */
	PLUMB_ENTRY_SYNC = 3,
	PLUMB_ENTRY_SPAN,    /* an interval: `host` if its track is a THREAD, `work` if a STREAM */
	PLUMB_ENTRY_STARTED, /* `host`: a range that was started and ended (plumb_ranges_start). It
	                        is no call, and what begins inside it may end after it */
	PLUMB_ENTRY_SAMPLE,
};
#define PLUMB_SPAN_NO_STREAM UINT32_MAX

/* An interval of a thread. */
struct plumb_host_entry {
	uint64_t start, end; /* ticks */
	plumb_id node, track;
	uint64_t correlation; /* of a driver call that starts work, and of that work; 0 none */
};
/* Work on a stream. */
struct plumb_work_entry {
	uint64_t start, end; /* the GPU's clock */
	plumb_id node, track;
	uint32_t correlation;
	uint32_t size; /* of a copy or set: plumb_entry_size */
};
/* A sample of CPU time: TRACK, a thread, computed at NODE. */
struct plumb_sample_entry {
	uint64_t ns; /* how much CPU time it stands for */
	uint64_t at; /* ticks */
	plumb_id node, track;
	uint64_t mark; /* PLUMB_ENTRY_IS_SAMPLE */
};
struct plumb_note_entry {
	uint64_t where; /* the GPU runtime's number of the context, and below that of the stream */
	uint64_t event;
	uint32_t kind; /* enum plumb_entry_kind: less than the id of any node */
	uint32_t pad;  /* 0, where the others have a track */
	uint64_t correlation;
};
struct plumb_span_entry {
	union {
		struct plumb_host_entry host;
		struct plumb_work_entry work;
		struct plumb_sample_entry sample;
		struct plumb_note_entry note;
	};
};
_Static_assert(sizeof(struct plumb_span_entry) == 32, "entry of a ring of spans");

/* Correlations that no call has tell these kinds. */
#define PLUMB_ENTRY_IS_STARTED UINT64_MAX
#define PLUMB_ENTRY_IS_SAMPLE (UINT64_MAX - 1)

/* The one place that tells kinds apart. */
static inline enum plumb_entry_kind
plumb_entry_kind(const struct plumb_span_entry *entry)
{
	if (!entry->note.pad && entry->note.kind >= PLUMB_ENTRY_EVENT &&
	    entry->note.kind <= PLUMB_ENTRY_SYNC)
		return (enum plumb_entry_kind)entry->note.kind;
	return entry->host.correlation == PLUMB_ENTRY_IS_SAMPLE    ? PLUMB_ENTRY_SAMPLE
	       : entry->host.correlation == PLUMB_ENTRY_IS_STARTED ? PLUMB_ENTRY_STARTED
	                                                           : PLUMB_ENTRY_SPAN;
}

/* How many BYTES a copy or set has moved: exact below 2 GiB, and above if they are whole pages of
 * 4 KiB. Others are unknown, 0. */
#define PLUMB_ENTRY_IN_PAGES (UINT32_C(1) << 31)
static inline uint32_t
plumb_entry_size(uint64_t bytes)
{
	if (bytes < PLUMB_ENTRY_IN_PAGES)
		return (uint32_t)bytes;
	return bytes % 4096 || bytes / 4096 >= PLUMB_ENTRY_IN_PAGES
	               ? 0
	               : (uint32_t)(bytes / 4096) | PLUMB_ENTRY_IN_PAGES;
}
static inline uint64_t
plumb_entry_bytes(uint32_t size)
{
	return size & PLUMB_ENTRY_IN_PAGES ? (uint64_t)(size & ~PLUMB_ENTRY_IN_PAGES) * 4096 : size;
}

/* A piece of a ring of spans. A thread that writes spans has one or more; when all are full it
 * begins its oldest again, so that what a piece holds is of one round. */
struct plumb_record_span {
	struct plumb_record head;
	plumb_id next; /* the ring's next piece, the oldest after the newest */
	uint32_t capacity;
	_Atomic uint64_t state;   /* rounds before this one << 32 | whole entries of this one */
	uint64_t keep_ns;         /* what was asked for: the last so many ns, … */
	uint32_t keep_iterations; /* … or iterations; both 0: all */
	uint32_t pad;
	/* struct plumb_span_entry entries[capacity] */
};

/* Exact totals of a device: counts, and busy time by interval union, merged online. `open` holds
 * the newest disjoint busy intervals, ascending; older ones are folded into busy_ns and horizon. */
#define PLUMB_BUSY_OPEN 128
struct plumb_interval {
	uint64_t start, end;
};
struct plumb_record_device_total {
	struct plumb_record head;
	plumb_id device;
	_Atomic uint32_t sequence;
	uint64_t kernels, kernel_ns;
	uint64_t copies, copy_ns, copy_bytes;
	uint64_t sets, set_ns, set_bytes;
	uint64_t first_start, last_end;
	uint64_t busy_ns; /* of folded intervals */
	uint64_t horizon; /* end of the last folded interval */
	uint64_t late;    /* work that began before the horizon: its busy time may be missing */
	uint64_t open_count;
	struct plumb_interval open[PLUMB_BUSY_OPEN];
};

/* plumb's own time on one thread: one callback in 64 is timed, per kind. */
enum plumb_callback_kind {
	PLUMB_CALLBACK_OPERATOR_ENTER = 0,
	PLUMB_CALLBACK_OPERATOR_EXIT = 1,
	PLUMB_CALLBACK_GPU = 2,         /* driver calls and ranges */
	PLUMB_CALLBACK_GPU_RECORDS = 3, /* on the GPU runtime's own thread, not the program's */
	PLUMB_CALLBACK_SAMPLE = 4,
	PLUMB_CALLBACK_MEMORY = 5,
	PLUMB_CALLBACK_KINDS = 6,
};
struct plumb_record_overhead {
	struct plumb_record head;
	plumb_id thread;
	uint32_t pad;
	struct {
		uint64_t calls;
		uint64_t timed;
		uint64_t timed_ns;
		uint64_t empty_ns_x1000; /* calibrated cost of an empty callback, 1/1000 ns */
	} kinds[PLUMB_CALLBACK_KINDS];
};

/* A device's activity over the process's life: at most PLUMB_SERIES_BINS bins, whose width doubles
 * when they no longer reach. Bin i covers [start + i*width, start + (i+1)*width). */
#define PLUMB_SERIES_BINS 1024
struct plumb_record_series {
	struct plumb_record head;
	plumb_id device;
	_Atomic uint32_t sequence;
	uint64_t start;
	uint64_t width; /* ns */
	struct {
		uint64_t busy_ns; /* sum of durations that fall in the bin */
		uint32_t kernels;
		uint32_t copies; /* copies and sets */
	} bins[PLUMB_SERIES_BINS];
};

/* Where the kernels of a module of GPU code were written: four sections of its ELF image as they
 * are, one after the other (.debug_line, its relocations, .symtab and its names), and the bytes of
 * each. */
#define PLUMB_GPU_LINES_REL 1u /* in head.flags: relocations are Elf64_Rel, not Elf64_Rela */
struct plumb_record_gpu_lines {
	struct plumb_record head;
	uint32_t bytes[4];
	/* char sections[bytes[0] + …] */
};
_Static_assert(sizeof(struct plumb_record_gpu_lines) == 24, "GPU lines");

/* A module of GPU code that was loaded. Its image lies beside the region, in the file that
 * plumb_code_name(hash) names, if it could be kept. */
struct plumb_record_gpu_code {
	struct plumb_record head;
	uint64_t id;    /* as samples name the module */
	uint64_t hash;  /* of its content: plumb_code_hash */
	uint64_t bytes; /* of the image */
	uint32_t fate;  /* enum plumb_fate: ATTRIBUTED, or why it was not kept */
	uint32_t pad;
};
_Static_assert(sizeof(struct plumb_record_gpu_code) == 40, "GPU code");

/*
 * Samples of program counters of a device's warps that agree in everything but their number. With
 * `call`, they are of the kernel that this driver call launched, and with `launch` of one launch.
 * The vendor's numbers of function and reason are the collector's own way to compare.
 */
struct plumb_record_sample {
	struct plumb_record head;
	uint64_t module;   /* plumb_record_gpu_code.id */
	uint64_t offset;   /* bytes from the function's start */
	plumb_id function; /* mangled */
	plumb_id reason;   /* the vendor's word, complete */
	uint32_t function_number, reason_number;
	uint32_t device; /* ordinal of the DEVICE record */
	plumb_id call;   /* NODE; 0: not known */
	uint64_t launch; /* CLOCK_MONOTONIC ns, when the call began; 0: several, or not known */
	_Atomic uint64_t count;
};
_Static_assert(sizeof(struct plumb_record_sample) == 64, "sample");

/* How program counters were sampled in this process, and sums over all samples that were fetched.
 * `bare` and `marked` are those whose reason lacks and has the suffix _not_issued. */
struct plumb_record_stalls {
	struct plumb_record head;
	uint32_t exponent; /* the period is so many cycles: 2^exponent */
	uint32_t mode;     /* enum plumb_stalls_mode */
	_Atomic uint64_t bare, marked;
	_Atomic uint64_t told;            /* what the vendor's interface says it sampled, … */
	_Atomic uint64_t dropped, system; /* … and of that, dropped, or in kernels of its own */
};
_Static_assert(sizeof(struct plumb_record_stalls) == 56, "stalls");

/* Data of the program: what NODE allocated of one kind on one device. */
struct plumb_record_object {
	struct plumb_record head;
	plumb_id node;    /* 0: not known */
	uint32_t ordinal; /* of the DEVICE record; UINT32_MAX: the host's memory, or not known */
	uint32_t kind;    /* enum plumb_object_kind */
	plumb_id name;    /* string that the program gave it, or 0 */
	plumb_id within;  /* OBJECT, or 0 */
	uint32_t import;  /* of IMPORTED: memory of different keys is of different objects */
	_Atomic uint64_t allocations, bytes;
	_Atomic uint64_t live, most; /* bytes live now, and at most */
	/* As in struct plumb_object; PLUMB_OBJECT_UNTOUCHED: no access was looked at */
	_Atomic uint64_t touched, touchable;
};
#define PLUMB_OBJECT_UNTOUCHED UINT64_MAX
_Static_assert(sizeof(struct plumb_record_object) == 80, "object");

/* One allocation of an object. Its KEY identifies memory that several processes share: the hash of
 * the handle that they pass on, 0 for none. PLUMB_KEY_OF_FILE: they pass on a file that does not
 * say which memory it is. */
#define PLUMB_KEY_OF_FILE (1ull << 63)
struct plumb_record_object_range {
	struct plumb_record head;
	plumb_id object;
	uint32_t pad;
	uint64_t address, bytes;
	uint64_t start;
	_Atomic uint64_t end; /* 0: still there */
	uint64_t key;
};
_Static_assert(sizeof(struct plumb_record_object_range) == 56, "range of an object");

struct plumb_record_object_bin {
	struct plumb_record head;
	plumb_id object;
	uint32_t ordinal; /* of the DEVICE record that accessed it */
	uint32_t kind;    /* enum plumb_access_kind */
	uint32_t pad;
	uint64_t offset, width;
	_Atomic uint64_t accesses;
};
_Static_assert(sizeof(struct plumb_record_object_bin) == 48, "bin of an object");

/* See struct plumb_transfer_row. Ordinals are of DEVICE records; UINT32_MAX: the host, or not
 * known, as the ROUTE says. */
struct plumb_record_transfer {
	struct plumb_record head;
	plumb_id node;
	uint16_t kind;  /* enum plumb_access_kind */
	uint16_t route; /* enum plumb_route */
	uint32_t initiator, from, to;
	plumb_id from_object, to_object; /* OBJECT, or 0 */
	uint64_t module;                 /* plumb_record_gpu_code.id; 0: no code */
	plumb_id function;               /* string: mangled; 0: no code */
	uint32_t width;                  /* bytes of an access; 0: not known */
	uint64_t offset;                 /* of the instruction in the function */
	_Atomic uint64_t accesses, warps, bytes;
	double variance; /* of the bytes, the square of their standard error; 0: exact */
};
_Static_assert(sizeof(struct plumb_record_transfer) == 96, "transfer");

/* What links two GPUs; see struct plumb_device_link. `plumb run` writes them. UINT32_MAX and
 * UINT64_MAX mean unknown. */
struct plumb_record_device_link {
	struct plumb_record head;
	uint8_t uuid[16], peer[16]; /* zeros: the host */
	uint16_t kind;              /* enum plumb_link_kind */
	uint16_t path;              /* enum plumb_link_path; 0: none, or unknown */
	uint32_t links, generation;
	uint32_t peer_access; /* 0, 1 */
	uint64_t bytes_per_second;
};
_Static_assert(sizeof(struct plumb_record_device_link) == 64, "link of a device");

/* A communicator of a communication library, as one of its ranks has it. Numbers are INT64_MIN
 * where they are not known, here and in the next two. */
struct plumb_record_communicator {
	struct plumb_record head;
	uint64_t id;             /* the same on all its ranks; 0: not known */
	plumb_id name;           /* that the program gave it, or 0 */
	_Atomic uint32_t stream; /* STREAM of its newest kernel; 0: none is known */
	int64_t nodes, size, rank;
};
_Static_assert(sizeof(struct plumb_record_communicator) == 48, "communicator");

/* One operation of a communication library; see struct plumb_collective. The newest ones are kept:
 * an old record is written over. CALLED is CLOCK_MONOTONIC; START and END are the GPU runtime's as
 * in SPAN, and 0 while no kernel is known for it. */
struct plumb_record_collective {
	struct plumb_record head;
	plumb_id node;                                     /* 0: not known */
	plumb_id communicator;                             /* COMMUNICATOR */
	plumb_id operation, datatype, algorithm, protocol; /* strings; 0: not known */
	_Atomic uint32_t stream;                           /* STREAM; 0: not known */
	_Atomic uint32_t writes;                           /* odd: it is being written */
	_Atomic uint32_t next;                             /* the collector's own */
	uint32_t pad;
	_Atomic uint64_t correlation; /* of the launch of its kernel; 0: not known */
	uint64_t called;
	_Atomic uint64_t start, end;
	int64_t bytes, sequence, peer, root, channels;
};
_Static_assert(sizeof(struct plumb_record_collective) == 120, "collective");

/* All operations that agree in all but their number. They become transfers. */
struct plumb_record_communication {
	struct plumb_record head;
	plumb_id node;
	plumb_id communicator;
	plumb_id operation;
	uint32_t kind; /* enum plumb_access_kind: COLLECTIVE, SEND or RECEIVE */
	int64_t peer;
	plumb_id from_object, to_object; /* OBJECT of this rank's data; 0: not known, or none */
	_Atomic uint64_t calls, bytes;
};
_Static_assert(sizeof(struct plumb_record_communication) == 56, "communication");

/*
 * The memory of a device as a framework's allocator hands it out, the CPU's among them: a track.
 * All threads update it, without a lock. `live` is one word so that it changes at once; its low
 * bits tell two changes apart that leave the same sum. Who changes it raises `peak` to what it was
 * first, so a peak is seen before anything that comes after it; the newest may still have to be
 * compared.
 */
#define PLUMB_POOL_TAG_BITS 16
#define PLUMB_POOL_UNTOLD UINT64_MAX
#define PLUMB_POOL_MOST (1ull << 46) /* bytes live in one */
#define PLUMB_POOLS_MOST 64u         /* in a region */
/* In head.flags: what the driver handed out in a GPU context. `ordinal` is the GPU runtime's number
 * of the context, as STREAM records have it, and no MEMORY record is of it. */
#define PLUMB_POOL_DRIVER 1u
struct plumb_record_memory_pool {
	struct plumb_record head;
	plumb_id name;         /* "CPU", "cuda:0" */
	uint32_t ordinal;      /* of the DEVICE record it is, UINT32_MAX none */
	_Atomic uint64_t live; /* bytes << PLUMB_POOL_TAG_BITS | changes */
	_Atomic uint64_t peak; /* the greatest bytes */
	_Atomic uint64_t peak_time;
	/* The allocator's own account, UNTOLD where it gives none: bytes handed out and taken from
	 * the device when our peak was reached, and the most it ever took. */
	_Atomic uint64_t peak_allocated, peak_reserved;
	_Atomic uint64_t most_reserved;
};

/*
 * What one thread allocated and freed of a pool at a node: bytes that NODE allocated, whoever's
 * node that is. Bytes live here are allocated.sum - freed.sum; they are negative where another
 * thread allocated what this one freed. `held` is what was live when the pool's peak was `seen`:
 * where the peak has grown since, nothing has changed here since then either, and what is live was
 * held.
 */
struct plumb_record_memory {
	struct plumb_record head;
	plumb_id node; /* 0: the root */
	plumb_id pool;
	_Atomic uint32_t sequence; /* of all but `live` */
	uint32_t pad;
	struct plumb_observations allocated, freed;
	int64_t held;
	uint64_t seen;
	/* Of what this thread allocated here, whoever freed it: */
	_Atomic int64_t live; /* any thread changes it */
	int64_t peak;         /* the greatest `live` */
};
_Static_assert(sizeof(struct plumb_record_memory) == 152, "memory");

/*
 * What was live in a pool over time: at most PLUMB_MEMORY_BINS bins, whose width doubles when they
 * no longer reach. Bin i covers [start + i*width, start + (i+1)*width). It has the least and the
 * greatest of what was live then, and what was live at its end; likewise of what the allocator had
 * taken from the device (`reserved`), as it said with its last change. UNTOLD: nothing changed in
 * the bin, or the allocator keeps no account. Times are those of the kernel's ticks, 1 to 10 ms.
 *
 * Bin `open` is the newest. What it has so far is in `now`, which all threads update; who comes
 * after `edge` first closes it.
 */
#define PLUMB_MEMORY_BINS 1024
struct plumb_memory_bin {
	uint64_t least, most, last;
	uint64_t most_reserved, last_reserved;
};
struct plumb_record_memory_series {
	struct plumb_record head;
	plumb_id pool;
	_Atomic uint32_t sequence;
	_Atomic uint64_t edge; /* its end; UINT64_MAX: a thread is closing it */
	struct {
		_Atomic uint64_t least, most;
		_Atomic uint64_t most_reserved, last_reserved;
	} now;
	uint64_t start, width; /* ns */
	uint32_t open;
	uint32_t pad;
	struct plumb_memory_bin bins[PLUMB_MEMORY_BINS];
};
_Static_assert(sizeof(struct plumb_record_memory_series) == 80 + 40 * PLUMB_MEMORY_BINS,
               "memory over time");

/* A hardware counter of a whole device over time, from samples: at most so many bins, whose width
 * doubles when they no longer reach. Bin i has the samples whose middle is in
 * [start + i*width, start + (i+1)*width). */
#define PLUMB_COUNTER_BINS 8192
struct plumb_counter_bin {
	double sum;        /* of each sample's value times its ns */
	uint64_t ns;       /* that the samples cover */
	float least, most; /* of the samples' values */
	uint32_t samples, pad;
};
struct plumb_record_counter_series {
	struct plumb_record head;
	plumb_id device;
	_Atomic uint32_t sequence;
	plumb_id name, unit;   /* strings; unit 0: not known */
	uint64_t start, width; /* ns, of the GPU runtime's clock */
	struct plumb_counter_bin bins[PLUMB_COUNTER_BINS];
};
_Static_assert(sizeof(struct plumb_record_counter_series) == 40 + 32 * PLUMB_COUNTER_BINS,
               "counters over time");

#endif
