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

enum plumb_memory_kind
plumb_import_memory(struct plumb_slice text)
{
	static const struct {
		const char *word;
		enum plumb_memory_kind kind;
	} words[] = {
		{ "pageable", PLUMB_MEMORY_PAGEABLE }, { "pinned", PLUMB_MEMORY_PINNED },
		{ "device", PLUMB_MEMORY_DEVICE },     { "managed", PLUMB_MEMORY_MANAGED },
		{ "unified", PLUMB_MEMORY_MANAGED },   { "array", PLUMB_MEMORY_ARRAY },
		{ "host", PLUMB_MEMORY_HOST },         { "peer", PLUMB_MEMORY_PEER_DEVICE },
		{ "unknown", PLUMB_MEMORY_UNKNOWN },
	};
	for (size_t i = 0; text.at && i < sizeof words / sizeof *words; i++)
		if (plumb_slice_begins(text, words[i].word))
			return words[i].kind;
	return PLUMB_MEMORY_NONE;
}

enum plumb_memory_kind
plumb_import_memory_letter(char letter)
{
	return letter == 'H'   ? PLUMB_MEMORY_PINNED
	       : letter == 'D' ? PLUMB_MEMORY_DEVICE
	       : letter == 'S' ? PLUMB_MEMORY_MANAGED
	       : letter == 'M' ? PLUMB_MEMORY_PAGEABLE
	                       : PLUMB_MEMORY_UNKNOWN;
}

/* "htod", "hosttodevice": what is moved where. */
static struct plumb_transfer
direction_of(const char *text)
{
	static const struct {
		const char *letters, *words;
		struct plumb_transfer transfer;
	} directions[] = {
		{ "htod", "hosttodevice", { PLUMB_MEMORY_HOST, PLUMB_MEMORY_DEVICE } },
		{ "dtoh", "devicetohost", { PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_HOST } },
		{ "dtod", "devicetodevice", { PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_DEVICE } },
		{ "ptop", "peertopeer", { PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_PEER_DEVICE } },
		{ "htoh", "hosttohost", { PLUMB_MEMORY_HOST, PLUMB_MEMORY_HOST } },
		{ "htoa", "hosttoarray", { PLUMB_MEMORY_HOST, PLUMB_MEMORY_ARRAY } },
		{ "atoh", "arraytohost", { PLUMB_MEMORY_ARRAY, PLUMB_MEMORY_HOST } },
		{ "atoa", "arraytoarray", { PLUMB_MEMORY_ARRAY, PLUMB_MEMORY_ARRAY } },
		{ "atod", "arraytodevice", { PLUMB_MEMORY_ARRAY, PLUMB_MEMORY_DEVICE } },
		{ "dtoa", "devicetoarray", { PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_ARRAY } },
	};
	for (size_t i = 0; i < sizeof directions / sizeof *directions; i++)
		if (strstr(text, directions[i].letters) || strstr(text, directions[i].words))
			return directions[i].transfer;
	return (struct plumb_transfer){ PLUMB_MEMORY_UNKNOWN, PLUMB_MEMORY_UNKNOWN };
}

static enum plumb_memory_kind
memory_of(const char *text)
{
	return plumb_import_memory((struct plumb_slice){ text, strlen(text) });
}

uint32_t
plumb_import_copy(struct plumb_trace *trace, struct plumb_slice name)
{
	char text[256];
	simplify_name(name, text, sizeof text);
	const char *open = strchr(text, '(');
	if (strstr(text, "memset") || strstr(text, "fill") || !strncmp(text, "set", 3)) {
		enum plumb_memory_kind kind = open ? memory_of(open + 1) : PLUMB_MEMORY_NONE;
		return plumb_trace_set_frame(trace, kind ? kind : PLUMB_MEMORY_DEVICE);
	}
	struct plumb_transfer transfer = direction_of(text);
	enum plumb_memory_kind from = transfer.from, to = transfer.to;
	const char *arrow = open ? strchr(open, '>') : NULL;
	if (arrow) {
		enum plumb_memory_kind exact_from = memory_of(open + 1);
		enum plumb_memory_kind exact_to = memory_of(arrow + 1);
		if (exact_from && exact_from != PLUMB_MEMORY_UNKNOWN)
			from = exact_from;
		if (exact_to && exact_to != PLUMB_MEMORY_UNKNOWN && to != PLUMB_MEMORY_PEER_DEVICE)
			to = exact_to;
	}
	return plumb_trace_copy_frame(trace, from, to);
}

struct plumb_ends
plumb_import_ends(struct plumb_trace *trace, uint32_t frame, uint32_t track, int64_t to)
{
	struct plumb_builder *builder = plumb_trace_builder(trace);
	const struct plumb_frame *copy = plumb_builder_get_frame(builder, frame);
	const struct plumb_track *stream = plumb_builder_get_track(builder, track);
	if (!copy || !stream || !(copy->transfer.to & PLUMB_MEMORY_PEER) || to == PLUMB_UNKNOWN)
		return (struct plumb_ends){ 0, 0 };
	uint32_t process = stream->process, from = stream->device;
	return plumb_trace_ends(from, plumb_trace_device(trace, process, to, NULL));
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
