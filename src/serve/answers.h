/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers: a table with a row for each. An answer has a name, its keys, its formats, and a
 * function that writes it. Queries are checked before it is called. Private to serve/.
 *
 * To add one, write such a function, and add a row to the table in registry.c.
 */
#ifndef PLUMB_SERVE_ANSWERS_H
#define PLUMB_SERVE_ANSWERS_H

#include <stdio.h>

#include "base/source.h"
#include "model/window.h"
#include "serve/job.h"
#include "serve/query.h"
#include "serve/serve.h"
#include "view/view.h"

/* A window of a file. Its profile borrows from the file's. */
struct plumb_served_window {
	struct plumb_window_choice choice;
	struct plumb_profile profile;
	bool analysed; /* its findings are its own; else the run's that are of it */
	uint64_t used; /* when: counts questions; 0: this place is free */
};
#define PLUMB_SERVED_WINDOWS 4 /* so many are kept for each file */
#define PLUMB_SERVED_FILES 64  /* so many can be open */

/* Commands that bring what a profile lacks. */
#define PLUMB_REMEDY_RUN "plumb run -- PROGRAM"
#define PLUMB_REMEDY_TRACE "plumb run --trace -- PROGRAM"
#define PLUMB_REMEDY_RANKS "plumb run -- torchrun --nproc-per-node 2 PROGRAM"
#define PLUMB_REMEDY_STALLS "plumb run --stalls -- PROGRAM"
#define PLUMB_REMEDY_TRAFFIC "plumb run --traffic -- PROGRAM"
#define PLUMB_REMEDY_LEVELS "plumb levels -- PROGRAM"
#define PLUMB_REMEDY_MEMORY "plumb run --memory -- PROGRAM"

struct plumb_served_file {
	const char *name;
	const struct plumb_profile *whole;
	bool has_loop;
	struct plumb_lanes *lanes; /* of the whole; NULL: nobody has asked yet */
	struct plumb_job *finding; /* iterations of `lanes`; NULL: nobody does */
	struct plumb_served_window windows[PLUMB_SERVED_WINDOWS];
};

/* Flame graphs are kept, up to so many, and so many bytes if there are several. */
#define PLUMB_SERVED_FLAMES 8
#define PLUMB_FLAMES_BYTES ((size_t)256 << 20)
struct plumb_kept_flame {
	struct plumb_flame *flame;                     /* NULL: this place is free */
	const struct plumb_profile *profile, *against; /* against: or NULL */
	uint64_t used;
};

/* What makes a kernel wait is kept for the last kernels that somebody looked at. */
#define PLUMB_SERVED_WHYS 8
struct plumb_kept_why {
	struct plumb_why why; /* of one kernel */
	uint64_t used;        /* 0: this place is free */
};

/* Replies are kept, those used last, up to so many bytes. */
#define PLUMB_REPLIES_BYTES ((size_t)48 << 20)
#define PLUMB_REPLIES_MOST 256u
struct plumb_kept_reply {
	char *question; /* the name and the canonical query */
	struct plumb_reply *reply;
	uint64_t used;
};

struct plumb_answers {
	struct plumb_served_file *files;
	uint32_t count, before;
	int wake; /* says that a job is done; -1: there are no jobs */
	char title[200];
	uint64_t questions; /* so far */
	struct plumb_kept_flame flames[PLUMB_SERVED_FLAMES];
	struct plumb_kept_why whys[PLUMB_SERVED_WHYS];
	struct plumb_job *slicing;               /* of a kernel; NULL: none is looked at */
	const struct plumb_profile *sliced_from; /* of which profile, and which kernel */
	uint32_t sliced;
	struct plumb_sources *sources;       /* NULL: nobody has asked yet */
	char *(*demangle)(const char *name); /* or NULL */
	/* The usual flame graph, while it is made. */
	struct plumb_job *preparing;          /* NULL: it is not */
	const struct plumb_profile *prepared; /* of which profile */
	struct plumb_kept_reply kept[PLUMB_REPLIES_MOST];
	uint32_t kept_count;
	size_t kept_bytes;
};

/* One question, while it is answered. */
struct plumb_question {
	struct plumb_answers *answers;
	const struct plumb_query *query;
	enum plumb_view_format format;
	struct plumb_served_file *file;      /* the one that the query names */
	const struct plumb_profile *profile; /* of the window that it names, or of the whole */
	bool windowed;                       /* `profile` is of a window */
	struct plumb_window_choice window;   /* of which one */
	FILE *out;
	bool later;         /* set it if a job has to end first */
	const char *remedy; /* set it for PLUMB_EEMPTY: a command that brings what is missing */
};

/* Which window a question is of, if its query does not say. */
enum plumb_question_window {
	PLUMB_OF_WHOLE, /* it has no key "window"; the answer is of the whole run */
	PLUMB_OF_ASKED, /* the whole run */
	PLUMB_OF_MAIN,  /* the main loop, if there is one */
};

#define PLUMB_FORMATS_JSON (1u << PLUMB_VIEW_JSON)
#define PLUMB_FORMATS_COLUMNS (1u << PLUMB_VIEW_COLUMNS)
#define PLUMB_FORMATS_ALL (PLUMB_FORMATS_JSON | PLUMB_FORMATS_COLUMNS | 1u << PLUMB_VIEW_CSV)

struct plumb_answer_kind {
	const char *name; /* NULL ends the table */
	unsigned formats; /* a set of 1 << enum plumb_view_format */
	enum plumb_question_window window;
	const struct plumb_query_key *keys; /* with those of all answers */
	/* Writes the answer to question->out. Errors as in view/view.h. */
	int (*write)(struct plumb_question *question, struct plumb_error *error);
};
extern const struct plumb_answer_kind plumb_answer_kinds[];
const struct plumb_answer_kind *plumb_answer_kind_find(const char *name);

/* Keys that answers have in common. */
#define PLUMB_KEY_FILE { "file", PLUMB_QUERY_NUMBER, .fallback = "0" }
#define PLUMB_KEY_FORMAT(choices_, fallback_)                                                      \
	{ "format", PLUMB_QUERY_CHOICE, .choices = choices_, .fallback = fallback_ }
#define PLUMB_KEY_WINDOW { "window", PLUMB_QUERY_TEXT }

/* The window of FILE that an answer is of if nobody names one. */
struct plumb_window_choice plumb_served_main(const struct plumb_served_file *file);
/* Makes *PROFILE that of CHOICE of FILE. It holds until the next call. With FINDINGS, the window is
 * analysed; without, it has those findings of the run that are of it. The errors are those of
 * plumb_window_profile and plumb_analyze. */
int plumb_served_window(struct plumb_answers *answers, struct plumb_served_file *file,
                        const struct plumb_window_choice *choice, bool findings,
                        const struct plumb_profile **profile,
                        struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_served_free(struct plumb_answers *answers, struct plumb_served_file *file);

/* Frees the flame graphs that are kept of PROFILE, or are being made; NULL: all. */
void plumb_flames_forget(struct plumb_answers *answers, const struct plumb_profile *profile);

/* Frees what is kept of kernels. */
void plumb_whys_forget(struct plumb_answers *answers);

/* ---- the functions of the table ---- */
int plumb_answer_about(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_overview(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_shares(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_findings(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_report(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_tables(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_diff(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_iters(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_states(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_path(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_explain(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_ranks(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_flame(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_flame_frames(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_frame(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_memory_devices(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_memory_series(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_memory_holders(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_why(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_why_kernels(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_why_code(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_why_source(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_traffic(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_levels(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_timeline_tracks(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_timeline_spans(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_timeline_bands(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_timeline_arrows(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_timeline_sum(struct plumb_question *question, struct plumb_error *error);
int plumb_answer_timeline_counters(struct plumb_question *question, struct plumb_error *error);

#endif
