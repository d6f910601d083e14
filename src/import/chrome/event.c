/* SPDX-License-Identifier: Apache-2.0 */
#include "import/chrome/event.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"

/* ---- an event ---- */

static void
read_phase(struct plumb_pull *pull, void *phase, void *own)
{
	struct plumb_slice text;
	(void)own;
	if (plumb_pull_text(pull, &text) && text.bytes)
		*(char *)phase = text.at[0];
}

/* "name" is a thread's or process's; what else there is, the dialect knows. */
static void
read_arguments(struct plumb_pull *pull, void *into, void *own)
{
	static const struct plumb_pull_field none[] = { { 0 } };
	struct plumb_chrome *chrome = own;
	const struct plumb_chrome_dialect *dialect = chrome->dialect;
	const struct plumb_pull_field *fields = dialect->arguments ? dialect->arguments : none;
	const struct plumb_pull_field *next = fields;
	struct plumb_chrome_event *event = into;
	struct plumb_slice key;
	chrome->event = event;
	if ((dialect->wants && !dialect->wants(chrome, event)) || !plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	for (;;) {
		if (plumb_pull_next_field(pull, &next, chrome->own, chrome))
			continue;
		if (!plumb_pull_member(pull, &key))
			return;
		if (plumb_slice_is(key, "name"))
			plumb_pull_text(pull, &event->given_name);
		else
			plumb_pull_value(pull, fields, &next, key, chrome->own, chrome);
	}
}

/* {"local": "0x1"} or {"global": "0x1"} */
#define AT(member) PLUMB_PULL_AT(struct plumb_chrome_event, member)
static const struct plumb_pull_field second_id_fields[] = {
	{ .kind = PLUMB_PULL_EITHER, AT(id) },
};

static const struct plumb_pull_field event_fields[] = {
	PLUMB_PULL_FIELD("ph", CALL, AT(phase), .read = read_phase),
	PLUMB_PULL_FIELD("cat", TEXT, AT(category)),
	PLUMB_PULL_FIELD("name", TEXT, AT(name)),
	PLUMB_PULL_FIELD("pid", EITHER, AT(pid)),
	PLUMB_PULL_FIELD("tid", EITHER, AT(tid)),
	PLUMB_PULL_FIELD("ts", MICROS, AT(start), .varies = true),
	PLUMB_PULL_FIELD("dur", MICROS, AT(duration), .varies = true),
	PLUMB_PULL_FIELD("args", CALL, .read = read_arguments),
	PLUMB_PULL_FIELD("id", EITHER, AT(id), .varies = true),
	PLUMB_PULL_FIELD("id2", OBJECT, .inner = second_id_fields),
	{ 0 },
};
#undef AT

static void
read_event(struct plumb_chrome *chrome, struct plumb_chrome_event *event)
{
	*event = (struct plumb_chrome_event){
		.pid = PLUMB_UNKNOWN,
		.tid = PLUMB_UNKNOWN,
		.id = PLUMB_UNKNOWN,
		.start = PLUMB_UNKNOWN,
		.duration = PLUMB_UNKNOWN,
	};
	if (chrome->dialect->begin)
		chrome->dialect->begin(chrome);
	plumb_pull_object(&chrome->pull, event_fields, event, chrome);
	chrome->pull.notes = NULL;
}

/* ---- names ---- */

int64_t
plumb_chrome_number(int64_t number, struct plumb_slice text)
{
	if (number != PLUMB_UNKNOWN || !text.at)
		return number;
	return (int64_t)(plumb_hash_bytes(text.at, text.bytes) >> 1);
}

/* In `names`, or PLUMB_MAP_NONE. */
static uint32_t
find_name(const struct plumb_chrome *chrome, int64_t pid, int64_t tid)
{
	struct plumb_map_cursor at;
	uint64_t hash = plumb_hash_mix((uint64_t)pid, (uint64_t)tid);
	for (uint32_t i = plumb_map_first(&chrome->name_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&chrome->name_map, &at))
		if (chrome->names.items[i].pid == pid && chrome->names.items[i].tid == tid)
			return i;
	return PLUMB_MAP_NONE;
}

/* Writers repeat names with every flush: the last one stands. */
static void
keep_name(struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	bool thread = plumb_slice_is(event->name, "thread_name");
	int64_t pid = plumb_chrome_number(event->pid, event->pid_text);
	int64_t tid = plumb_chrome_number(event->tid, event->tid_text);
	if ((!thread && !plumb_slice_is(event->name, "process_name")) || !event->given_name.at ||
	    pid == PLUMB_UNKNOWN || (thread && tid == PLUMB_UNKNOWN))
		return;
	tid = thread ? tid : PLUMB_UNKNOWN;
	uint32_t at = find_name(chrome, pid, tid);
	struct plumb_chrome_name *name =
		at != PLUMB_MAP_NONE ? &chrome->names.items[at] : plumb_vec_add(&chrome->names);
	if (!name)
		return; /* without memory the builder says so */
	struct plumb_builder *builder = plumb_trace_builder(chrome->trace);
	struct plumb_slice text = event->given_name;
	uint32_t string = thread ? plumb_builder_string(builder, text.at, text.bytes)
	                         : plumb_builder_command(builder, text.at, text.bytes);
	if (!thread && (at == PLUMB_MAP_NONE || name->name != string)) {
		chrome->named++;
		if (chrome->memos)
			plumb_memos_forget(chrome->memos);
	}
	*name = (struct plumb_chrome_name){ pid, tid, string };
	if (at == PLUMB_MAP_NONE)
		plumb_map_add(&chrome->name_map, plumb_hash_mix((uint64_t)pid, (uint64_t)tid),
		              chrome->names.count - 1);
}

const char *
plumb_chrome_name_of(const struct plumb_chrome *chrome, int64_t pid, int64_t tid)
{
	uint32_t at = find_name(chrome, pid, tid);
	return at == PLUMB_MAP_NONE ? NULL
	                            : plumb_builder_get_text(plumb_trace_builder(chrome->trace),
	                                                     chrome->names.items[at].name);
}

void
plumb_chrome_give_names(struct plumb_chrome *chrome)
{
	struct plumb_builder *builder = plumb_trace_builder(chrome->trace);
	for (uint32_t i = 0; i < chrome->names.count; i++) {
		const struct plumb_chrome_name *named = &chrome->names.items[i];
		uint32_t process = plumb_trace_has_process(chrome->trace, named->pid), track;
		if (process == PLUMB_NONE)
			continue;
		if (named->tid == PLUMB_UNKNOWN) {
			plumb_builder_get_process(builder, process)->command = named->name;
			continue;
		}
		track = plumb_trace_has_thread(chrome->trace, process, named->tid);
		if (track != PLUMB_NONE)
			plumb_builder_get_track(builder, track)->name = named->name;
	}
}

uint32_t
plumb_chrome_process(struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	struct plumb_builder *builder = plumb_trace_builder(chrome->trace);
	int64_t number = plumb_chrome_number(event->pid, event->pid_text);
	uint32_t process = plumb_trace_has_process(chrome->trace, number);
	if (process != PLUMB_NONE || event->pid != PLUMB_UNKNOWN || !event->pid_text.at)
		return process != PLUMB_NONE ? process : plumb_trace_process(chrome->trace, number);
	process = plumb_trace_process(chrome->trace, number);
	uint32_t name = plumb_builder_string(builder, event->pid_text.at, event->pid_text.bytes);
	if (process != PLUMB_NONE) {
		plumb_builder_get_process(builder, process)->pid = PLUMB_UNKNOWN;
		plumb_builder_get_process(builder, process)->command = name;
	}
	return process;
}

uint32_t
plumb_chrome_thread(struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	struct plumb_builder *builder = plumb_trace_builder(chrome->trace);
	uint32_t process = plumb_chrome_process(chrome, event);
	int64_t number = plumb_chrome_number(event->tid, event->tid_text);
	uint32_t track = plumb_trace_has_thread(chrome->trace, process, number);
	if (track != PLUMB_NONE)
		return track;
	track = plumb_trace_thread(chrome->trace, process, number);
	if (event->tid == PLUMB_UNKNOWN && event->tid_text.at && track != PLUMB_NONE) {
		uint32_t name =
			plumb_builder_string(builder, event->tid_text.at, event->tid_text.bytes);
		plumb_builder_get_track(builder, track)->tid = PLUMB_UNKNOWN;
		plumb_builder_get_track(builder, track)->name = name;
	}
	return track;
}

int64_t
plumb_chrome_end(const struct plumb_chrome_event *event)
{
	int64_t end;
	if (event->start == PLUMB_UNKNOWN || event->duration == PLUMB_UNKNOWN ||
	    __builtin_add_overflow(event->start, event->duration, &end))
		return PLUMB_UNKNOWN;
	return end;
}

/* ---- the file ---- */

static void
read_events(struct plumb_chrome *chrome, bool unclosed)
{
	struct plumb_pull *pull = &chrome->pull;
	struct plumb_memos *memos = chrome->memos;
	struct plumb_chrome_event *event = &chrome->read;
	const void *memo = NULL;
	bool more = false;
	PLUMB_PULL_WHOLE(pull)
	more = plumb_pull_enter(pull, '[');
	if (!more)
		plumb_pull_reject(pull, "expected a list of events");
	while (more) {
		PLUMB_PULL_WHOLE(pull)
		{
			more = !(unclosed && plumb_pull_is_over(pull)) && plumb_pull_item(pull);
			memo = more && memos ? plumb_memos_find(memos, pull) : NULL;
			if (more && !memo)
				read_event(chrome, event);
		}
		if (!more || plumb_pull_failed(pull))
			return;
		if (memo)
			chrome->dialect->again(chrome, memo);
		else if (event->phase == 'M' && chrome->trace)
			keep_name(chrome, event);
		else
			chrome->dialect->take(chrome, event);
	}
}

void
plumb_chrome_keep(struct plumb_chrome *chrome, const void *memo)
{
	if (chrome->memos)
		plumb_memos_keep(chrome->memos, &chrome->pull, memo);
}

static void
read_trace_events(void *own)
{
	read_events(own, false);
}

static void
read_other_part(void *own)
{
	static const struct plumb_pull_part none[] = { { 0 } };
	struct plumb_chrome *chrome = own;
	const struct plumb_pull_part *parts = chrome->dialect->parts;
	plumb_pull_part(&chrome->pull, parts ? parts : none, chrome);
}

int
plumb_chrome_read(struct plumb_chrome *chrome, struct plumb_import_file *file,
                  struct plumb_error *error)
{
	static const struct plumb_pull_part parts[] = { { "traceEvents", read_trace_events },
		                                        { NULL, read_other_part } };
	struct plumb_pull *pull = &chrome->pull;
	bool object = false;
	int code = plumb_pull_open(pull, file->input, error);
	if (code)
		return code;
	if (chrome->dialect->again) /* without memory, all events are read */
		chrome->memos = plumb_memos_new("\"ts\"", chrome->dialect->memo_bytes);
	PLUMB_PULL_WHOLE(pull)
	object = plumb_pull_enter(pull, '{');
	if (object)
		plumb_pull_parts(pull, parts, chrome);
	else
		read_events(chrome, chrome->dialect->unclosed);
	return plumb_pull_failed(pull) ? plumb_pull_error(pull, file->path, error) : 0;
}

void
plumb_chrome_free(struct plumb_chrome *chrome)
{
	plumb_pull_close(&chrome->pull);
	plumb_memos_free(chrome->memos);
	plumb_vec_free(&chrome->names);
	plumb_map_free(&chrome->name_map);
}

bool
plumb_chrome_is_json(const struct plumb_import_file *file)
{
	const char *at = plumb_import_text(file);
	return *at == '{' || *at == '[';
}

bool
plumb_chrome_is_json_text(const struct plumb_import_file *file)
{
	size_t bytes = file->head_bytes < 256 ? file->head_bytes : 256;

	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)file->head[i] < ' ' && !strchr("\t\r\n", file->head[i]))
			return false;
	return plumb_chrome_is_json(file);
}
