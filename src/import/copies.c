/* SPDX-License-Identifier: Apache-2.0 */
#include "import/copies.h"

#include <ctype.h>
#include <stdio.h>

/* Makes the name lower case and drops the characters between its words. */
static void
simplify_name(struct plumb_slice name, char *text, size_t size)
{
	size_t count = 0;
	for (size_t i = 0; i < name.bytes && count + 1 < size; i++) {
		unsigned char c = (unsigned char)name.at[i];
		if (isalnum(c) || c == '(' || c == '>')
			text[count++] = (char)tolower(c);
	}
	text[count] = '\0';
}

/* Our word for the kind of memory that TEXT begins with, or NULL. */
static const char *
memory_of(const char *text)
{
	static const struct {
		const char *word, *kind;
	} words[] = {
		{ "pageable", "pageable" }, { "pinned", "pinned" },    { "device", "device" },
		{ "managed", "managed" },   { "unified", "managed" },  { "array", "array" },
		{ "host", "host" },         { "peer", "peer device" }, { "unknown", "unknown" },
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strncmp(text, words[i].word, strlen(words[i].word)))
			return words[i].kind;
	return NULL;
}

/* "htod", "hosttodevice": what is moved where. */
static bool
direction_of(const char *text, const char **from, const char **to)
{
	static const struct {
		const char *letters, *words, *from, *to;
	} directions[] = {
		{ "htod", "hosttodevice", "host", "device" },
		{ "dtoh", "devicetohost", "device", "host" },
		{ "dtod", "devicetodevice", "device", "device" },
		{ "ptop", "peertopeer", "device", "peer device" },
		{ "htoh", "hosttohost", "host", "host" },
		{ "htoa", "hosttoarray", "host", "array" },
		{ "atoh", "arraytohost", "array", "host" },
		{ "atoa", "arraytoarray", "array", "array" },
		{ "atod", "arraytodevice", "array", "device" },
		{ "dtoa", "devicetoarray", "device", "array" },
	};
	for (size_t i = 0; i < sizeof directions / sizeof *directions; i++)
		if (strstr(text, directions[i].letters) || strstr(text, directions[i].words)) {
			*from = directions[i].from;
			*to = directions[i].to;
			return true;
		}
	return false;
}

uint32_t
plumb_import_copy(struct plumb_trace *trace, struct plumb_slice name)
{
	char text[256];
	const char *from = "unknown", *to = "unknown", *open, *arrow;
	simplify_name(name, text, sizeof text);
	open = strchr(text, '(');
	if (strstr(text, "memset") || strstr(text, "fill") || !strncmp(text, "set", 3)) {
		const char *kind = open ? memory_of(open + 1) : NULL;
		return plumb_trace_set_frame(trace, kind ? kind : "device");
	}
	direction_of(text, &from, &to);
	arrow = open ? strchr(open, '>') : NULL;
	if (arrow) {
		const char *exact_from = memory_of(open + 1), *exact_to = memory_of(arrow + 1);
		bool peer = !strcmp(to, "peer device");
		from = exact_from && strcmp(exact_from, "unknown") ? exact_from : from;
		to = exact_to && strcmp(exact_to, "unknown") && !peer ? exact_to : to;
	}
	return plumb_trace_copy_frame(trace, from, to);
}

uint32_t
plumb_import_collective(struct plumb_trace *trace, struct plumb_slice name)
{
	static const struct {
		const char *word, *name;
	} words[] = {
		{ "allreduce", "AllReduce" }, { "reducescatter", "ReduceScatter" },
		{ "allgather", "AllGather" }, { "alltoall", "AlltoAll" },
		{ "broadcast", "Broadcast" }, { "sendrecv", "SendRecv" },
		{ "send", "SendRecv" },       { "recv", "SendRecv" },
		{ "reduce", "Reduce" },       { "scatter", "Scatter" },
		{ "gather", "Gather" },
	};
	char text[128];
	simplify_name(name, text, sizeof text);
	struct plumb_builder *builder = plumb_trace_builder(trace);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strstr(text, words[i].word))
			return plumb_builder_text(builder, words[i].name);
	return plumb_builder_string(builder, name.at, name.bytes);
}

uint32_t
plumb_import_range(struct plumb_trace *trace, struct plumb_slice name)
{
	uint32_t kind = PLUMB_FRAME_RANGE;
	const char *number = name.at ? memmem(name.at, name.bytes, ", op_id = ", 10) : NULL;
	const char *sequence = name.at ? memmem(name.at, name.bytes, ", seq = ", 8) : NULL;
	const char *cut = sequence && (!number || sequence < number) ? sequence : number;
	if (cut && cut > name.at) {
		name.bytes = (size_t)(cut - name.at);
		bool spaced = memchr(name.at, ' ', name.bytes) &&
		              !plumb_slice_begins(name, "autograd::engine::");
		if (sequence == cut || (memmem(name.at, name.bytes, "::", 2) && !spaced))
			kind = PLUMB_FRAME_OPERATOR;
	}
	return plumb_trace_frame(trace, kind, name);
}
