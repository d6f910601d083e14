/* SPDX-License-Identifier: Apache-2.0 */
/* What earlier packets said: interned texts, and how clocks relate. */
#include "import/perfetto/perfetto.h"

#include "base/hash.h"
#include "base/perfetto.h"
#include "base/search.h"

/* Clocks of these numbers are a sequence's own. */
#define OWN_FIRST 64u
#define OWN_LAST 127u
#define SNAPSHOT_MOST 64u

/* ---- interned ---- */

void
perfetto_forget(struct perfetto_sequence *sequence)
{
	plumb_vec_free(&sequence->entries);
	plumb_map_free(&sequence->map);
	plumb_vec_free(&sequence->text);
	plumb_vec_free(&sequence->chains);
	sequence->track = sequence->clock = 0;
	sequence->sample_ns = 0;
}

struct perfetto_entry *
perfetto_find(const struct perfetto_sequence *sequence, enum perfetto_table table, uint64_t number)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&sequence->map, plumb_hash_mix(number, table), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&sequence->map, &at))
		if (sequence->entries.items[i].number == number &&
		    sequence->entries.items[i].table == table)
			return &sequence->entries.items[i];
	return NULL;
}

struct perfetto_entry *
perfetto_add(struct perfetto_sequence *sequence, enum perfetto_table table, uint64_t number)
{
	struct perfetto_entry *entry = perfetto_find(sequence, table, number);
	if (entry)
		return entry;
	entry = plumb_vec_add(&sequence->entries);
	if (!entry || plumb_map_add(&sequence->map, plumb_hash_mix(number, table),
	                            sequence->entries.count - 1) < 0)
		return NULL;
	entry->number = number;
	entry->table = table;
	entry->second = PLUMB_NONE;
	return entry;
}

static bool
keep_name(struct perfetto_sequence *sequence, struct perfetto_entry *entry, struct plumb_slice name)
{
	uint64_t wanted = (uint64_t)sequence->text.count + name.bytes;
	entry->second = PLUMB_NONE;
	entry->value = sequence->text.count;
	entry->bytes = (uint32_t)name.bytes;
	if (wanted > sequence->text.capacity) {
		char *grown =
			plumb_vec_grow(sequence->text.items, &sequence->text.capacity, wanted, 1);
		if (!grown)
			return false;
		sequence->text.items = grown;
	}
	if (name.bytes)
		memcpy(sequence->text.items + sequence->text.count, name.at, name.bytes);
	sequence->text.count = (uint32_t)wanted;
	return true;
}

static bool
keep_fact(struct perfetto_sequence *sequence, uint64_t number, struct plumb_slice name)
{
	for (uint32_t fact = 0; fact < PLUMB_FACT_COUNT; fact++)
		if (plumb_slice_is(name, plumb_fact_names[fact])) {
			struct perfetto_entry *entry =
				perfetto_add(sequence, PERFETTO_FACT, number);
			if (entry)
				entry->value = fact;
			return entry != NULL;
		}
	return true;
}

/* WHOLE: of the entry all is kept, not only its text. */
static bool
intern_entry(struct perfetto_sequence *sequence, const struct plumb_protobuf_field *from,
             enum perfetto_table table, bool whole, bool *no_memory)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(from->bytes);
	struct plumb_protobuf_field f;
	struct plumb_slice name = { "", 0 };
	uint64_t number = 0;
	while (plumb_protobuf_next(&view, &f))
		if (plumb_protobuf_is(&f, ENTRY_NUMBER, PLUMB_PROTOBUF_VARINT))
			number = f.value;
		else if (plumb_protobuf_is(&f, ENTRY_TEXT, PLUMB_PROTOBUF_BYTES))
			name = f.bytes;
	if (view.why)
		return false;
	bool kept;
	if (from->number == INTERNED_ANNOTATION) {
		kept = keep_fact(sequence, number, name);
	} else {
		struct perfetto_entry *entry = perfetto_add(sequence, table, number);
		kept = entry && keep_name(sequence, entry, whole ? from->bytes : name);
	}
	*no_memory |= !kept;
	return true;
}

bool
perfetto_intern(struct perfetto_sequence *sequence, struct plumb_slice bytes, bool *no_memory)
{
	static const struct {
		uint32_t number;
		enum perfetto_table table;
		bool whole;
	} tables[] = {
		{ INTERNED_NAME, PERFETTO_NAME, false },
		{ INTERNED_ANNOTATION, PERFETTO_FACT, false },
		{ INTERNED_FUNCTION, PERFETTO_FUNCTION, false },
		{ INTERNED_PATH, PERFETTO_PATH, false },
		{ INTERNED_SOURCE, PERFETTO_SOURCE, false },
		{ INTERNED_MAPPING, PERFETTO_MAPPING, true },
		{ INTERNED_FRAME, PERFETTO_STACK_FRAME, true },
		{ INTERNED_STACK, PERFETTO_STACK, true },
	};
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	while (plumb_protobuf_next(&view, &f))
		for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
			if (plumb_protobuf_is(&f, tables[i].number, PLUMB_PROTOBUF_BYTES) &&
			    !intern_entry(sequence, &f, tables[i].table, tables[i].whole,
			                  no_memory))
				return false;
	return !view.why;
}

struct plumb_slice
perfetto_text(const struct perfetto_sequence *sequence, const struct perfetto_entry *entry)
{
	return (struct plumb_slice){ entry->bytes ? sequence->text.items + entry->value : "",
		                     entry->bytes };
}

/* ---- clocks ---- */

void
perfetto_clocks_free(struct perfetto_clocks *clocks)
{
	for (uint32_t i = 0; i < clocks->items.count; i++)
		plumb_vec_free(&clocks->items.items[i].readings);
	plumb_vec_free(&clocks->items);
	plumb_map_free(&clocks->map);
}

static uint64_t
key_of(uint32_t sequence, uint64_t number)
{
	bool own = number >= OWN_FIRST && number <= OWN_LAST;
	return (own ? (uint64_t)sequence << 32 : 0) | (number & UINT32_MAX);
}

static struct perfetto_clock *
find_clock(const struct perfetto_clocks *clocks, uint64_t key)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&clocks->map, plumb_hash_mix(key, 0), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&clocks->map, &at))
		if (clocks->items.items[i].key == key)
			return &clocks->items.items[i];
	return NULL;
}

static struct perfetto_clock *
clock_of(struct perfetto_clocks *clocks, uint64_t key)
{
	struct perfetto_clock *clock = find_clock(clocks, key);
	if (clock)
		return clock;
	clock = plumb_vec_add(&clocks->items);
	if (!clock ||
	    plumb_map_add(&clocks->map, plumb_hash_mix(key, 0), clocks->items.count - 1) < 0) {
		clocks->no_memory = true;
		return NULL;
	}
	clock->key = key;
	clock->unit = 1;
	return clock;
}

/* Converts with the newest reading that is not after TIME. */
static int64_t
convert_time(const struct perfetto_clocks *clocks, uint64_t key, int64_t time)
{
	const struct perfetto_clock *clock;
	int64_t since, result;
	if (key == clocks->trace)
		return time;
	clock = find_clock(clocks, key);
	if (!clock || !clock->readings.count)
		return PLUMB_UNKNOWN;
	const struct perfetto_reading *readings = clock->readings.items;
	/* Before all of them the first one goes back. */
	uint32_t low = plumb_search(i, clock->readings.count - 1, readings[i + 1].own <= time);
	if (__builtin_sub_overflow(time, readings[low].own, &since) ||
	    __builtin_add_overflow(readings[low].trace, since, &result))
		return PLUMB_UNKNOWN;
	return result;
}

struct moment {
	uint64_t key;
	int64_t time;
};

static bool
read_clock(struct perfetto_clocks *clocks, uint32_t sequence, struct plumb_slice bytes,
           struct moment *moment)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	uint64_t number = 0, time = 0, unit = 1;
	bool incremental = false;
	while (plumb_protobuf_next(&view, &f)) {
		if (f.wire != PLUMB_PROTOBUF_VARINT)
			continue;
		if (f.number == CLOCK_NUMBER)
			number = f.value;
		else if (f.number == CLOCK_TIME)
			time = f.value;
		else if (f.number == CLOCK_INCREMENTAL)
			incremental = f.value;
		else if (f.number == CLOCK_UNIT && f.value)
			unit = f.value;
	}
	*moment = (struct moment){ key_of(sequence, number), PLUMB_UNKNOWN };
	struct perfetto_clock *clock = clock_of(clocks, moment->key);
	if (view.why || !clock)
		return !view.why;
	if (unit > INT64_MAX || time > INT64_MAX ||
	    __builtin_mul_overflow((int64_t)time, (int64_t)unit, &moment->time)) {
		moment->time = PLUMB_UNKNOWN;
		return true;
	}
	clock->unit = (int64_t)unit;
	clock->incremental = incremental;
	clock->last = moment->time;
	return true;
}

static void
relate_clocks(struct perfetto_clocks *clocks, const struct moment *moment, int64_t trace)
{
	struct perfetto_clock *clock = find_clock(clocks, moment->key);
	if (!clock || moment->time == PLUMB_UNKNOWN || moment->key == clocks->trace)
		return;
	/* One that went back says nothing of the times before. */
	while (clock->readings.count &&
	       clock->readings.items[clock->readings.count - 1].own >= moment->time)
		clock->readings.count--;
	struct perfetto_reading *reading = plumb_vec_add(&clock->readings);
	if (reading)
		*reading = (struct perfetto_reading){ moment->time, trace };
	clocks->no_memory |= !reading;
}

bool
perfetto_clocks_snapshot(struct perfetto_clocks *clocks, uint32_t sequence,
                         struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	struct moment moments[SNAPSHOT_MOST];
	uint32_t count = 0;
	uint64_t primary = 0;
	int64_t now = PLUMB_UNKNOWN;
	while (plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, SNAPSHOT_PRIMARY, PLUMB_PROTOBUF_VARINT))
			primary = f.value;
		else if (plumb_protobuf_is(&f, SNAPSHOT_CLOCK, PLUMB_PROTOBUF_BYTES) &&
		         count < SNAPSHOT_MOST &&
		         !read_clock(clocks, sequence, f.bytes, &moments[count++]))
			return false;
	}
	if (view.why)
		return false;
	if (!clocks->trace)
		clocks->trace = key_of(sequence, primary ? primary : CLOCK_IS_BOOT);
	for (uint32_t i = 0; i < count; i++)
		if (moments[i].key == clocks->trace)
			now = moments[i].time;
	for (uint32_t i = 0; i < count && now == PLUMB_UNKNOWN; i++)
		if (moments[i].time != PLUMB_UNKNOWN)
			now = convert_time(clocks, moments[i].key, moments[i].time);
	for (uint32_t i = 0; i < count && now != PLUMB_UNKNOWN; i++)
		relate_clocks(clocks, &moments[i], now);
	return true;
}

int64_t
perfetto_clocks_time(struct perfetto_clocks *clocks, uint32_t sequence, uint64_t number,
                     uint64_t time)
{
	int64_t own;
	if (time > INT64_MAX)
		return PLUMB_UNKNOWN;
	if (!number)
		return (int64_t)time;
	uint64_t key = key_of(sequence, number);
	struct perfetto_clock *clock = find_clock(clocks, key);
	/* Without any snapshot the first one is the trace's. */
	if (!clocks->trace)
		clocks->trace = key;
	if (!clock)
		return key == clocks->trace ? (int64_t)time : PLUMB_UNKNOWN;
	if (__builtin_mul_overflow((int64_t)time, clock->unit, &own) ||
	    (clock->incremental && __builtin_add_overflow(own, clock->last, &own)))
		return PLUMB_UNKNOWN;
	if (clock->incremental)
		clock->last = own;
	return convert_time(clocks, key, own);
}
