/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a file has, and one profile of all files. */
#include "import/import.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "import/chrome/kind.h"
#include "import/trace_private.h"

/* What can be read, for the error about a file that cannot. */
static void
known_formats(char *text, size_t size)
{
	size_t at = 0;
	*text = '\0';
	for (int i = 0; plumb_formats[i] && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "",
		                       plumb_formats[i]->title);
}

#define SURE 50 /* of what a head says */

/* What the head does not tell, the events do: they may stand after long metadata. */
static const struct plumb_format *
format_of_events(const struct plumb_import_file *file, const struct plumb_format *best)
{
	enum plumb_chrome_kind kind = plumb_chrome_kind(file);

	for (int i = 0; kind != PLUMB_CHROME_NONE && plumb_formats[i]; i++)
		if (plumb_formats[i]->events == kind)
			return plumb_formats[i];
	return best;
}

static const struct plumb_format *
format_of(const struct plumb_import_file *file)
{
	const struct plumb_format *best = NULL;
	int most = 0;
	for (int i = 0; plumb_formats[i]; i++) {
		if (plumb_formats[i]->folder != !file->input)
			continue;
		int sure = plumb_formats[i]->probe(file);
		if (sure > most) {
			most = sure;
			best = plumb_formats[i];
		}
	}
	return file->input && most < SURE ? format_of_events(file, best) : best;
}

static int
open_source(const char *path, struct plumb_import_file *file, struct plumb_error *error)
{
	struct stat status;
	const char *head;
	size_t bytes;
	if (!strcmp(path, "-"))
		path = "/dev/stdin";
	*file = (struct plumb_import_file){ .path = path };
	if (stat(path, &status) < 0)
		return plumb_fail_errno(error, "%s: cannot be read", path);
	if (S_ISDIR(status.st_mode))
		return 0;
	if (plumb_input_open(&file->input, path, error) < 0 ||
	    plumb_input_head(file->input, &head, &bytes, error) < 0)
		return PLUMB_ESYSTEM;
	char *copy = malloc(bytes + 1);
	if (!copy)
		return plumb_fail_memory(error, "to read %s", path);
	memcpy(copy, head, bytes);
	copy[bytes] = '\0';
	file->head = copy;
	file->head_bytes = bytes;
	file->whole = bytes < PLUMB_INPUT_HEAD;
	return bytes ? 0 : plumb_fail(error, PLUMB_EINPUT, "%s: is empty", path);
}

int
plumb_import_again(const struct plumb_import_file *file, struct plumb_input **input,
                   struct plumb_error *error)
{
	struct stat status;
	if (stat(file->path, &status) < 0)
		return plumb_fail_errno(error, "%s: cannot be read", file->path);
	if (!S_ISREG(status.st_mode))
		return plumb_fail(
			error, PLUMB_EINPUT,
			"%s: this format must be read twice, so it cannot come from a pipe; "
			"save it to a file first",
			file->path);
	return plumb_input_open(input, file->path, error);
}

/* What is under way: files that are one trace. */
struct series {
	const struct plumb_format *format; /* NULL: nothing is */
	struct plumb_import_group group;
	uint32_t count; /* of series, this one included */
};

/* FILE goes on with the series, or begins the next one. */
static int
begin_file(struct series *series, const struct plumb_import_file *file,
           const struct plumb_format *format, bool several, struct plumb_trace *trace,
           struct plumb_error *error)
{
	if (series->format == format && format->joins && format->joins(file, &series->group))
		return 0;
	int code = series->format ? plumb_trace_end_file(trace, error) : 0;
	series->format = format;
	series->group =
		(struct plumb_import_group){ .pid = PLUMB_UNKNOWN, .prefix = PLUMB_UNKNOWN };
	if (format->joins)
		format->joins(file, &series->group);
	return code ? code
	            : plumb_trace_next_file(trace, file->path,
	                                    several ? series->count++ : PLUMB_UNKNOWN);
}

/* ".plumb-4711.run": of a recording that is going on, or was killed. */
static bool
is_run_folder(const char *path)
{
	size_t bytes = strlen(path);

	while (bytes > 1 && path[bytes - 1] == '/')
		bytes--;
	return bytes > 4 && !memcmp(path + bytes - 4, ".run", 4);
}

static int
refuse_format(const struct plumb_import_file *file, struct plumb_error *error)
{
	static const char database[] = "SQLite format 3";
	char known[600];

	if (!file->input && is_run_folder(file->path))
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s: is a run folder; make a profile of it with `plumb settle`",
		                  file->path);
	if (!file->input)
		return plumb_fail(
			error, PLUMB_EINPUT,
			"%s: is a folder, but not an HPCToolkit database; name a profile or a "
			"trace in it",
			file->path);
	if (file->head_bytes >= sizeof database && !memcmp(file->head, database, sizeof database))
		return plumb_fail(
			error, PLUMB_EINPUT,
			"%s: is a database of an unknown format; if it was made from a packed "
			"file, unpack it with gunzip",
			file->path);
	known_formats(known, sizeof known);
	return plumb_fail(error, PLUMB_EINPUT, "%s: the format is not known; plumb reads %s",
	                  file->path, known);
}

static int
import_one(const char *path, bool several, struct plumb_trace *trace, struct series *series,
           const struct plumb_format **format, struct plumb_error *error)
{
	struct plumb_import_file file;
	struct plumb_error own = { .code = PLUMB_ESYSTEM }; /* its code tells the two apart */
	int code = open_source(path, &file, &own);
	if (!code && !(*format = format_of(&file)))
		code = refuse_format(&file, &own);
	if (!code)
		code = begin_file(series, &file, *format, several, trace, &own);
	if (!code)
		code = (*format)->read(&file, trace, &own);
	if (code)
		plumb_fail(error, own.code, "%s", own.message);
	free((char *)file.head);
	plumb_input_close(file.input);
	return code ? (error ? error->code : code) : 0;
}

/* "trace.json.gz and 3 more, PyTorch profiler JSON" */
static void
name_files(struct plumb_builder *builder, const char *const *paths, uint32_t count,
           const char *title)
{
	char text[1024], more[32] = "";
	if (count > 1)
		snprintf(more, sizeof more, " and %u more", count - 1);
	snprintf(text, sizeof text, "%.900s%s, %s", paths[0], more, title);
	plumb_builder_environment(builder, PLUMB_NONE, "import.files", text);
}

void
plumb_trace_set_note(struct plumb_trace *trace, void (*note)(void *own, const char *text),
                     void *own)
{
	trace->note = note;
	trace->note_own = own;
}

void
plumb_trace_note(const struct plumb_trace *trace, const char *format, ...)
{
	va_list arguments;
	char text[1000];
	if (!trace->note)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	trace->note(trace->note_own, text);
}

static int
import_all(const char *const *paths, uint32_t count, const struct plumb_import_options *options,
           struct plumb_binaries *binaries, struct plumb_builder *builder,
           struct plumb_error *error)
{
	struct plumb_trace *trace = plumb_trace_new(builder);
	if (!trace)
		return plumb_fail_memory(error, "for the import");
	if (options) {
		plumb_trace_set_parents(trace, options->parents);
		plumb_trace_set_binaries(trace, binaries);
		plumb_trace_set_note(trace, options->note, options->own);
	}
	const struct plumb_format *format = NULL, *first = NULL;
	struct series series = { 0 };
	bool several = false;
	int code = 0;
	for (uint32_t i = 0; i < count && !code; i++) {
		code = import_one(paths[i], count > 1, trace, &series, &format, error);
		first = i ? first : format;
		several |= format != first;
	}
	if (!code && count > 1 && series.count == 1)
		plumb_trace_rank(trace, PLUMB_UNKNOWN); /* all files are one trace */
	if (!code)
		code = plumb_trace_end_file(trace, error);
	if (!code) {
		name_files(builder, paths, count, several ? "several formats" : first->title);
		plumb_builder_environment(builder, PLUMB_NONE, "import.format",
		                          several ? "several" : first->name);
		code = plumb_trace_finish(trace, error);
	}
	if (!code && binaries && !plumb_binaries_used(binaries))
		plumb_trace_note(trace,
		                 "--binaries: %s has no GPU code whose binary would help; plumb "
		                 "uses binaries with HPCToolkit databases",
		                 paths[0]);
	plumb_trace_free(trace);
	return code;
}

int
plumb_import(const char *const *paths, uint32_t count, const struct plumb_import_options *options,
             struct plumb_profile *profile, struct plumb_error *error)
{
	struct plumb_binaries *binaries = NULL;
	int code = options && options->binaries
	                   ? plumb_binaries_open(options->binaries, &binaries, error)
	                   : 0;
	if (code)
		return code;
	struct plumb_builder *builder = plumb_builder_new();
	if (!builder) {
		plumb_binaries_free(binaries);
		return plumb_fail_memory(error, "for the import");
	}
	struct plumb_run *run = plumb_builder_run(builder);
	run->tool_version = plumb_builder_text(builder, PLUMB_VERSION);
	code = import_all(paths, count, options, binaries, builder, error);
	if (!code && options && options->demangle)
		plumb_builder_demangle(builder, options->demangle);
	if (!code)
		code = plumb_builder_finish(builder, profile, error);
	plumb_builder_free(builder);
	plumb_binaries_free(binaries);
	return code;
}
