/* SPDX-License-Identifier: Apache-2.0 */
/* One input of a fuzzer through one format: whatever it is, a profile or one error. */
#ifndef PLUMB_TESTS_IMPORT_FUZZ_H
#define PLUMB_TESTS_IMPORT_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import/import.h"

/* FILE, whose input may be open, into a profile that is thrown away. */
static inline void
import_fuzz_file(const struct plumb_format *format, struct plumb_import_file *file)
{
	struct plumb_error error = { 0 };
	struct plumb_profile profile = { 0 };
	struct plumb_builder *builder = plumb_builder_new();
	struct plumb_trace *trace = plumb_trace_new(builder);
	if (!builder || !trace)
		abort();
	format->probe(file);
#ifdef IMPORT_FUZZ_BINARIES
	struct plumb_binaries *binaries;
	if (plumb_binaries_open(IMPORT_FUZZ_BINARIES, &binaries, &error) < 0)
		abort();
	plumb_trace_set_binaries(trace, binaries);
#endif
	int code = plumb_trace_next_file(trace, file->path, PLUMB_UNKNOWN);
	if (!code)
		code = format->read(file, trace, &error);
	if (!code)
		code = plumb_trace_end_file(trace, &error);
	if (!code)
		code = plumb_trace_finish(trace, &error);
	if (!code)
		code = plumb_builder_finish(builder, &profile, &error);
	if (code && (!*error.message || strlen(error.message) >= sizeof error.message - 1))
		abort();
#ifdef IMPORT_FUZZ_THEN
	if (!code)
		IMPORT_FUZZ_THEN(&profile);
#endif
	plumb_profile_free(&profile);
	plumb_trace_free(trace);
	plumb_builder_free(builder);
#ifdef IMPORT_FUZZ_BINARIES
	plumb_binaries_free(binaries);
#endif
}

/* SQLite follows links, and a memfd's leads nowhere: such a target names a folder for a file with a
 * name. */
static inline int
import_fuzz_open(char path[64])
{
#ifdef IMPORT_FUZZ_FOLDER
	snprintf(path, 64, IMPORT_FUZZ_FOLDER "/plumb-fuzz-XXXXXX");
	return mkstemp(path);
#else
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
#endif
}

static inline int
import_fuzz(const struct plumb_format *format, const unsigned char *data, size_t bytes)
{
	struct plumb_error error = { 0 };
	struct plumb_import_file file = { 0 };
	char path[64];
	int fd = import_fuzz_open(path);
	char *head = calloc(1, PLUMB_INPUT_HEAD + 1);
	if (!head || fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	file.path = path;
	file.head = head;
	file.head_bytes = bytes < PLUMB_INPUT_HEAD ? bytes : PLUMB_INPUT_HEAD;
	file.whole = bytes < PLUMB_INPUT_HEAD;
	memcpy(head, data, file.head_bytes);
	if (!plumb_input_open(&file.input, path, &error))
		import_fuzz_file(format, &file);
	plumb_input_close(file.input);
	free(head);
	close(fd);
#ifdef IMPORT_FUZZ_FOLDER
	unlink(path);
#endif
	return 0;
}

#endif
