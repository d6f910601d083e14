/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/samples.h"

#include <string.h>

#include "analyze/copies.h"
#include "base/hash.h"
#include "base/search.h"
#include "model/collective.h"
#include "model/framework/framework.h"

#define NO_SORT 100    /* of a context that is no work of a device */
#define LOOK_AROUND 64 /* pieces of a thread, for the calls before and after a gap */

/* ---- what contexts are ---- */

static bool
is_copying(const struct plumb_profile *p, const struct plumb_frame *frame)
{
	const char *name = plumb_text(p, frame->name);

	if (!name)
		return false;
	if (frame->kind == PLUMB_FRAME_GPU_API)
		return strstr(name, "Memcpy") || strstr(name, "memcpy");
	const struct plumb_framework_operator *row =
		frame->kind == PLUMB_FRAME_OPERATOR ? plumb_framework_operator(name) : NULL;
	return row && row->flags & PLUMB_OPERATOR_COPIES;
}

static bool
describe_contexts(struct plumb_moments_shared *line)
{
	const struct plumb_profile *p = line->profile;

	line->outer_of = malloc(((size_t)p->contexts_count + 1) * sizeof *line->outer_of);
	line->copies = calloc((size_t)p->contexts_count + 1, 1);
	if (!line->outer_of || !line->copies)
		return false;
	for (uint32_t c = 0; c < p->contexts_count; c++) {
		const struct plumb_frame *frame = plumb_context_frame(p, c);
		uint32_t up = c ? p->contexts[c].parent : PLUMB_NONE;

		line->outer_of[c] = up != PLUMB_NONE ? line->outer_of[up] : PLUMB_NONE;
		if (line->outer_of[c] == PLUMB_NONE &&
		    (frame->kind == PLUMB_FRAME_OPERATOR || frame->kind == PLUMB_FRAME_GPU_API))
			line->outer_of[c] = p->contexts[c].frame;
		line->copies[c] = (up != PLUMB_NONE && line->copies[up]) || is_copying(p, frame);
	}
	return true;
}

static uint32_t
sort_of(const struct plumb_profile *p, uint32_t context)
{
	const struct plumb_frame *frame = plumb_context_frame(p, context);
	const char *name = plumb_text(p, frame->name);

	if (frame->kind != PLUMB_FRAME_KERNEL)
		return PLUMB_STEP_COPY;
	for (uint32_t c = p->contexts[context].parent; c != PLUMB_NONE; c = p->contexts[c].parent) {
		uint32_t kind = plumb_context_frame(p, c)->kind;

		if (kind == PLUMB_FRAME_COLLECTIVE)
			return PLUMB_STEP_COLLECTIVE;
		if (kind != PLUMB_FRAME_KERNEL)
			break;
	}
	return name && plumb_collective_name(name) ? PLUMB_STEP_COLLECTIVE : PLUMB_STEP_KERNEL;
}

/* ---- the device ---- */

static void
gather_op(struct plumb_moments *line, uint32_t place)
{
	const struct plumb_profile *p = line->profile;
	const struct plumb_span *span = &line->shared->gpu.spans[place];
	unsigned char *sorts = line->shared->sorts;
	uint32_t kind, sort;

	if (!plumb_is_time(span->start_ns, span->end_ns))
		return;
	if (!sorts[span->context]) {
		kind = plumb_context_frame(p, span->context)->kind;
		sorts[span->context] =
			(unsigned char)(1 + (kind == PLUMB_FRAME_KERNEL ||
		                                             kind == PLUMB_FRAME_COPY ||
		                                             kind == PLUMB_FRAME_SET
		                                     ? sort_of(p, span->context)
		                                     : NO_SORT));
	}
	sort = sorts[span->context] - 1u;
	if (sort == NO_SORT)
		return;
	if (p->tracks[span->track].process != line->process)
		sort = PLUMB_STEP_OTHER;
	line->ops[line->ops_count++] = (struct plumb_step_op){ .place = place, .sort = sort };
}

static bool
gather_ops(struct plumb_moments *line)
{
	struct plumb_gpu_merge merge;
	uint32_t count, place;
	const uint32_t *streams =
		plumb_track_group(&line->shared->tracks.streams, line->device, &count);
	bool done = plumb_gpu_merge_new(&line->shared->gpu, streams, count, &merge) == 0;

	if (done)
		line->ops = malloc(((size_t)merge.works + 1) * sizeof *line->ops);
	while (line->ops && plumb_gpu_merge_next(&merge, &place))
		gather_op(line, place);
	plumb_gpu_merge_free(&merge);
	return line->ops != NULL;
}

static int64_t
bytes_of(const struct plumb_moments *line, uint32_t op)
{
	const struct plumb_span *span = plumb_moments_span(line, op);

	return plumb_context_frame(line->profile, span->context)->kind == PLUMB_FRAME_COPY
	               ? plumb_copies_size(line->shared->sizes, span)
	               : 0;
}

const struct plumb_pieces *
plumb_moments_busy(struct plumb_moments *line)
{
	struct plumb_sweep_item *items;
	int code;

	if (line->busy.count || !line->ops_count)
		return &line->busy;
	items = malloc(((size_t)line->ops_count + 1) * sizeof *items);
	if (!items)
		return NULL;
	for (uint32_t i = 0; i < line->ops_count; i++) {
		const struct plumb_span *span = plumb_moments_span(line, i);

		items[i] = (struct plumb_sweep_item){ span->start_ns, span->end_ns,
			                              line->ops[i].sort, i };
	}
	code = plumb_sweep(items, line->ops_count, &line->busy);
	free(items);
	return code < 0 ? NULL : &line->busy;
}

/* ---- threads ---- */

static bool
find_usual(struct plumb_moments_shared *shared)
{
	const struct plumb_profile *p = shared->profile;
	uint32_t *most = calloc((size_t)p->processes_count + 1, sizeof *most);

	shared->usual = malloc(((size_t)p->processes_count + 1) * sizeof *shared->usual);
	for (uint32_t i = 0; shared->usual && i < p->processes_count; i++)
		shared->usual[i] = PLUMB_NONE;
	for (uint32_t t = 0; most && shared->usual && t < p->tracks_count; t++) {
		uint32_t process = p->tracks[t].process, count = 0;

		if (p->tracks[t].kind != PLUMB_TRACK_THREAD || process >= p->processes_count)
			continue;
		for (uint32_t i = shared->tracks.first_span[t];
		     i < shared->tracks.first_span[t + 1]; i++)
			count += p->spans[i].correlation != 0;
		if (count > most[process]) {
			most[process] = count;
			shared->usual[process] = t;
		}
	}
	free(most);
	return most && shared->usual;
}

const struct plumb_pieces *
plumb_moments_pieces(struct plumb_moments *line, uint32_t track)
{
	const struct plumb_profile *p = line->profile;
	struct plumb_pieces *pieces = &line->shared->threads[track];
	uint32_t first = line->shared->tracks.first_span[track], n = 0;
	uint32_t count = line->shared->tracks.first_span[track + 1] - first;
	struct plumb_sweep_item *items;
	int code;

	if (pieces->count || !count)
		return pieces;
	items = malloc((size_t)count * sizeof *items);
	if (!items)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_span *s = &p->spans[first + i];

		if (plumb_is_time(s->start_ns, s->end_ns) &&
		    (!n || s->start_ns >= items[n - 1].start_ns))
			items[n++] = (struct plumb_sweep_item){ s->start_ns, s->end_ns, count - i,
				                                first + i };
	}
	code = plumb_sweep(items, n, pieces);
	free(items);
	return code < 0 ? NULL : pieces;
}

/* ---- keys ---- */

static uint64_t
hash_key(const struct plumb_step_key *key)
{
	uint64_t hash = plumb_hash_mix(key->sort, key->frame);

	hash = plumb_hash_mix(hash, key->line);
	return plumb_hash_mix(plumb_hash_mix(hash, key->before), key->after);
}

uint32_t
plumb_moments_key(struct plumb_moments *line, const struct plumb_step_key *key)
{
	uint64_t hash = hash_key(key);
	struct plumb_map_cursor at;
	uint32_t id = plumb_map_first(&line->map, hash, &at);

	for (; id != PLUMB_MAP_NONE; id = plumb_map_next(&line->map, &at)) {
		const struct plumb_step_key *old = &line->keys.items[id];

		if (old->sort == key->sort && old->frame == key->frame && old->line == key->line &&
		    old->before == key->before && old->after == key->after)
			return id;
	}
	struct plumb_step_key *new = plumb_vec_add(&line->keys);

	id = line->keys.count - 1;
	if (!new || plumb_map_add(&line->map, hash, id) < 0)
		return PLUMB_NONE;
	*new = *key;
	return id;
}

static bool
add_row(struct plumb_moments *line, const struct plumb_step_key *key, int64_t ns, uint32_t count,
        int64_t bytes, struct plumb_step_rows *rows)
{
	uint32_t id = plumb_moments_key(line, key);
	struct plumb_step_row *row = id == PLUMB_NONE ? NULL : plumb_vec_add(rows);

	if (row)
		*row = (struct plumb_step_row){ id, count, ns, bytes };
	return row != NULL;
}

struct plumb_step_key
plumb_moments_key_of(const struct plumb_moments *line, uint32_t sort, uint32_t context)
{
	struct plumb_step_key key = { sort,       PLUMB_NONE, PLUMB_NONE, PLUMB_NONE,
		                      PLUMB_NONE, context,    false };

	if (context != PLUMB_NONE) {
		key.frame = line->profile->contexts[context].frame;
		key.line = line->shared->place_of[context];
		key.copies = line->shared->copies[context];
	}
	return key;
}

static bool
is_gap(const struct plumb_profile *p, const struct plumb_piece *piece)
{
	return piece->id == PLUMB_NONE ||
	       plumb_context_frame(p, p->spans[piece->id].context)->kind == PLUMB_FRAME_RANGE;
}

/* The context of the next piece that is no gap, or PLUMB_NONE. */
static uint32_t
find_beside(const struct plumb_moments *line, const struct plumb_pieces *pieces, uint32_t at,
            int step)
{
	const struct plumb_profile *p = line->profile;

	for (int i = 0; i < LOOK_AROUND; i++) {
		at += (uint32_t)step;
		if (at >= pieces->count)
			break;
		if (!is_gap(p, &pieces->items[at]))
			return p->spans[pieces->items[at].id].context;
	}
	return PLUMB_NONE;
}

/* The line, else the outermost call. */
static uint32_t
place_of(const struct plumb_moments *line, uint32_t context)
{
	if (context == PLUMB_NONE)
		return PLUMB_NONE;
	return line->shared->place_of[context] != PLUMB_NONE ? line->shared->place_of[context]
	                                                     : line->shared->outer_of[context];
}

/* Where the program was between two calls: the lines of the innermost function that made both, else
 * each call's own. */
static void
name_gap(const struct plumb_moments *line, const struct plumb_pieces *pieces, uint32_t at,
         struct plumb_step_key *key)
{
	const struct plumb_context *contexts = line->profile->contexts;
	uint32_t before = find_beside(line, pieces, at, -1),
		 after = find_beside(line, pieces, at, 1);
	uint32_t a = before, b = after;

	key->before = place_of(line, before);
	key->after = place_of(line, after);
	if (before == PLUMB_NONE || after == PLUMB_NONE)
		return;
	while (contexts[a].depth > contexts[b].depth)
		a = contexts[a].parent;
	while (contexts[b].depth > contexts[a].depth)
		b = contexts[b].parent;
	if (a == b) /* one of them made the other */
		return;
	while (contexts[a].parent != contexts[b].parent) {
		a = contexts[a].parent;
		b = contexts[b].parent;
	}
	if (line->shared->place_of[a] == contexts[a].frame &&
	    line->shared->place_of[b] == contexts[b].frame) {
		key->before = contexts[a].frame;
		key->after = contexts[b].frame;
	}
}

bool
plumb_moments_gap(const struct plumb_moments *line, const struct plumb_pieces *pieces, uint32_t at,
                  struct plumb_step_key *key)
{
	const struct plumb_piece *piece = &pieces->items[at];

	if (!is_gap(line->profile, piece))
		return false;
	*key = plumb_moments_key_of(
		line, PLUMB_STEP_GAP,
		piece->id == PLUMB_NONE ? PLUMB_NONE : line->profile->spans[piece->id].context);
	key->line = PLUMB_NONE;
	name_gap(line, pieces, at, key);
	return true;
}

static int64_t
measure_overlap(int64_t start, int64_t end, int64_t from, int64_t to)
{
	start = start > from ? start : from;
	end = end < to ? end : to;
	return end > start ? end - start : 0;
}

/* What a span of a thread was for NS. */
static bool
add_span(struct plumb_moments *line, uint32_t span, int64_t ns, struct plumb_step_rows *rows)
{
	struct plumb_step_key key =
		plumb_moments_key_of(line, PLUMB_STEP_HOST, line->profile->spans[span].context);

	if (key.line == PLUMB_NONE && line->shared->outer_of[key.context] != key.frame)
		key.before = line->shared->outer_of[key.context];
	return add_row(line, &key, ns, 0, 0, rows);
}

int
plumb_moments_host(struct plumb_moments *line, uint32_t thread, int64_t from, int64_t to,
                   struct plumb_step_rows *rows)
{
	const struct plumb_profile *p = line->profile;
	const struct plumb_pieces *pieces =
		thread < p->tracks_count ? plumb_moments_pieces(line, thread) : NULL;
	struct plumb_step_key none = plumb_moments_key_of(line, PLUMB_STEP_GAP, PLUMB_NONE);
	int64_t at = from;
	bool done = true;

	if (thread >= p->tracks_count)
		return from < to && !add_row(line, &none, to - from, 0, 0, rows) ? PLUMB_ESYSTEM
		                                                                 : 0;
	if (!pieces)
		return PLUMB_ESYSTEM;
	for (uint32_t i = plumb_pieces_from(pieces, from);
	     done && i < pieces->count && pieces->items[i].start_ns < to; i++) {
		const struct plumb_piece *piece = &pieces->items[i];
		int64_t start = piece->start_ns > at ? piece->start_ns : at;
		int64_t end = piece->end_ns < to ? piece->end_ns : to;
		struct plumb_step_key key;

		if (at < start) /* before the thread's first span */
			done = plumb_samples_fill(line, thread, &none, at, start, at, start, rows);
		if (done && plumb_moments_gap(line, pieces, i, &key))
			done = plumb_samples_fill(line, thread, &key, piece->start_ns,
			                          piece->end_ns, start, end, rows);
		else if (done)
			done = add_span(line, piece->id, end - start, rows);
		at = end;
	}
	if (done && at < to) /* after its last one */
		done = plumb_samples_fill(line, thread, &none, at, to, at, to, rows);
	return done ? 0 : PLUMB_ESYSTEM;
}

/* ---- what the device did ---- */

uint32_t
plumb_moments_op(const struct plumb_moments *line, int64_t ns)
{
	return plumb_search(i, line->ops_count, plumb_moments_span(line, i)->start_ns < ns);
}

uint32_t
plumb_moments_kernel(const struct plumb_moments *line, uint32_t op)
{
	while (op < line->ops_count && (plumb_moments_span(line, op)->track != line->main_track ||
	                                line->ops[op].sort == PLUMB_STEP_COPY))
		op++;
	return op;
}

uint32_t
plumb_moments_call(const struct plumb_moments *line, uint32_t op)
{
	const struct plumb_span *span;

	if (op >= line->ops_count)
		return PLUMB_NONE;
	span = plumb_moments_span(line, op);
	return plumb_launch_before(line->launches, line->process, span->correlation,
	                           span->start_ns);
}

uint32_t
plumb_moments_thread(const struct plumb_moments *line, uint32_t op)
{
	uint32_t call = plumb_moments_call(line, op);

	return call != PLUMB_NONE ? line->profile->spans[call].track : line->usual_thread;
}

int
plumb_moments_waited(struct plumb_moments *line, uint32_t op, int64_t from, int64_t to,
                     struct plumb_step_rows *rows)
{
	while (op < line->ops_count && line->ops[op].sort == PLUMB_STEP_OTHER)
		op++;
	return plumb_moments_host(line, plumb_moments_thread(line, op), from, to, rows);
}

/* How often things began, and what copies moved. */
static int
tell_begun(struct plumb_moments *line, int64_t from, int64_t to, struct plumb_step_rows *rows)
{
	for (uint32_t i = plumb_moments_op(line, from); i < line->ops_count; i++) {
		const struct plumb_span *span = plumb_moments_span(line, i);
		struct plumb_step_key key;

		if (span->start_ns >= to)
			break;
		key = plumb_moments_key_of(line, line->ops[i].sort, span->context);
		if (!add_row(line, &key, 0, 1, bytes_of(line, i), rows))
			return PLUMB_ESYSTEM;
	}
	return 0;
}

static int
tell_busy(struct plumb_moments *line, int64_t from, int64_t to, bool host,
          struct plumb_step_rows *rows)
{
	const struct plumb_pieces *pieces = plumb_moments_busy(line);
	struct plumb_step_key idle = plumb_moments_key_of(line, PLUMB_STEP_IDLE, PLUMB_NONE);
	int64_t at = from;
	int code = pieces ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = code ? 0 : plumb_pieces_from(pieces, from);
	     !code && i < pieces->count && pieces->items[i].start_ns < to; i++) {
		const struct plumb_piece *piece = &pieces->items[i];
		int64_t ns = measure_overlap(piece->start_ns, piece->end_ns, from, to);
		bool any = piece->id != PLUMB_NONE;

		at = piece->end_ns < to ? piece->end_ns : to;
		if (!any && host) {
			code = plumb_moments_waited(line, plumb_moments_op(line, piece->end_ns),
			                            at - ns, at, rows);
			continue;
		}
		struct plumb_step_key key =
			any ? plumb_moments_key_of(line, line->ops[piece->id].sort,
		                                   plumb_moments_span(line, piece->id)->context)
			    : idle;
		if (!add_row(line, &key, ns, 0, 0, rows))
			code = PLUMB_ESYSTEM;
	}
	if (!code && at < to && !add_row(line, &idle, to - at, 0, 0, rows))
		code = PLUMB_ESYSTEM;
	return code ? code : tell_begun(line, from, to, rows);
}

int
plumb_moments_device(struct plumb_moments *line, int64_t from, int64_t to,
                     struct plumb_step_rows *rows)
{
	return tell_busy(line, from, to, false, rows);
}

int
plumb_moments_both(struct plumb_moments *line, int64_t from, int64_t to,
                   struct plumb_step_rows *rows)
{
	return tell_busy(line, from, to, line->launched, rows);
}

/* ---- rows ---- */

static int
by_key(const void *x, const void *y)
{
	const struct plumb_step_row *a = x, *b = y;

	return (a->key > b->key) - (a->key < b->key);
}

static int
by_time(const void *x, const void *y)
{
	const struct plumb_step_row *a = x, *b = y;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return by_key(x, y);
}

int64_t
plumb_step_bytes(int64_t a, int64_t b)
{
	int64_t sum;

	return a == PLUMB_UNKNOWN || b == PLUMB_UNKNOWN || __builtin_add_overflow(a, b, &sum)
	               ? PLUMB_UNKNOWN
	               : sum;
}

void
plumb_step_rows_sum(struct plumb_step_rows *rows)
{
	uint32_t n = 0;

	if (!rows->count)
		return;
	qsort(rows->items, rows->count, sizeof *rows->items, by_key);
	for (uint32_t i = 0; i < rows->count; i++) {
		const struct plumb_step_row *row = &rows->items[i];
		struct plumb_step_row *sum = n ? &rows->items[n - 1] : NULL;

		if (!sum || sum->key != row->key) {
			rows->items[n++] = *row;
			continue;
		}
		sum->ns += row->ns;
		sum->bytes = plumb_step_bytes(sum->bytes, row->bytes);
		sum->count += row->count;
	}
	rows->count = n;
	qsort(rows->items, n, sizeof *rows->items, by_time);
}

/* ---- making one ---- */

int
plumb_moments_share(const struct plumb_profile *profile, const uint32_t *place_of,
                    const struct plumb_division *division, struct plumb_moments_shared *shared)
{
	*shared = (struct plumb_moments_shared){ .profile = profile,
		                                 .place_of = place_of,
		                                 .division = division };
	if (plumb_track_index_new(profile, &shared->tracks) < 0 ||
	    plumb_gpu_work_find(profile, &shared->gpu) < 0 || !describe_contexts(shared) ||
	    !find_usual(shared))
		return PLUMB_ESYSTEM;
	shared->sizes = plumb_copies_sizes(profile);
	shared->sorts = calloc((size_t)profile->contexts_count + 1, 1);
	shared->threads = calloc((size_t)profile->tracks_count + 1, sizeof *shared->threads);
	return shared->sizes && shared->sorts && shared->threads ? 0 : PLUMB_ESYSTEM;
}

void
plumb_moments_unshare(struct plumb_moments_shared *shared)
{
	for (uint32_t t = 0; shared->threads && t < shared->profile->tracks_count; t++)
		plumb_vec_free(&shared->threads[t]);
	plumb_track_index_free(&shared->tracks);
	plumb_gpu_work_free(&shared->gpu);
	free(shared->threads);
	free(shared->outer_of);
	free(shared->copies);
	free(shared->sorts);
	free(shared->sizes);
	free(shared->usual);
	free(shared->sampled_as);
	*shared = (struct plumb_moments_shared){ 0 };
}

int
plumb_moments_new(struct plumb_moments_shared *shared, uint32_t device, uint32_t process,
                  uint32_t main_track, struct plumb_moments *line)
{
	bool known = process < shared->profile->processes_count;

	*line = (struct plumb_moments){
		.profile = shared->profile,
		.shared = shared,
		.division = shared->division,
		.device = device,
		.process = process,
		.main_track = main_track,
		.usual_thread = known ? shared->usual[process] : PLUMB_NONE,
		.launches = plumb_track_index_launches(&shared->tracks),
	};
	line->launched = line->usual_thread != PLUMB_NONE;
	return line->launches && gather_ops(line) ? 0 : PLUMB_ESYSTEM;
}

void
plumb_moments_finish(struct plumb_moments *line)
{
	plumb_samples_free(line);
	free(line->ops);
	plumb_vec_free(&line->busy);
	line->ops = NULL;
	line->ops_count = 0;
}

void
plumb_moments_free(struct plumb_moments *line)
{
	plumb_moments_finish(line);
	plumb_vec_free(&line->keys);
	plumb_map_free(&line->map);
	*line = (struct plumb_moments){ 0 };
}
