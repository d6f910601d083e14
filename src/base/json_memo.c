/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memo is the text of an object, cut where its numbers are. Those that may be next are found by
 * what stands before the key: objects of one name are often written in the same order again, so
 * the one that followed last time is compared first. Comparing is memcmp, many bytes at a time, so
 * a wrong one costs little, and what is found has been compared whole.
 *
 * A file whose objects are all different costs a look per object until CREDIT is used up.
 */
#include "base/json_memo.h"

#include <stdlib.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/hash.h"
#include "base/json_pull_private.h"
#include "base/vec.h"

#define NUMBERS_MAX 32
#define OBJECT_MAX 8192 /* bytes of its text */
#define HEAD_MAX 4096   /* so far the key is looked for */
#define MEMOS_MAX 16384
#define BYTES_MAX ((size_t)8 << 20) /* of all memos */
#define SLOTS 4096
#define STARTS 64
#define TAILS 8192
#define TAIL_MAX 4096 /* so far the end of an object is looked for */
#define TRIES 4
#define CREDIT 16384 /* so many more objects may be unknown than known, lately */

struct plumb_pull_notes {
	const char *start; /* of the object; NULL: it is not to be kept */
	uint64_t hash;
	const char *key;
	uint32_t *tail; /* two for the memo, or NULL */
	uint32_t count;
	struct note {
		const char *at, *end;
		int64_t *into;
		int scale;
	} items[NUMBERS_MAX];
};

/* A text, and the number after it. After the last text there is no number. */
struct piece {
	uint32_t bytes;
	int16_t scale;
	bool skipped, last;
	int64_t *into;
};

struct memo {
	uint32_t link;  /* the next with this slot, plus 1 */
	uint32_t next;  /* the one that came after it last time, plus 1 */
	uint32_t after; /* of this slot, the one that came after it last time, plus 1 */
	const char *text;
	const void *what;
	struct piece pieces[];
};

/* Memos by what stands before the key. All of them are numbers of memos plus 1. */
struct slot {
	uint32_t first, last, expected;
};

struct plumb_memos {
	char key[4];
	size_t what_bytes, bytes;
	int credit;
	uint32_t previous; /* the memo of the object before, plus 1; 0: it had none */
	PLUMB_VEC(struct memo *) items;
	struct slot slots[SLOTS];
	uint32_t tails[TAILS]
		      [2]; /* the last two by what stands before the key and behind some number */
	/* By the first bytes of an object: where a number stands before the key; 0: none. */
	uint16_t starts[STARTS];
	struct plumb_pull_notes notes;
};

struct plumb_memos *
plumb_memos_new(const char *key, size_t bytes)
{
	struct plumb_memos *memos = calloc(1, sizeof *memos);
	if (!memos)
		return NULL;
	memcpy(memos->key, key, sizeof memos->key);
	memos->what_bytes = bytes;
	memos->credit = CREDIT;
	return memos;
}

void
plumb_memos_forget(struct plumb_memos *memos)
{
	if (!memos->items.count)
		return;
	for (uint32_t i = 0; i < memos->items.count; i++)
		free(memos->items.items[i]);
	memos->items.count = 0;
	memos->bytes = 0;
	memos->previous = 0;
	memset(memos->slots, 0, sizeof memos->slots);
	memset(memos->tails, 0, sizeof memos->tails);
}

void
plumb_memos_free(struct plumb_memos *memos)
{
	if (!memos)
		return;
	plumb_memos_forget(memos);
	plumb_vec_free(&memos->items);
	free(memos);
}

/* ---- what an object is known by ---- */

static inline uint64_t
word_at(const char *at)
{
	uint64_t word;
	memcpy(&word, at, sizeof word);
	return word;
}

/* Where KEY is, from AT to END, or NULL. So many bytes can be read after END: see json_pull.c. */
static inline const char *
find_key(const char *key, const char *at, const char *end)
{
#if defined(__SSE2__)
	/* The two letters: quotation marks are everywhere. */
	const __m128i second = _mm_set1_epi8(key[1]), third = _mm_set1_epi8(key[2]);
	for (; at < end; at += 16) {
		__m128i a = _mm_loadu_si128((const __m128i *)(const void *)(at + 1));
		__m128i b = _mm_loadu_si128((const __m128i *)(const void *)(at + 2));
		unsigned found = (unsigned)_mm_movemask_epi8(
			_mm_and_si128(_mm_cmpeq_epi8(a, second), _mm_cmpeq_epi8(b, third)));
		for (; found; found &= found - 1) {
			const char *there = at + __builtin_ctz(found);
			if (there[0] == key[0] && there[3] == key[3])
				return there < end ? there : NULL;
		}
	}
	return NULL;
#else
	return at < end ? memmem(at, (size_t)(end - at), key, 4) : NULL;
#endif
}

static inline uint16_t *
start_of(struct plumb_memos *memos, const char *at)
{
	return &memos->starts[plumb_hash_mix(word_at(at), word_at(at + 8)) % STARTS];
}

/* A hash of the first bytes, and of the last ones before the key. A number before the key is not
 * part of it. False: there is no key nearby. */
static inline bool
hash_head(struct plumb_memos *memos, const struct plumb_pull *pull)
{
	struct plumb_pull_notes *notes = &memos->notes;
	const char *at = pull->at, *from = at + *start_of(memos, at), *end = pull->end;
	if (end - at > HEAD_MAX)
		end = at + HEAD_MAX;
	if (from > at)
		while (from < end && plumb_pull_is_digit(*from))
			from++;
	notes->key = find_key(memos->key, from, end);
	if (!notes->key)
		return false;
	uint64_t length = (uint64_t)(notes->key - from);
	uint64_t one = plumb_hash_mix(word_at(at), word_at(at + 8)), two = length;
	for (const char *back = notes->key - 16; back >= from && notes->key - back <= 64;
	     back -= 16) {
		one = plumb_hash_mix(one, word_at(back));
		two = plumb_hash_mix(two, word_at(back + 8));
	}
	notes->hash = plumb_hash_mix(one, two);
	return true;
}

/* Objects of one name may differ far behind, in a text after FROM: where one like it goes in
 * `tails`. The text ends before the last number of the object, which is mostly a running one. */
static inline uint32_t *
tail_of(struct plumb_memos *memos, const struct plumb_pull *pull, const char *from)
{
	size_t room = (size_t)(pull->end - from);
	const char *end = memchr(from, '}', room < TAIL_MAX ? room : TAIL_MAX);
	if (!end)
		return NULL;
	while (end > from && (plumb_pull_is_digit(end[-1]) || plumb_pull_ends_number(end[-1])))
		end--;
	uint64_t hash =
		plumb_hash_mix(memos->notes.hash, plumb_hash_bytes(from, (size_t)(end - from)));
	return memos->tails[hash % TAILS];
}

static void
put_tail(uint32_t *tail, uint32_t number)
{
	if (tail) {
		tail[1] = tail[0];
		tail[0] = number;
	}
}

/* ---- finding ---- */

/* Reads the object if it is as MEMO. Else *FROM is where a text of it begins that is not alike. */
static inline bool
read_as(const struct memo *memo, struct plumb_pull *pull, const char **from)
{
	const char *at = pull->at, *text = memo->text;
	for (const struct piece *piece = memo->pieces;; piece++) {
		*from = at;
		if ((size_t)(pull->end - at) < piece->bytes || memcmp(at, text, piece->bytes) != 0)
			return false;
		at += piece->bytes;
		text += piece->bytes;
		if (piece->last)
			break;
		if (piece->into ? !plumb_pull_take_number(&at, piece->scale, piece->into)
		                : !plumb_pull_skip_number(&at))
			return false;
	}
	pull->at = at;
	pull->first = false;
	return true;
}

/* The number of the memo that is read, plus 1; 0: none. */
static uint32_t
try_slot(struct plumb_memos *memos, const struct slot *slot, struct plumb_pull *pull)
{
	struct memo **items = memos->items.items;
	uint32_t expected = slot->expected, tries = 0;
	const char *from, *other;
	if (!expected)
		return 0;
	if (read_as(items[expected - 1], pull, &from))
		return expected;
	uint32_t *tail = tail_of(memos, pull, from), found;
	memos->notes.tail = tail;
	for (int i = 0; tail && i < 2; i++)
		if (tail[i] && read_as(items[tail[i] - 1], pull, &other))
			return tail[i];
	for (found = slot->first; found && tries < TRIES; found = items[found - 1]->link, tries++)
		if (found != expected && read_as(items[found - 1], pull, &other)) {
			put_tail(tail, found);
			return found;
		}
	return 0;
}

/* The object is as MEMO, a number plus 1. */
static const void *
use_memo(struct plumb_memos *memos, uint32_t memo)
{
	struct memo **items = memos->items.items;
	if (memos->previous)
		items[memos->previous - 1]->next = memo;
	memos->previous = memo;
	uint32_t next = items[memo - 1]->next;
	if (next)
		__builtin_prefetch(items[next - 1]);
	return items[memo - 1]->what;
}

const void *
plumb_memos_find(struct plumb_memos *memos, struct plumb_pull *pull)
{
	struct plumb_pull_notes *notes = &memos->notes;
	struct memo **items = memos->items.items;
	const char *from;
	pull->notes = NULL;
	notes->start = NULL;
	if (memos->credit <= 0 || plumb_pull_next(pull) != '{')
		return NULL;
	uint32_t found = memos->previous ? items[memos->previous - 1]->next : 0;
	if (found && read_as(items[found - 1], pull, &from)) {
		memos->credit += memos->credit < CREDIT;
		return use_memo(memos, found);
	}
	if (!hash_head(memos, pull))
		return NULL;
	notes->tail = NULL;
	struct slot *slot = &memos->slots[notes->hash % SLOTS];
	found = try_slot(memos, slot, pull);
	if (!found) {
		memos->credit--;
		notes->start = pull->at;
		notes->count = 0;
		pull->notes = notes;
		return NULL;
	}
	memos->credit += memos->credit < CREDIT;
	if (slot->last)
		items[slot->last - 1]->after = found;
	slot->last = found;
	slot->expected = items[found - 1]->after ? items[found - 1]->after : found;
	return use_memo(memos, found);
}

/* ---- keeping ---- */

void
plumb_pull_note(struct plumb_pull *pull, const char *from, int scale, int64_t *into)
{
	struct plumb_pull_notes *notes = pull->notes;
	const char *at = from;
	int64_t number;
	if (pull->state != PLUMB_PULL_OK || !notes->start)
		return;
	bool usual =
		into ? plumb_pull_take_number(&at, scale, &number) : plumb_pull_skip_number(&at);
	if (!usual && !into)
		return; /* null, or a number that then is always the same */
	if (!usual || at != pull->at || notes->count == NUMBERS_MAX) {
		notes->start = NULL;
		return;
	}
	notes->items[notes->count++] = (struct note){ from, at, into, scale };
}

/* The text from START to END, which has these numbers. */
static struct memo *
make_memo(const struct plumb_memos *memos, const char *end, size_t *bytes)
{
	const struct plumb_pull_notes *notes = &memos->notes;
	size_t head = sizeof(struct memo) + (notes->count + 1) * sizeof(struct piece);
	size_t what = (memos->what_bytes + 7) / 8 * 8;
	*bytes = head + what + (size_t)(end - notes->start);
	struct memo *memo = malloc(*bytes);
	if (!memo)
		return NULL;
	char *to = (char *)memo + head + what;
	const char *from = notes->start;
	memo->what = (char *)memo + head;
	memo->text = to;
	for (uint32_t i = 0; i <= notes->count; i++) {
		bool last = i == notes->count;
		const struct note *note = &notes->items[last ? 0 : i];
		size_t length = (size_t)((last ? end : note->at) - from);
		memo->pieces[i] = (struct piece){ .bytes = (uint32_t)length, .last = last };
		memcpy(to, from, length);
		to += length;
		if (last)
			break;
		memo->pieces[i].scale = (int16_t)note->scale;
		memo->pieces[i].into = note->into;
		from = note->end;
	}
	return memo;
}

void
plumb_memos_keep(struct plumb_memos *memos, struct plumb_pull *pull, const void *what)
{
	struct plumb_pull_notes *notes = &memos->notes;
	const char *start = notes->start, *end = pull->at;
	pull->notes = NULL;
	notes->start = NULL;
	if (!start || end - start > OBJECT_MAX)
		return;
	if (notes->count && notes->items[0].at < notes->key &&
	    notes->items[0].at != start + *start_of(memos, start)) {
		*start_of(memos, start) = (uint16_t)(notes->items[0].at - start);
		return; /* its hash has that number in it */
	}
	if (memos->items.count == MEMOS_MAX || memos->bytes > BYTES_MAX)
		plumb_memos_forget(memos);
	size_t bytes;
	notes->start = start;
	struct memo *memo = make_memo(memos, end, &bytes);
	notes->start = NULL;
	struct memo **added = memo ? plumb_vec_add(&memos->items) : NULL;
	if (!added) {
		free(memo);
		return;
	}
	struct slot *slot = &memos->slots[notes->hash % SLOTS];
	memcpy((char *)(uintptr_t)memo->what, what, memos->what_bytes);
	memo->link = slot->first;
	memo->after = memo->next = 0;
	*added = memo;
	memos->bytes += bytes;
	slot->first = memos->items.count;
	put_tail(notes->tail, slot->first);
	if (slot->last)
		memos->items.items[slot->last - 1]->after = slot->first;
	slot->last = slot->expected = slot->first;
	use_memo(memos, slot->first);
}
