/* SPDX-License-Identifier: Apache-2.0 */
/* What plumb wrote about its slices: see base/facts.h, and export/perfetto_facts.c. */
#include "import/perfetto/perfetto.h"

#include "base/perfetto.h"

#define FLAGS_KNOWN (PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION | PLUMB_CONTEXT_TRUNCATED)

/* One annotation, an entry or a value. */
struct fact {
	uint32_t fact; /* PLUMB_FACT_COUNT: none that is known */
	bool is_number;
	uint64_t number;
	double real;              /* 0: none */
	struct plumb_slice text;  /* at NULL: none */
	struct plumb_slice bytes; /* all of it */
};

static bool
read_fact(const struct perfetto_sequence *sequence, struct plumb_slice bytes, struct fact *fact)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	*fact = (struct fact){ .fact = PLUMB_FACT_COUNT, .bytes = bytes };
	while (plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, ANNOTATION_NAME_NUMBER, PLUMB_PROTOBUF_VARINT)) {
			const struct perfetto_entry *entry =
				perfetto_find(sequence, PERFETTO_FACT, f.value);
			if (entry)
				fact->fact = entry->value;
		} else if (plumb_protobuf_is(&f, ANNOTATION_NAME, PLUMB_PROTOBUF_BYTES)) {
			for (uint32_t i = 0; i < PLUMB_FACT_COUNT; i++)
				if (plumb_slice_is(f.bytes, plumb_fact_names[i]))
					fact->fact = i;
		} else if (plumb_protobuf_is(&f, ANNOTATION_UNSIGNED, PLUMB_PROTOBUF_VARINT) ||
		           plumb_protobuf_is(&f, ANNOTATION_SIGNED, PLUMB_PROTOBUF_VARINT)) {
			fact->is_number = true;
			fact->number = f.value;
		} else if (plumb_protobuf_is(&f, ANNOTATION_REAL, PLUMB_PROTOBUF_FIXED64)) {
			fact->real = plumb_protobuf_real(&f);
		} else if (plumb_protobuf_is(&f, ANNOTATION_STRING, PLUMB_PROTOBUF_BYTES)) {
			fact->text = f.bytes;
		}
	}
	return !view.why;
}

/* The next entry of a dictionary, or value of a list. False: the end, or *DAMAGED. */
static bool
next_fact(const struct perfetto_sequence *sequence, struct plumb_protobuf_view *view,
          uint32_t number, struct fact *fact, bool *damaged)
{
	struct plumb_protobuf_field f;
	while (plumb_protobuf_next(view, &f)) {
		if (!plumb_protobuf_is(&f, number, PLUMB_PROTOBUF_BYTES))
			continue;
		if (read_fact(sequence, f.bytes, fact))
			return true;
		*damaged = true;
		return false;
	}
	*damaged |= view->why != NULL;
	return false;
}

bool
perfetto_own_is(const struct perfetto_sequence *sequence, struct plumb_slice annotation)
{
	struct fact fact;
	return read_fact(sequence, annotation, &fact) && fact.fact == PLUMB_FACT_PLUMB;
}

static int64_t
number_of(const struct fact *fact)
{
	return fact->is_number ? (int64_t)fact->number : PLUMB_UNKNOWN;
}

static uint32_t
string_of(struct perfetto_facts *facts, const struct fact *fact)
{
	return fact->text.at ? plumb_builder_string(plumb_trace_builder(facts->trace),
	                                            fact->text.at, fact->text.bytes)
	                     : PLUMB_NONE;
}

static bool
read_three(const struct perfetto_sequence *sequence, const struct fact *list, int64_t three[3])
{
	struct plumb_protobuf_view view = plumb_protobuf_view(list->bytes);
	struct fact value;
	int64_t found[3];
	unsigned count = 0;
	bool damaged = false;
	while (next_fact(sequence, &view, ANNOTATION_VALUES, &value, &damaged))
		if (count < 3 && number_of(&value) >= 0)
			found[count++] = number_of(&value);
	if (count == 3)
		memcpy(three, found, sizeof found);
	return !damaged;
}

/* ---- frames and contexts ---- */

static uint32_t
kind_of(struct plumb_slice name)
{
	for (uint32_t kind = 0; kind < PLUMB_FRAME_KIND_COUNT; kind++)
		if (name.at && plumb_slice_is(name, plumb_frame_kind_names[kind]))
			return kind;
	return PLUMB_FRAME_ROOT;
}

static bool
read_frame(struct perfetto_facts *facts, struct perfetto_sequence *sequence,
           const struct fact *dictionary)
{
	struct plumb_builder *builder = plumb_trace_builder(facts->trace);
	struct plumb_protobuf_view view = plumb_protobuf_view(dictionary->bytes);
	struct fact fact;
	uint32_t kind = PLUMB_FRAME_ROOT, name = PLUMB_NONE, file = PLUMB_NONE, line = 0;
	uint32_t display = PLUMB_NONE, source = PLUMB_NONE, source_line = 0;
	uint64_t number = UINT64_MAX;
	bool damaged = false;
	while (next_fact(sequence, &view, ANNOTATION_ENTRIES, &fact, &damaged)) {
		if (fact.fact == PLUMB_FACT_FRAME && fact.is_number)
			number = fact.number;
		else if (fact.fact == PLUMB_FACT_KIND)
			kind = kind_of(fact.text);
		else if (fact.fact == PLUMB_FACT_NAME)
			name = string_of(facts, &fact);
		else if (fact.fact == PLUMB_FACT_FILE)
			file = string_of(facts, &fact);
		else if (fact.fact == PLUMB_FACT_LINE && fact.number < UINT32_MAX)
			line = (uint32_t)fact.number;
		else if (fact.fact == PLUMB_FACT_DISPLAY)
			display = string_of(facts, &fact);
		else if (fact.fact == PLUMB_FACT_SOURCE)
			source = string_of(facts, &fact);
		else if (fact.fact == PLUMB_FACT_SOURCE_LINE && fact.number < UINT32_MAX)
			source_line = (uint32_t)fact.number;
	}
	if (damaged || kind == PLUMB_FRAME_ROOT)
		return !damaged;
	struct perfetto_entry *entry = perfetto_add(sequence, PERFETTO_FRAME, number);
	uint32_t frame = plumb_builder_frame(builder, kind, name, file, line);
	if (!entry || frame == PLUMB_NONE) {
		facts->no_memory = true;
		return true;
	}
	entry->value = frame;
	if (display != PLUMB_NONE)
		plumb_builder_frame_display(builder, frame, display);
	if (source != PLUMB_NONE)
		plumb_builder_frame_source(builder, frame, source, source_line);
	return true;
}

/* How a context's kernels were launched. */
static bool
read_launch(const struct perfetto_sequence *sequence, const struct fact *fact,
            struct plumb_trace_launch *launch, bool *any)
{
	int64_t *const fields[PLUMB_FACT_COUNT] = {
		[PLUMB_FACT_REGISTERS] = &launch->registers,
		[PLUMB_FACT_STATIC_SHARED] = &launch->static_shared,
		[PLUMB_FACT_DYNAMIC_SHARED] = &launch->dynamic_shared,
		[PLUMB_FACT_OCCUPANCY] = &launch->occupancy,
	};
	bool list = fact->fact == PLUMB_FACT_GRID || fact->fact == PLUMB_FACT_BLOCK;
	if (list) {
		*any = true;
		return read_three(sequence, fact,
		                  fact->fact == PLUMB_FACT_GRID ? launch->grid : launch->block);
	}
	/* Sums of them are made. */
	if (fact->fact < PLUMB_FACT_COUNT && fields[fact->fact] && fact->is_number &&
	    fact->number <= INT64_MAX / 2) {
		*any = true;
		*fields[fact->fact] = (int64_t)fact->number;
	}
	return true;
}

static void
keep_context(struct perfetto_facts *facts, struct perfetto_sequence *sequence, uint64_t number,
             uint32_t context, const struct plumb_trace_launch *launch, bool apart)
{
	struct perfetto_entry *entry = perfetto_add(sequence, PERFETTO_CONTEXT, number);
	struct plumb_trace_launch *kept = entry && launch ? plumb_vec_add(&facts->launches) : NULL;
	if (context == PLUMB_NONE || !entry || (launch && !kept)) {
		facts->no_memory = true;
		return;
	}
	entry->value = context;
	entry->apart = apart;
	entry->second = PLUMB_NONE;
	if (launch) {
		*kept = *launch;
		entry->second = facts->launches.count - 1;
	}
}

static bool
read_context(struct perfetto_facts *facts, struct perfetto_sequence *sequence,
             const struct fact *dictionary)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(dictionary->bytes);
	struct plumb_trace_launch launch = plumb_trace_no_launch;
	struct fact fact;
	const struct perfetto_entry *parent, *frame;
	uint64_t number = UINT64_MAX, above = UINT64_MAX, own = UINT64_MAX;
	uint32_t flags = 0;
	bool damaged = false, launched = false, apart = false;
	while (next_fact(sequence, &view, ANNOTATION_ENTRIES, &fact, &damaged)) {
		if (fact.fact == PLUMB_FACT_CONTEXT)
			number = fact.number;
		else if (fact.fact == PLUMB_FACT_PARENT)
			above = fact.number;
		else if (fact.fact == PLUMB_FACT_FRAME)
			own = fact.number;
		else if (fact.fact == PLUMB_FACT_FLAGS)
			flags = (uint32_t)(fact.number & FLAGS_KNOWN);
		else if (fact.fact == PLUMB_FACT_APART)
			apart = fact.number;
		else
			damaged |= !read_launch(sequence, &fact, &launch, &launched);
	}
	parent = above ? perfetto_find(sequence, PERFETTO_CONTEXT, above) : NULL;
	frame = perfetto_find(sequence, PERFETTO_FRAME, own);
	/* What hangs under nothing that was described is not described either. */
	if (damaged || !frame || (above && !parent))
		return !damaged;
	uint32_t context = plumb_builder_context(plumb_trace_builder(facts->trace),
	                                         parent ? parent->value : 0, frame->value, flags);
	keep_context(facts, sequence, number, context, launched ? &launch : NULL, apart);
	return true;
}

static bool
read_list(struct perfetto_facts *facts, struct perfetto_sequence *sequence, const struct fact *list,
          bool (*read)(struct perfetto_facts *, struct perfetto_sequence *, const struct fact *))
{
	struct plumb_protobuf_view view = plumb_protobuf_view(list->bytes);
	struct fact value;
	bool damaged = false;
	while (next_fact(sequence, &view, ANNOTATION_VALUES, &value, &damaged))
		if (!read(facts, sequence, &value))
			return false;
	return !damaged;
}

/* ---- tracks and slices ---- */

static bool
read_track(struct perfetto_facts *facts, const struct perfetto_sequence *sequence,
           const struct fact *dictionary, uint32_t *index)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(dictionary->bytes);
	struct fact fact;
	bool damaged = false;
	struct perfetto_own_track *track = plumb_vec_add(&facts->tracks);
	if (!track) {
		facts->no_memory = true;
		return true;
	}
	*track = (struct perfetto_own_track){
		false,         PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN,
		PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN,
		PLUMB_NONE,    PLUMB_NONE,    PLUMB_NONE,    PLUMB_NONE,
	};
	int64_t *const numbers[PLUMB_FACT_COUNT] = {
		[PLUMB_FACT_INDEX] = &track->index,
		[PLUMB_FACT_PID] = &track->pid,
		[PLUMB_FACT_RANK] = &track->rank,
		[PLUMB_FACT_THREAD] = &track->tid,
		[PLUMB_FACT_STREAM] = &track->number,
		[PLUMB_FACT_GPU_CONTEXT] = &track->gpu_context,
		[PLUMB_FACT_ORDINAL] = &track->ordinal,
	};
	uint32_t *const texts[PLUMB_FACT_COUNT] = {
		[PLUMB_FACT_HOST] = &track->host,
		[PLUMB_FACT_NAME] = &track->name,
		[PLUMB_FACT_UUID] = &track->uuid,
		[PLUMB_FACT_MODEL] = &track->model,
	};
	while (next_fact(sequence, &view, ANNOTATION_ENTRIES, &fact, &damaged)) {
		if (fact.fact == PLUMB_FACT_KIND && fact.text.at)
			track->stream = plumb_slice_is(fact.text, "stream");
		else if (fact.fact < PLUMB_FACT_COUNT && numbers[fact.fact])
			*numbers[fact.fact] = number_of(&fact);
		else if (fact.fact < PLUMB_FACT_COUNT && texts[fact.fact])
			*texts[fact.fact] = string_of(facts, &fact);
	}
	*index = facts->tracks.count - 1;
	return !damaged;
}

static bool
read_all_bytes(const struct perfetto_sequence *sequence, const struct fact *dictionary,
               struct perfetto_own *own)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(dictionary->bytes);
	struct fact fact;
	bool damaged = false;
	while (next_fact(sequence, &view, ANNOTATION_ENTRIES, &fact, &damaged)) {
		if (fact.fact == PLUMB_FACT_BYTES)
			own->all_bytes = number_of(&fact);
		else if (fact.fact == PLUMB_FACT_COPIES)
			own->all_count = number_of(&fact);
		else if (fact.fact == PLUMB_FACT_LEAST)
			own->all_least = number_of(&fact);
		else if (fact.fact == PLUMB_FACT_MOST)
			own->all_most = number_of(&fact);
		else if (fact.fact == PLUMB_FACT_SQUARES)
			own->all_squares = fact.real;
	}
	return !damaged;
}

bool
perfetto_own_read(struct perfetto_facts *facts, struct perfetto_sequence *sequence,
                  struct plumb_slice annotation, struct perfetto_own *own, uint32_t *track)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(annotation);
	struct fact fact;
	uint64_t context = UINT64_MAX;
	bool sound = true, damaged = false;
	*track = PLUMB_NONE;
	*own = (struct perfetto_own){ .context = PLUMB_NONE,
		                      .launch = PLUMB_NONE,
		                      .bytes = PLUMB_UNKNOWN,
		                      .all_bytes = PLUMB_UNKNOWN };
	while (sound && next_fact(sequence, &view, ANNOTATION_ENTRIES, &fact, &damaged)) {
		if (fact.fact == PLUMB_FACT_CONTEXT && fact.is_number)
			context = fact.number;
		else if (fact.fact == PLUMB_FACT_CORRELATION)
			own->correlation = fact.number;
		else if (fact.fact == PLUMB_FACT_BYTES && number_of(&fact) >= 0)
			own->bytes = number_of(&fact);
		else if (fact.fact == PLUMB_FACT_DRAWN)
			own->drawn = true;
		else if (fact.fact == PLUMB_FACT_ALL_BYTES)
			sound = read_all_bytes(sequence, &fact, own);
		else if (fact.fact == PLUMB_FACT_TRACK)
			sound = read_track(facts, sequence, &fact, track);
		else if (fact.fact == PLUMB_FACT_FRAMES)
			sound = read_list(facts, sequence, &fact, read_frame);
		else if (fact.fact == PLUMB_FACT_CONTEXTS)
			sound = read_list(facts, sequence, &fact, read_context);
	}
	const struct perfetto_entry *entry = perfetto_find(sequence, PERFETTO_CONTEXT, context);
	if (entry) {
		own->context = entry->value;
		own->launch = entry->second;
		own->apart = entry->apart;
	}
	return sound && !damaged;
}

void
perfetto_facts_free(struct perfetto_facts *facts)
{
	plumb_vec_free(&facts->launches);
	plumb_vec_free(&facts->tracks);
}
