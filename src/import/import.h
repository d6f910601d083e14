/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other tools' traces → a profile. A format is a file with one `const struct plumb_format`, and a
 * row in formats.c. It is recognised by what is in the file, never by its name, and hands over what
 * it reads to a struct plumb_trace (trace.h), which finds the contexts and does the sums for all
 * formats alike.
 *
 *	static int
 *	read(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
 *	{
 *		…
 *	}
 *
 *	const struct plumb_format plumb_format_nvprof = {
 *		.name = "nvprof", .title = "nvprof --print-gpu-trace", .probe = probe, .read = read,
 *	};
 *
 * A file is untrusted: whatever is in it, `read` gives one error that names the file, the place in
 * it (byte, line or row) and the reason, or takes it all; what it does not use it counts in the
 * ledger.
 */
#ifndef PLUMB_IMPORT_IMPORT_H
#define PLUMB_IMPORT_IMPORT_H

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/input.h"
#include "import/trace.h"
#include "model/profile.h"

/* One thing to be imported. */
struct plumb_import_file {
	const char *path;
	struct plumb_input *input; /* NULL for a folder */
	const char *head; /* the first bytes, unpacked, still to be read; terminated by 0 */
	size_t head_bytes;
	bool whole; /* the head is all there is */
};

/* FILE's head after a mark of the order of bytes and white space. */
static inline const char *
plumb_import_text(const struct plumb_import_file *file)
{
	const char *at = file->head;

	if (!strncmp(at, "\xef\xbb\xbf", 3))
		at += 3;
	return at + strspn(at, " \t\r\n");
}

/* What a format knows about the files that it has joined: the process that they name, the number
 * before their names if the tool writes one (else PLUMB_UNKNOWN), and marks of its own. */
struct plumb_import_group {
	int64_t pid, prefix;
	uint32_t marks;
};

struct plumb_format {
	const char *name;  /* "kineto": as the environment of the profile has it */
	const char *title; /* for people: "PyTorch profiler (Kineto) JSON" */
	bool folder;       /* it is a folder, and only folders are asked about */
	/* enum plumb_chrome_kind: a file with such events is its own where no head tells; 0 */
	uint32_t events;
	/* 0: it is not of this format, 100: it is for sure. Cheap; the greatest wins. */
	int (*probe)(const struct plumb_import_file *file);
	int (*read)(struct plumb_import_file *file, struct plumb_trace *trace,
	            struct plumb_error *error);
	/* For tools that write a process's trace as several files, may be NULL: whether FILE goes
	 * on with the files of GROUP, which were given just before it, as part of the same trace.
	 * True puts it into the group; false begins another one, with which it is then called
	 * again. */
	bool (*joins)(const struct plumb_import_file *file, struct plumb_import_group *group);
};

/* Opens FILE once more from its beginning, for formats whose names come after their uses. The
 * caller closes it. An error if that is not possible (a pipe), so call this before you read
 * anything. */
int plumb_import_again(const struct plumb_import_file *file, struct plumb_input **input,
                       struct plumb_error *error) PLUMB_MUST_CHECK;

/* All of them; ends with NULL. */
extern const struct plumb_format *const plumb_formats[];

struct plumb_import_options {
	enum plumb_parents parents;
	/* The demangled symbol, malloced, or NULL if it is not a mangled one. The function may be
	 * NULL. */
	char *(*demangle)(const char *name);
	const char *binaries; /* a folder with binaries of GPU code (binaries.h); NULL: none */
	/* Is told in one line each what is missing, and the remedy. May be NULL. */
	void (*note)(void *own, const char *text);
	void *own;
};

/*
 * The COUNT files or folders at PATHS as one profile, each with its own processes; the caller frees
 * it. Files that name no rank and are several get the ranks 0, 1, … in the order of PATHS if they
 * are of one format. Errors: PLUMB_EINPUT (a format that is not known, damaged), PLUMB_EEMPTY
 * (nothing in them), PLUMB_ESYSTEM; PROFILE is then untouched. OPTIONS may be NULL.
 */
int
plumb_import(const char *const *paths, uint32_t count, const struct plumb_import_options *options,
             struct plumb_profile *profile, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
