/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database of HPCToolkit, version 4: a folder with meta.db (contexts, metrics), profile.db (the
 * values of each thread and GPU stream) and trace.db (what each stream did when). cct.db holds the
 * values in another order.
 *
 * hpcprof leaves instructions out of the tree, and not the values measured at them. So the
 * inclusive values are taken, and what a context has by itself is its own less its children's:
 * nothing is lost, and what was of an instruction is of its line.
 *
 * Values are doubles: times are rounded to whole ns, and metrics.c says what becomes of
 * others. What a stream did is taken as it was, for the trace and for how long its device was busy;
 * what threads of the host did is samples there, which values sum up already.
 */
#include "import/hpctoolkit/hpctoolkit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/regular.h"
#include "import/trace_private.h"

#define MAJOR 4
#define MAGIC "HPCTOOLKIT"
#define HEADER_BYTES 16u
enum { NAMES_SECTION = 0x20, TRACES_SECTION = 0x10 }; /* meta.db, trace.db */
enum { TRACE_BYTES = 24, INDEX_BYTES = 12, MOMENT_BYTES = 12, ID_BYTES = 16 };
#define IDS_MAX 64
/* A text's bytes, and how often a file's bytes are texts of contexts. */
#define TEXT_MOST ((size_t)1 << 20)
#define TEXT_TIMES 1024u

/* ---- files ---- */

void
plumb_hpct_fail(struct hpct_reader *reader, const struct hpct_file *file, uint64_t offset,
                const char *why)
{
	if (reader->why)
		return;
	reader->why = why;
	reader->why_file = file;
	reader->why_at = offset;
}

const unsigned char *
plumb_hpct_get(struct hpct_reader *reader, const struct hpct_file *file, uint64_t offset,
               uint64_t count, uint64_t size)
{
	uint64_t bytes;
	if (!__builtin_mul_overflow(count, size, &bytes) && offset <= file->bytes &&
	    bytes <= file->bytes - offset)
		return file->at + offset;
	plumb_hpct_fail(reader, file, offset, "the file points to this byte, but ends before it");
	return NULL;
}

/* Without it a small file could have its bytes read again and again. */
const unsigned char *
plumb_hpct_take(struct hpct_reader *reader, struct hpct_file *file, uint64_t offset, uint64_t count,
                uint64_t size)
{
	const unsigned char *at = plumb_hpct_get(reader, file, offset, count, size);
	if (!at)
		return NULL;
	file->taken += count * size;
	if (file->taken <= file->bytes)
		return at;
	plumb_hpct_fail(reader, file, offset, "tables overlap");
	return NULL;
}

struct plumb_slice
plumb_hpct_text(struct hpct_reader *reader, struct hpct_file *file, uint64_t offset)
{
	const char *at = (const char *)plumb_hpct_get(reader, file, offset, 1, 1);
	size_t most = at ? file->bytes - offset : 0;
	const char *end = at ? memchr(at, '\0', most < TEXT_MOST ? most : TEXT_MOST) : NULL;
	if (at && !end)
		plumb_hpct_fail(reader, file, offset, "a text has no end");
	file->texts += end ? (uint64_t)(end - at) : 0;
	if (file->texts / TEXT_TIMES > file->bytes) {
		plumb_hpct_fail(reader, file, offset, "long texts are repeated too often");
		end = NULL;
	}
	return end ? (struct plumb_slice){ at, (size_t)(end - at) }
	           : (struct plumb_slice){ NULL, 0 };
}

const struct hpct_context *
plumb_hpct_context(const struct hpct_reader *reader, uint32_t id)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&reader->map, plumb_hash_mix(id, 0), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&reader->map, &at))
		if (reader->contexts.items[i].id == id)
			return &reader->contexts.items[i];
	return NULL;
}

/* Opens NAME of the folder. OPTIONAL: it need not be there. */
static int
open_file(struct hpct_reader *reader, struct hpct_file *file, const char *name, const char *format,
          bool optional, struct plumb_error *error)
{
	char path[4096];
	struct stat status;
	file->name = name;
	snprintf(path, sizeof path, "%s/%s", reader->folder, name);
	int fd = plumb_regular_open(AT_FDCWD, path, 0);
	if (fd < 0 && optional && errno == ENOENT)
		return 0;
	if (fd < 0 && (errno == EINVAL || errno == EISDIR))
		return plumb_fail(error, PLUMB_EINPUT, "%s: is not a file; copy the folder again",
		                  path);
	if (fd < 0 || fstat(fd, &status) < 0) {
		int code = plumb_fail_errno(error, "%s: cannot be read", path);
		if (fd >= 0)
			close(fd);
		return code;
	}
	void *at = MAP_FAILED;
	if (status.st_size >= (off_t)HEADER_BYTES)
		at = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s: is too short for a file of HPCToolkit; copy the folder "
		                  "again",
		                  path);
	file->at = at;
	file->bytes = (size_t)status.st_size;
	file->mapped = true;
	if (memcmp(file->at, MAGIC, 10) || memcmp(file->at + 10, format, 4))
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s: byte 0: not a file of HPCToolkit; copy the folder again",
		                  path);
	if (file->at[14] != MAJOR)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s: byte 14: this is version %u, but plumb reads version 4; "
		                  "write the database with hpcprof 2022.10 or later",
		                  path, file->at[14]);
	return 0;
}

const unsigned char *
plumb_hpct_section(struct hpct_reader *reader, const struct hpct_file *file, uint64_t header,
                   uint64_t size, uint64_t *offset)
{
	const unsigned char *at = plumb_hpct_get(reader, file, header, 1, 16);
	*offset = at ? hpct_u64(at + 8) : 0;
	return at ? plumb_hpct_get(reader, file, *offset, 1, size) : NULL;
}

/* ---- threads and streams ---- */

enum place { NODE, RANK, THREAD, GPU_DEVICE, GPU_CONTEXT, GPU_STREAM, PLACES };
struct places {
	int64_t logical[PLACES], physical[PLACES]; /* PLUMB_UNKNOWN */
};

/* The name of a kind of place. */
static struct plumb_slice
place_name(struct hpct_reader *reader, unsigned kind)
{
	uint64_t offset;
	const unsigned char *head =
		plumb_hpct_section(reader, &reader->meta, NAMES_SECTION, 9, &offset);
	const unsigned char *at =
		head && kind < head[8] ? plumb_hpct_get(reader, &reader->meta,
	                                                hpct_u64(head) + 8 * (uint64_t)kind, 1, 8)
				       : NULL;
	return at ? plumb_hpct_text(reader, &reader->meta, hpct_u64(at))
	          : (struct plumb_slice){ NULL, 0 };
}

static void
read_places(struct hpct_reader *reader, uint64_t offset, struct places *places)
{
	static const char *const names[PLACES] = {
		[NODE] = "NODE",
		[RANK] = "RANK",
		[THREAD] = "THREAD",
		[GPU_DEVICE] = "GPUDEVICE",
		[GPU_CONTEXT] = "GPUCONTEXT",
		[GPU_STREAM] = "GPUSTREAM",
	};
	const unsigned char *at =
		offset ? plumb_hpct_get(reader, &reader->profile, offset, 1, 8) : NULL;
	uint32_t count = at ? hpct_u16(at) : 0;
	for (unsigned i = 0; i < PLACES; i++)
		places->logical[i] = places->physical[i] = PLUMB_UNKNOWN;
	for (uint32_t i = 0; i < count && i < IDS_MAX; i++) {
		at = plumb_hpct_get(reader, &reader->profile, offset + 8 + (uint64_t)i * ID_BYTES,
		                    1, ID_BYTES);
		struct plumb_slice name =
			at ? place_name(reader, at[0]) : (struct plumb_slice){ NULL, 0 };
		for (unsigned p = 0; name.at && p < PLACES; p++)
			if (plumb_slice_is(name, names[p])) {
				places->logical[p] = hpct_u32(at + 4);
				places->physical[p] = (int64_t)hpct_u64(at + 8);
			}
	}
}

/* Processes are known by their node and rank, and have no number. */
static uint32_t
process_of(struct hpct_reader *reader, const struct places *places)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	int64_t key =
		places->logical[RANK] != PLUMB_UNKNOWN
			? places->logical[RANK]
			: -1 - (places->logical[NODE] != PLUMB_UNKNOWN ? places->logical[NODE] : 0);
	uint32_t id = plumb_trace_process(reader->trace, key);
	char host[32];
	if (id == PLUMB_NONE)
		return id;
	struct plumb_process *row = plumb_builder_get_process(builder, id);
	row->pid = PLUMB_UNKNOWN;
	if (places->logical[RANK] != PLUMB_UNKNOWN)
		row->rank = places->logical[RANK];
	if (places->physical[NODE] != PLUMB_UNKNOWN) {
		snprintf(host, sizeof host, "%" PRIx64, (uint64_t)places->physical[NODE]);
		row->host = plumb_builder_text(builder, host);
	}
	return id;
}

static uint32_t
track_of(struct hpct_reader *reader, const struct places *places)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	uint32_t process = process_of(reader, places);
	int64_t number = places->logical[GPU_DEVICE];
	if (places->logical[GPU_STREAM] == PLUMB_UNKNOWN)
		return plumb_trace_thread(reader->trace, process, places->logical[THREAD]);
	/* A device without a number of its own has one for each context. */
	if (number == PLUMB_UNKNOWN && places->logical[GPU_CONTEXT] != PLUMB_UNKNOWN)
		number = -1 - places->logical[GPU_CONTEXT];
	uint32_t device = plumb_trace_device(reader->trace, process, number, NULL);
	if (device != PLUMB_NONE)
		plumb_builder_get_device(builder, device)->ordinal = places->logical[GPU_DEVICE];
	return plumb_trace_stream(reader->trace, process, device, places->logical[GPU_CONTEXT],
	                          places->logical[GPU_STREAM]);
}

/* ---- values ---- */

/* Counts what is not taken by the reason. */
struct leftovers {
	int64_t sums, unexplained, no_number, accumulators, too_many;
};

static void
add_share(struct hpct_reader *reader, uint32_t context, uint32_t metric, int64_t number)
{
	struct hpct_share *share = plumb_vec_add(&reader->shares);
	if (share)
		*share = (struct hpct_share){ context, metric, number };
	reader->no_memory |= !share;
}

static void
take_value(struct hpct_reader *reader, const struct hpct_context *context, const unsigned char *at,
           struct leftovers *left)
{
	const struct hpct_metric *metric = &reader->metrics[hpct_u16(at)];
	uint64_t bits = hpct_u64(at + 2);
	double value;
	memcpy(&value, &bits, sizeof value);
	value *= metric->scale;
	if (metric->accumulator) {
		left->accumulators++;
	} else if (metric->name.at && !metric->number) {
		left->too_many++;
	} else if (!metric->number) {
		left->sums++;
	} else if (!(value > -4e18 && value < 4e18)) {
		left->no_number++;
	} else if (!context) {
		left->unexplained++;
	} else {
		uint32_t index = (uint32_t)(context - reader->contexts.items);
		if (!llround(value))
			return;
		add_share(reader, index, metric->number, llround(value));
		if (metric->inclusive && context->parent != PLUMB_NONE)
			add_share(reader, context->parent, metric->number, -llround(value));
	}
}

static int
by_context(const void *x, const void *y)
{
	const struct hpct_share *a = x, *b = y;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	return (a->metric > b->metric) - (a->metric < b->metric);
}

/* Adds up the shares of one profile. */
static void
take_shares(struct hpct_reader *reader, uint32_t track, struct leftovers *left)
{
	uint32_t process =
		plumb_builder_get_track(plumb_trace_builder(reader->trace), track)->process;
	struct hpct_share *shares = reader->shares.items;
	uint32_t count = reader->shares.count, next;
	if (count)
		qsort(shares, count, sizeof *shares, by_context);
	for (uint32_t i = 0; i < count; i = next) {
		int64_t sum = 0;
		bool fits = true;
		for (next = i; next < count && !by_context(&shares[i], &shares[next]); next++)
			fits &= !__builtin_add_overflow(sum, shares[next].number, &sum);
		left->no_number += !fits || sum == PLUMB_UNKNOWN;
		if (!fits || !sum || sum == PLUMB_UNKNOWN)
			continue;
		const struct hpct_context *context = &reader->contexts.items[shares[i].context];
		plumb_trace_value(reader->trace, track, context->context, shares[i].metric, sum);
		plumb_hpct_sample(reader, context, process, shares[i].metric, sum);
	}
	reader->shares.count = 0;
}

/* The values of the profile at AT: contexts, each with where its values begin. */
static void
read_values(struct hpct_reader *reader, const unsigned char *at, struct leftovers *left)
{
	struct hpct_file *file = &reader->profile;
	uint64_t values = hpct_u64(at), contexts = hpct_u32(at + 16);
	uint64_t where = hpct_u64(at + 24);
	const unsigned char *value =
		values ? plumb_hpct_take(reader, file, hpct_u64(at + 8), values, HPCT_VALUE_BYTES)
		       : NULL;
	const unsigned char *index =
		contexts ? plumb_hpct_take(reader, file, where, contexts, INDEX_BYTES) : NULL;
	for (uint64_t i = 0; value && index && i < contexts; i++) {
		const unsigned char *one = index + i * INDEX_BYTES;
		uint64_t from = hpct_u64(one + 4);
		uint64_t to = i + 1 < contexts ? hpct_u64(one + INDEX_BYTES + 4) : values;
		uint32_t id = hpct_u32(one);
		if (from > to || to > values) {
			plumb_hpct_fail(reader, file, where + i * INDEX_BYTES,
			                "a context points to values that do not exist");
			return;
		}
		const struct hpct_context *context = plumb_hpct_context(reader, id);
		/* Context 0 is the sum of all. */
		for (uint64_t v = from; id && v < to && !reader->no_memory; v++)
			take_value(reader, context, value + v * HPCT_VALUE_BYTES, left);
	}
}

static void
read_profiles(struct hpct_reader *reader)
{
	uint64_t offset;
	const unsigned char *head =
		plumb_hpct_section(reader, &reader->profile, HPCT_PROFILES_SECTION, 13, &offset);
	struct leftovers left = { 0 };
	struct places places;
	if (!head)
		return;
	uint64_t count = hpct_u32(head + 8), size = head[12];
	if (count && size < HPCT_PROFILE_BYTES)
		plumb_hpct_fail(reader, &reader->profile, offset, "a profile is too short");
	for (uint64_t i = 0; i < count && !reader->why && !reader->no_memory; i++) {
		const unsigned char *at = plumb_hpct_get(
			reader, &reader->profile, hpct_u64(head) + i * size, 1, HPCT_PROFILE_BYTES);
		uint32_t *track = plumb_vec_add(&reader->tracks);
		bool summary = at && hpct_u32(at + 40) & 1;
		reader->no_memory |= !track;
		if (!at || !track)
			break;
		*track = PLUMB_NONE;
		if (summary)
			continue;
		read_places(reader, hpct_u64(at + 32), &places);
		*track = track_of(reader, &places);
		read_values(reader, at, &left);
		if (*track == PLUMB_NONE)
			reader->no_memory = true;
		else
			take_shares(reader, *track, &left);
	}
	plumb_trace_count(reader->trace, PLUMB_FATE_REPEATED, "values in other scopes", left.sums);
	plumb_trace_count(reader->trace, PLUMB_FATE_REPEATED,
	                  "values of instructions, counted at their lines", left.unexplained);
	plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED, "values that are not numbers",
	                  left.no_number);
	plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED, "sums for ratios (metrics *_ACUMU)",
	                  left.accumulators);
	plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED,
	                  "values of more metrics than a profile holds", left.too_many);
}

/* ---- what streams did when ---- */

static void
take_interval(struct hpct_reader *reader, uint32_t track, const struct hpct_context *context,
              int64_t start, int64_t end)
{
	struct plumb_trace_item item = {
		.span = { .start_ns = start, .end_ns = end, .track = track }, .bytes = PLUMB_UNKNOWN
	};
	const struct plumb_track *row =
		plumb_builder_get_track(plumb_trace_builder(reader->trace), track);
	uint32_t source = context->work == PLUMB_FRAME_KERNEL ? PLUMB_SOURCE_KERNEL
	                  : context->work == PLUMB_FRAME_COPY ? PLUMB_SOURCE_COPY
	                                                      : PLUMB_SOURCE_SET;
	plumb_trace_span(reader->trace, track, context->context, start, end, 0);
	if (!context->work || end < start)
		return;
	plumb_trace_ledger(reader->trace, row->process, source, PLUMB_FATE_RECEIVED, 1);
	plumb_trace_ledger(reader->trace, row->process, source, PLUMB_FATE_ATTRIBUTED, 1);
	plumb_trace_add_work(reader->trace, &item, context->work);
}

/* Each moment says what is done from then on; context 0 is nothing. */
static void
read_stream(struct hpct_reader *reader, uint32_t track, const unsigned char *at, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++, at += MOMENT_BYTES) {
		uint32_t id = hpct_u32(at + 8);
		const struct hpct_context *context = id ? plumb_hpct_context(reader, id) : NULL;
		int64_t start = (int64_t)hpct_u64(at);
		if (!id)
			continue;
		if (!context)
			plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED,
			                  "work of unknown contexts", 1);
		else if (i + 1 == count || start < 0)
			plumb_trace_count(reader->trace, PLUMB_FATE_BACKWARDS, NULL, 1);
		else
			take_interval(reader, track, context, start,
			              (int64_t)hpct_u64(at + MOMENT_BYTES));
	}
}

static void
read_times(struct hpct_reader *reader)
{
	struct hpct_file *file = &reader->times;
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	uint64_t offset;
	const unsigned char *head = plumb_hpct_section(reader, file, TRACES_SECTION, 13, &offset);
	if (!head)
		return;
	uint64_t count = hpct_u32(head + 8), size = head[12];
	if (count && size < TRACE_BYTES)
		plumb_hpct_fail(reader, file, offset, "a trace is too short");
	for (uint64_t i = 0; i < count && !reader->why; i++) {
		const unsigned char *at =
			plumb_hpct_get(reader, file, hpct_u64(head) + i * size, 1, TRACE_BYTES);
		uint64_t from = at ? hpct_u64(at + 8) : 0, to = at ? hpct_u64(at + 16) : 0;
		uint32_t profile = at ? hpct_u32(at) : 0;
		if (!at || from == to)
			continue;
		uint64_t moments = to > from ? (to - from) / MOMENT_BYTES : 0;
		const unsigned char *first =
			to > from ? plumb_hpct_take(reader, file, from, moments, MOMENT_BYTES)
				  : NULL;
		uint32_t track =
			profile < reader->tracks.count ? reader->tracks.items[profile] : PLUMB_NONE;
		if (!first || track == PLUMB_NONE)
			plumb_hpct_fail(reader, file, hpct_u64(head) + i * size,
			                "a trace of a profile that does not exist");
		else if (plumb_builder_get_track(builder, track)->kind == PLUMB_TRACK_STREAM)
			read_stream(reader, track, first, moments);
		else
			plumb_trace_count(reader->trace, PLUMB_FATE_REPEATED,
			                  "samples of threads, already counted in the values",
			                  (int64_t)moments);
	}
}

/* ---- the database ---- */

static void
describe_run(struct hpct_reader *reader)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	uint64_t offset;
	const unsigned char *head = plumb_hpct_section(reader, &reader->meta, 0x10, 16, &offset);
	struct plumb_slice title = { NULL, 0 };
	if (head && hpct_u64(head))
		title = plumb_hpct_text(reader, &reader->meta, hpct_u64(head));
	if (title.bytes)
		plumb_builder_run(builder)->command =
			plumb_builder_command(builder, title.at, title.bytes);
}

static int
read_database(struct hpct_reader *reader, struct plumb_error *error)
{
	int code = open_file(reader, &reader->meta, "meta.db", "meta", false, error);
	if (!code)
		code = open_file(reader, &reader->profile, "profile.db", "prof", false, error);
	if (!code)
		code = open_file(reader, &reader->times, "trace.db", "trce", true, error);
	if (code)
		return code;
	reader->metrics = calloc(HPCT_METRICS, sizeof *reader->metrics);
	reader->no_memory = !reader->metrics;
	if (!reader->no_memory)
		plumb_hpct_metrics(reader);
	if (!reader->no_memory && !reader->why)
		plumb_hpct_reasons(reader);
	if (!reader->no_memory && !reader->why)
		plumb_hpct_tree(reader);
	if (!reader->no_memory && !reader->why)
		read_profiles(reader);
	if (!reader->no_memory && !reader->why)
		plumb_hpct_samples(reader);
	if (!reader->no_memory && !reader->why && reader->times.mapped)
		read_times(reader);
	if (!reader->no_memory && !reader->why)
		describe_run(reader);
	if (reader->no_memory)
		return plumb_fail_memory(error, "to read %s", reader->folder);
	if (reader->why)
		return plumb_fail(error, PLUMB_EINPUT, "%s/%s: byte %" PRIu64 ": %s",
		                  reader->folder, reader->why_file->name, reader->why_at,
		                  reader->why);
	return 0;
}

static void
close_file(struct hpct_file *file)
{
	if (file->mapped)
		munmap((void *)file->at, file->bytes);
}

static int
read_folder(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct hpct_reader reader = { .trace = trace, .folder = file->path };
	int code = read_database(&reader, error);
	close_file(&reader.meta);
	close_file(&reader.profile);
	close_file(&reader.times);
	plumb_vec_free(&reader.contexts);
	plumb_vec_free(&reader.tracks);
	plumb_vec_free(&reader.shares);
	plumb_vec_free(&reader.reasons);
	plumb_vec_free(&reader.samples);
	plumb_vec_free(&reader.by_lines);
	plumb_hpct_free_modules(&reader);
	plumb_map_free(&reader.map);
	free(reader.metrics);
	return code;
}

static int
probe_hpctoolkit(const struct plumb_import_file *file)
{
	char path[4096], magic[14] = "";
	snprintf(path, sizeof path, "%s/meta.db", file->path);
	int fd = plumb_regular_open(AT_FDCWD, path, 0);
	if (fd < 0)
		return 0;
	bool is = pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
	          !memcmp(magic, MAGIC "meta", sizeof magic);
	close(fd);
	return is ? 95 : 0;
}

const struct plumb_format plumb_format_hpctoolkit = {
	.name = "hpctoolkit",
	.title = "HPCToolkit databases (folders)",
	.folder = true,
	.probe = probe_hpctoolkit,
	.read = read_folder,
};
