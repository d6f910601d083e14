/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a list of events twice, with memos and without, and compares. */
#ifndef PLUMB_TESTS_JSON_MEMO_CHECK_H
#define PLUMB_TESTS_JSON_MEMO_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json_fields.h"
#include "base/json_memo.h"

#define MEMO_UNKNOWN INT64_MIN
#define MEMO_NUMBERS 5

struct memo_event {
	struct plumb_slice name, raw;
	int64_t pid;
	struct plumb_slice pid_text;
	int64_t numbers[MEMO_NUMBERS];
	struct plumb_slice id_text; /* behind the number 4 */
};

/* What an event says but for its numbers, and which numbers it has. */
struct memo_what {
	uint64_t hash;
	bool has[MEMO_NUMBERS];
};

struct memo_list {
	struct memo_event event; /* that is read */
	struct memo_one {
		struct memo_what what;
		int64_t numbers[MEMO_NUMBERS];
	} *items;
	uint32_t count, known;
	struct plumb_error error;
};

#define MEMO_AT(member) PLUMB_PULL_AT(struct memo_event, member)
static const struct plumb_pull_field memo_arguments[] = {
	PLUMB_PULL_FIELD("External id", INTEGER, MEMO_AT(numbers[2]), .varies = true),
	PLUMB_PULL_FIELD("Input Dims", RAW, MEMO_AT(raw)),
	PLUMB_PULL_FIELD("bytes", INTEGER, MEMO_AT(numbers[3]), .varies = true),
	{ 0 },
};
static const struct plumb_pull_field memo_fields[] = {
	PLUMB_PULL_FIELD("name", TEXT, MEMO_AT(name)),
	PLUMB_PULL_FIELD("pid", EITHER, MEMO_AT(pid)),
	PLUMB_PULL_FIELD("ts", MICROS, MEMO_AT(numbers[0]), .varies = true),
	PLUMB_PULL_FIELD("dur", MICROS, MEMO_AT(numbers[1]), .varies = true),
	PLUMB_PULL_FIELD("args", OBJECT, .inner = memo_arguments),
	PLUMB_PULL_FIELD("id", EITHER, MEMO_AT(numbers[4]), .varies = true),
	{ 0 },
};
#undef MEMO_AT

static inline uint64_t
memo_mix(uint64_t hash, struct plumb_slice text)
{
	return plumb_hash_mix(hash, text.at ? plumb_hash_bytes(text.at, text.bytes) : 0);
}

static inline struct memo_what
memo_find_out(const struct memo_event *event)
{
	struct memo_what what = { 0 };
	what.hash = memo_mix(memo_mix((uint64_t)event->pid, event->name), event->raw);
	what.hash = memo_mix(memo_mix(what.hash, event->pid_text), event->id_text);
	for (int i = 0; i < MEMO_NUMBERS; i++)
		what.has[i] = event->numbers[i] != MEMO_UNKNOWN;
	return what;
}

static inline void
memo_add(struct memo_list *list, const struct memo_what *what)
{
	if (!(list->count &
	      (list->count - 1))) { /* it is full: AddressSanitizer copies at each realloc() */
		list->items = realloc(list->items,
		                      (list->count ? 2 * list->count : 1) * sizeof *list->items);
		if (!list->items)
			abort();
	}
	struct memo_one *one = &list->items[list->count++];
	one->what = *what;
	for (int i = 0; i < MEMO_NUMBERS; i++)
		one->numbers[i] = what->has[i] ? list->event.numbers[i] : MEMO_UNKNOWN;
}

static inline void
memo_read(struct memo_list *list, const char *text, size_t bytes, struct plumb_memos *memos)
{
	struct plumb_pull pull;
	struct memo_event *event = &list->event;
	bool more = false;
	if (plumb_pull_open_text(&pull, text, bytes, &list->error) < 0)
		abort();
	PLUMB_PULL_WHOLE(&pull)
	more = plumb_pull_enter(&pull, '[');
	while (more) {
		const struct memo_what *known = NULL;
		PLUMB_PULL_WHOLE(&pull)
		{
			*event = (struct memo_event){ .pid = MEMO_UNKNOWN };
			for (int i = 0; i < MEMO_NUMBERS; i++)
				event->numbers[i] = MEMO_UNKNOWN;
			more = plumb_pull_item(&pull);
			known = more && memos ? plumb_memos_find(memos, &pull) : NULL;
			if (more && !known)
				plumb_pull_object(&pull, memo_fields, event, NULL);
		}
		if (!more || plumb_pull_failed(&pull))
			break;
		struct memo_what what = known ? *known : memo_find_out(event);
		memo_add(list, &what);
		list->known += known != NULL;
		if (memos && !known)
			plumb_memos_keep(memos, &pull, &what);
	}
	if (plumb_pull_failed(&pull))
		plumb_pull_error(&pull, "text", &list->error);
	plumb_pull_close(&pull);
}

/* NULL: both are equal; *KNOWN events were read by memos. Else what is not. */
static inline const char *
memo_check(const char *text, size_t bytes, uint32_t *known)
{
	struct memo_list plain = { 0 }, with = { 0 };
	struct plumb_memos *memos = plumb_memos_new("\"ts\"", sizeof(struct memo_what));
	const char *fault = NULL;
	memo_read(&plain, text, bytes, NULL);
	memo_read(&with, text, bytes, memos);
	if (plain.count != with.count)
		fault = "the number of events";
	else if (strcmp(plain.error.message, with.error.message) != 0)
		fault = "the error";
	for (uint32_t i = 0; i < plain.count && !fault; i++) {
		const struct memo_one *a = &plain.items[i], *b = &with.items[i];
		if (a->what.hash != b->what.hash ||
		    memcmp(a->what.has, b->what.has, sizeof a->what.has) != 0)
			fault = "what an event says";
		else if (memcmp(a->numbers, b->numbers, sizeof a->numbers) != 0)
			fault = "a number";
	}
	*known = with.known;
	plumb_memos_free(memos);
	free(plain.items);
	free(with.items);
	return fault;
}

#endif
