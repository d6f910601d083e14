/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks: a line "frame;frame;frame NUMBER" for each, the outermost frame first. What the
 * number counts stands nowhere: it is the metric "samples". What kind of thing a frame is, is not
 * known either: they are native ones, but for what py-spy and plumb write of Python, "function
 * (file.py:12)".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "import/import.h"

#define BLOCK ((size_t)256 << 10)
#define LINE_MAX_BYTES ((size_t)16 << 20)
#define DEPTH_MAX 4096

struct reader {
	struct plumb_trace *trace;
	uint32_t track, metric;
	uint64_t line;
	const char *why;
	int64_t too_deep;
};

/* Splits LINE into its stack and number. Returns NULL, or what is wrong. */
static const char *
split_line(struct plumb_slice line, struct plumb_slice *stack, int64_t *number)
{
	const char *space = line.bytes ? memrchr(line.at, ' ', line.bytes) : NULL;
	if (!space || space == line.at)
		return "is not a stack and a number";
	struct plumb_slice text = { space + 1, (size_t)(line.at + line.bytes - space - 1) };
	*stack = (struct plumb_slice){ line.at, (size_t)(space - line.at) };
	for (size_t i = 0; i < text.bytes; i++)
		if (text.at[i] < '0' || text.at[i] > '9')
			return "does not end with a whole number";
	if (!text.bytes || !plumb_slice_decimal(text, 0, number))
		return "ends with a number that is missing or too large";
	return NULL;
}

/* "step (train.py:12)" */
static uint32_t
frame_of(struct plumb_trace *trace, struct plumb_slice name)
{
	const char *open = memrchr(name.at, '(', name.bytes), *end = name.at + name.bytes;
	const char *colon = open ? memrchr(open, ':', (size_t)(end - open)) : NULL;
	int64_t line;
	if (colon && end[-1] == ')' && open > name.at + 1 && open[-1] == ' ' && colon - open > 4 &&
	    !memcmp(colon - 3, ".py", 3) &&
	    plumb_slice_decimal((struct plumb_slice){ colon + 1, (size_t)(end - colon - 2) }, 0,
	                        &line)) {
		struct plumb_slice file = { open + 1, (size_t)(colon - open - 1) };
		name.bytes = (size_t)(open - 1 - name.at);
		return plumb_trace_frame_at(trace, PLUMB_FRAME_PYTHON, name, file, line);
	}
	return plumb_trace_frame(trace, PLUMB_FRAME_NATIVE, name);
}

static void
take_line(struct reader *reader, struct plumb_slice line)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	struct plumb_slice stack;
	int64_t number;
	uint32_t context = 0, depth = 0;
	reader->line++;
	while (line.bytes && (line.at[line.bytes - 1] == '\r' || line.at[line.bytes - 1] == ' '))
		line.bytes--;
	if (!line.bytes)
		return;
	reader->why = split_line(line, &stack, &number);
	if (reader->why)
		return;
	const char *end = stack.at + stack.bytes;
	for (const char *at = stack.at, *next; at < end; at = next + 1) {
		next = memchr(at, ';', (size_t)(end - at));
		if (!next)
			next = end;
		if (depth++ == DEPTH_MAX) {
			reader->too_deep++;
			break;
		}
		if (next > at)
			context = plumb_builder_context(
				builder, context,
				frame_of(reader->trace,
			                 (struct plumb_slice){ at, (size_t)(next - at) }),
				0);
	}
	if (number)
		plumb_trace_value(reader->trace, reader->track, context, reader->metric, number);
}

/* The lines of the FILLED bytes at TEXT; how many bytes they are. */
static size_t
take_lines(struct reader *reader, const char *text, size_t filled, bool last)
{
	size_t at = 0;
	while (at < filled && !reader->why) {
		const char *end = memchr(text + at, '\n', filled - at);
		if (!end && !last)
			break;
		size_t bytes = end ? (size_t)(end - text) - at : filled - at;
		take_line(reader, (struct plumb_slice){ text + at, bytes });
		at += bytes + (end != NULL);
	}
	return at;
}

static int
read_lines(struct reader *reader, struct plumb_import_file *file, struct plumb_error *error)
{
	size_t room = BLOCK, filled = 0;
	char *text = malloc(room);
	ssize_t got = 1;
	while (text && got > 0 && !reader->why) {
		if (filled == room) {
			char *grown = room < LINE_MAX_BYTES ? realloc(text, room * 2) : NULL;
			if (!grown) {
				reader->line++;
				reader->why = "is too long for a stack";
				break;
			}
			text = grown;
			room *= 2;
		}
		got = plumb_input_read(file->input, text + filled, room - filled, error);
		if (got < 0)
			break;
		filled += (size_t)got;
		size_t taken = take_lines(reader, text, filled, got == 0);
		memmove(text, text + taken, filled - taken);
		filled -= taken;
	}
	bool memory = text != NULL;
	free(text);
	if (!memory)
		return plumb_fail_memory(error, "to read %s", file->path);
	if (got < 0)
		return (int)got;
	if (reader->why)
		return plumb_fail(error, PLUMB_EINPUT, "%s: line %llu %s", file->path,
		                  (unsigned long long)reader->line, reader->why);
	return 0;
}

static int
read_folded(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct plumb_builder *builder = plumb_trace_builder(trace);
	struct reader reader = { .trace = trace };
	reader.track =
		plumb_trace_thread(trace, plumb_trace_process(trace, PLUMB_UNKNOWN), PLUMB_UNKNOWN);
	reader.metric = plumb_builder_metric(builder, plumb_builder_text(builder, "samples"),
	                                     plumb_builder_text(builder, "count"));
	int code = read_lines(&reader, file, error);
	if (!code)
		plumb_trace_count(trace, PLUMB_FATE_TOO_DEEP, NULL, reader.too_deep);
	return code;
}

/* Every line of the head is a stack and a number. It is more certain if ";" separates frames. */
static int
probe_folded(const struct plumb_import_file *file)
{
	const char *at = file->head, *end = file->head + file->head_bytes, *next;
	struct plumb_slice stack;
	int64_t number;
	unsigned lines = 0, parted = 0;
	/* A text of one word and a number is no stack: what is cut short may begin so. */
	const char *text = plumb_import_text(file);
	if (memchr(at, '\0', file->head_bytes) || *text == '{' || *text == '[')
		return 0;
	for (; at < end; at = next + 1) {
		next = memchr(at, '\n', (size_t)(end - at));
		if (!next && !file->whole)
			break;
		next = next ? next : end;
		struct plumb_slice line = { at, (size_t)(next - at) };
		while (line.bytes &&
		       (line.at[line.bytes - 1] == '\r' || line.at[line.bytes - 1] == ' '))
			line.bytes--;
		if (!line.bytes)
			continue;
		if (split_line(line, &stack, &number))
			break;
		lines++;
		parted += memchr(stack.at, ';', stack.bytes) != NULL;
	}
	/* One wrong line among many good ones is worth an error that names it. */
	bool all = at >= end || !next;
	return parted && (all || lines > 9) ? 40 : 0;
}

const struct plumb_format plumb_format_folded = {
	.name = "folded",
	.title = "folded stacks",
	.probe = probe_folded,
	.read = read_folded,
};
