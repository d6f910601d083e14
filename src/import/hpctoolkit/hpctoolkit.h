/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HPCToolkit's databases, version 4 (its doc/FORMATS.md): files of tables that point at each other
 * by byte. What the reader of the calling contexts and the one of their values share. Private to
 * import/.
 */
#ifndef PLUMB_IMPORT_HPCTOOLKIT_HPCTOOLKIT_H
#define PLUMB_IMPORT_HPCTOOLKIT_HPCTOOLKIT_H

#include "base/map.h"
#include "base/vec.h"
#include "code/rows.h"
#include "import/import.h"

/* A file in memory. */
struct hpct_file {
	const char *name; /* "meta.db" */
	const unsigned char *at;
	size_t bytes;
	bool mapped;           /* else it is NULL, and no file */
	uint64_t taken, texts; /* bytes of tables and texts that were read */
};

struct hpct_metric {
	uint32_t number;               /* plumb's, 0: none */
	double scale;                  /* of its values, to plumb's unit */
	bool inclusive;                /* its values hold those of the contexts below */
	bool accumulator;              /* says nothing by itself, and is left out */
	bool open;                     /* its number waits for what its values are */
	bool fraction;                 /* one of them is no whole number */
	double most;                   /* the greatest of them, by its magnitude */
	struct plumb_slice name, unit; /* at NULL: other scopes stand for these values */
};

struct hpct_context {
	uint32_t id, context;
	uint32_t parent; /* in `contexts`, or PLUMB_NONE */
	uint32_t work;   /* enum plumb_frame_kind of the GPU work that it is of, or 0 */
	uint32_t kernel; /* the builder's context of the kernel that it is in, or PLUMB_NONE */
	uint32_t module; /* of an instruction of GPU code: in `modules`; else PLUMB_NONE */
	uint64_t offset; /* there */
};

/* A file of GPU code that contexts name. HPCToolkit names it by the MD5 of its content. */
struct hpct_module {
	uint64_t at; /* its description in meta.db */
	struct plumb_slice path;
	char md5[PLUMB_MD5_DIGITS + 1]; /* "": it is no GPU code */
	bool asked;                     /* for its binary */
	const struct plumb_binary *binary;
	const char *why_not; /* what is wrong with the binary */
	struct plumb_module *module;
	struct hpct_function *functions; /* ascending by their starts */
	uint32_t function_count;
	struct plumb_code_rows *rows;
	double without, outside; /* samples that have no binary, or lie in none of its functions */
};

/* Where a function of a module is in its file. */
struct hpct_function {
	uint64_t start, bytes;
	uint32_t number; /* the module's */
};

/* A place in a function of a binary. */
struct hpct_place {
	const struct plumb_module_function *function; /* NULL: not known */
	uint32_t number;
	uint64_t offset;
};

/* What a metric says of samples of program counters. */
enum hpct_role { HPCT_TOTAL, HPCT_EXPOSED, HPCT_HIDDEN, HPCT_ISSUED, HPCT_PERIOD };
struct hpct_reason {
	enum hpct_role role;
	uint32_t metric; /* plumb's number */
	double scale;
	struct plumb_slice word; /* of an exposed stall */
};

/* Samples of an instruction. */
struct hpct_sample {
	uint32_t module, kernel, process, reason; /* in `modules`, as in a context, in `reasons` */
	uint64_t offset;
	double cycles;
};

/* What is to be added to a context's own value of a metric. */
struct hpct_share {
	uint32_t context, metric; /* in `contexts`; plumb's number */
	int64_t number;
};

struct hpct_reader {
	struct plumb_trace *trace;
	const char *folder;
	struct hpct_file meta, profile, times;
	struct hpct_metric *metrics; /* by number, HPCT_METRICS of them */
	PLUMB_VEC(struct hpct_context) contexts;
	struct plumb_map map;
	PLUMB_VEC(uint32_t) tracks;          /* by profile */
	PLUMB_VEC(struct hpct_share) shares; /* of one profile */
	PLUMB_VEC(struct hpct_module) modules;
	struct plumb_map module_map;
	PLUMB_VEC(struct hpct_reason) reasons;
	PLUMB_VEC(struct hpct_sample) samples;
	PLUMB_VEC(struct hpct_sample) by_lines; /* in kernels, of no instruction; by process */
	double period;      /* cycles from one sample to the next; 0: no file says it */
	bool periods;       /* there are several */
	uint64_t code_left; /* of PLUMB_CODE_KEPT */
	/* What is wrong, once something is. */
	const char *why;
	const struct hpct_file *why_file;
	uint64_t why_at;
	bool no_memory;
};

#define HPCT_METRICS 65536u

/* COUNT things of SIZE bytes at OFFSET of FILE, or NULL: they do not lie in it, and the reader
 * fails. */
const unsigned char *plumb_hpct_get(struct hpct_reader *reader, const struct hpct_file *file,
                                    uint64_t offset, uint64_t count, uint64_t size);
/* As plumb_hpct_get, of what is in a file once: all of it together is no longer than the file. */
const unsigned char *plumb_hpct_take(struct hpct_reader *reader, struct hpct_file *file,
                                     uint64_t offset, uint64_t count, uint64_t size);
/* The text at OFFSET; at NULL: the reader failed. */
struct plumb_slice
plumb_hpct_text(struct hpct_reader *reader, struct hpct_file *file, uint64_t offset);
/* The file is damaged at OFFSET. WHY lives for ever. */
void plumb_hpct_fail(struct hpct_reader *reader, const struct hpct_file *file, uint64_t offset,
                     const char *why);
const struct hpct_context *plumb_hpct_context(const struct hpct_reader *reader, uint32_t id);

/* What the section of FILE that HEADER describes points at, if SIZE bytes of it are there. */
const unsigned char *plumb_hpct_section(struct hpct_reader *reader, const struct hpct_file *file,
                                        uint64_t header, uint64_t size, uint64_t *offset);

/* profile.db */
enum { HPCT_PROFILES_SECTION = 0x10, HPCT_PROFILE_BYTES = 44, HPCT_VALUE_BYTES = 10 };

/* metrics.c: meta.db's metrics, and how to read their values, into `metrics`. */
void plumb_hpct_metrics(struct hpct_reader *reader);
/* tree.c: meta.db's contexts into `contexts`. */
void plumb_hpct_tree(struct hpct_reader *reader);

/* modules.c: the GPU code whose description is at AT of meta.db; PLUMB_NONE: it is none. */
uint32_t plumb_hpct_module(struct hpct_reader *reader, uint64_t at);
/* What is at OFFSET of a file of GPU code. */
struct hpct_place plumb_hpct_place(struct hpct_reader *reader, uint32_t module, uint64_t offset);
/* Tells the user which binaries are missing, or are not what they should be. */
void plumb_hpct_tell_modules(struct hpct_reader *reader);
void plumb_hpct_free_modules(struct hpct_reader *reader);

/* samples.c: what metrics say of samples, into `reasons`. */
void plumb_hpct_reasons(struct hpct_reader *reader);
/* PROCESS measured NUMBER of plumb's METRIC at CONTEXT itself. */
void plumb_hpct_sample(struct hpct_reader *reader, const struct hpct_context *context,
                       uint32_t process, uint32_t metric, int64_t number);
/* All are there: rows of code and samples. */
void plumb_hpct_samples(struct hpct_reader *reader);

static inline uint64_t
hpct_load(const unsigned char *at, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = bytes; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}
#define hpct_u16(at) ((uint32_t)hpct_load(at, 2))
#define hpct_u32(at) ((uint32_t)hpct_load(at, 4))
#define hpct_u64(at) hpct_load(at, 8)

#endif
