/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Chrome trace events: an object with "traceEvents", or a list. Many tools write them, each
 * with its own categories and arguments. This part reads what they have in common; each format
 * adds a dialect.
 *
 *	static const struct plumb_pull_field argument_fields[] = {
 *		PLUMB_PULL_FIELD("bytes", INTEGER, PLUMB_PULL_AT(struct reader, bytes)),
 *		{ 0 },
 *	};
 *
 * Times are µs, whatever "displayTimeUnit" says: a number or a text with any number of digits.
 */
#ifndef PLUMB_IMPORT_CHROME_EVENT_H
#define PLUMB_IMPORT_CHROME_EVENT_H

#include "base/json_fields.h"
#include "base/json_memo.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/import.h"

struct plumb_chrome_event {
	char phase; /* 0: none */
	struct plumb_slice category, name;
	struct plumb_slice given_name; /* "name" of the arguments, when it is a text */
	/* As PLUMB_PULL_EITHER; PLUMB_UNKNOWN: not a number, or none. */
	int64_t pid;
	struct plumb_slice pid_text;
	int64_t tid;
	struct plumb_slice tid_text;
	int64_t id;
	struct plumb_slice id_text;
	int64_t start, duration; /* ns; PLUMB_UNKNOWN */
};

struct plumb_chrome;
struct plumb_chrome_samples;

struct plumb_chrome_dialect {
	/* Before an event is read, maybe twice: forget the last one's arguments. */
	void (*begin)(struct plumb_chrome *chrome);
	/* Of `own`; their functions get the struct plumb_chrome. NULL: none but names. */
	const struct plumb_pull_field *arguments;
	/* Are EVENT's arguments looked at? NULL: always. */
	bool (*wants)(const struct plumb_chrome *chrome, const struct plumb_chrome_event *event);
	/* A whole one, but for names of processes and threads, which are kept. */
	void (*take)(struct plumb_chrome *chrome, const struct plumb_chrome_event *event);
	/* For files that repeat themselves: what was found out about an event, MEMO_BYTES, is kept
	 * with plumb_chrome_keep and given to `again`, instead of `take`, for events that are equal
	 * but for their numbers (json_memo.h). These are stored; other members are not. NULL: all
	 * events are taken. */
	void (*again)(struct plumb_chrome *chrome, const void *memo);
	size_t memo_bytes;
	/* Of the file's object, beside the events; they get the struct plumb_chrome. */
	const struct plumb_pull_part *parts;
	/* The closing bracket of a list may be missing, as when the program that wrote it was
	 * killed. */
	bool unclosed;
};

struct plumb_chrome_name {
	int64_t pid, tid; /* as plumb_chrome_number; tid PLUMB_UNKNOWN: of the process */
	uint32_t name;    /* string */
};

struct plumb_chrome {
	struct plumb_trace *trace; /* NULL: names are not kept */
	const struct plumb_chrome_dialect *dialect;
	void *own;
	struct plumb_chrome_samples *samples; /* if the dialect has their arguments or parts */
	struct plumb_pull pull;
	struct plumb_chrome_event read;         /* the event that is read */
	const struct plumb_chrome_event *event; /* what of it stands before its arguments */
	struct plumb_memos *memos;              /* NULL: none */
	uint32_t named;                         /* so often a process got a new name */
	PLUMB_VEC(struct plumb_chrome_name) names;
	struct plumb_map name_map;
};

/* Reads FILE; CHROME has trace, dialect and own. plumb_chrome_free follows, whatever is
 * returned. */
int plumb_chrome_read(struct plumb_chrome *chrome, struct plumb_import_file *file,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_chrome_free(struct plumb_chrome *chrome);

/* Keeps MEMO of the event that is taken. It must hold for all events that are alike. If the name of
 * a process changes, it is forgotten. */
void plumb_chrome_keep(struct plumb_chrome *chrome, const void *memo);

/* Does the file begin with an object or a list, after white space? */
bool plumb_chrome_is_json(const struct plumb_import_file *file);
/* And is it a text, for all that can be seen? A newline is also how some binary formats begin. */
bool plumb_chrome_is_json_text(const struct plumb_import_file *file);

/* Returns NUMBER, or a number for TEXT. The number of a text is one that nothing else has. */
int64_t plumb_chrome_number(int64_t number, struct plumb_slice text);
/* The event's process and thread; those that are texts have them as their names. */
uint32_t plumb_chrome_process(struct plumb_chrome *chrome, const struct plumb_chrome_event *event);
uint32_t plumb_chrome_thread(struct plumb_chrome *chrome, const struct plumb_chrome_event *event);
/* Start plus duration; PLUMB_UNKNOWN. */
int64_t plumb_chrome_end(const struct plumb_chrome_event *event);
/* The name that the file gave a process (TID PLUMB_UNKNOWN) or thread so far, or NULL. */
const char *plumb_chrome_name_of(const struct plumb_chrome *chrome, int64_t pid, int64_t tid);
/* All is read: processes and threads get the names that the file gives them. */
void plumb_chrome_give_names(struct plumb_chrome *chrome);

#endif
