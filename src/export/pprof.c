/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's format (google/pprof, proto/profile.proto): gzipped protobuf. A sample is a context on
 * one track, its locations the frames from the leaf up; what track it is stands in labels. Strings
 * are numbered when they are first used and come last, which protobuf allows.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/protobuf.h"
#include "base/strtab.h"
#include "export/export.h"
#include "export/names.h"
#include "export/written.h"
#include "model/metric.h"
#include "model/times.h"

#define LEVEL 6
#define GZIP (15 + 16) /* zlib's window bits, with gzip's head */

enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14
};
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT };
enum {
	MAPPING_ID = 1,
	MAPPING_FILE = 5,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES,
	MAPPING_HAS_LINES
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };
enum { VALUE_TYPE = 1, VALUE_UNIT };

struct pprof {
	const struct plumb_profile *profile;
	FILE *out;
	z_stream zip;
	struct plumb_protobuf message; /* fields of the profile that are not written yet */
	struct plumb_strtab *strings;
	uint32_t *locations; /* by frame and mark: the location's number, 0 none yet */
	uint32_t locations_count;
	uint32_t metrics_count;
	struct pprof_metric {
		uint32_t number;
		uint32_t place; /* by slot: where the slot's metric is among those exported, + 1 */
		uint32_t at, end; /* the values of one context that are not written yet */
		int64_t sum;      /* of one sample */
	} *metrics;
	gz_header head;
	bool failed; /* no memory */
};

/* ---- output ---- */

/* Compresses what is there and writes it; FLUSH as deflate takes it. */
static void
put_out(struct pprof *p, int flush)
{
	unsigned char packed[16384];

	if (plumb_protobuf_failed(&p->message)) {
		p->failed = true;
		return;
	}
	p->zip.next_in = p->message.data;
	p->zip.avail_in = (uInt)p->message.size;
	do {
		p->zip.next_out = packed;
		p->zip.avail_out = sizeof packed;
		deflate(&p->zip, flush);
		fwrite(packed, 1, sizeof packed - p->zip.avail_out, p->out);
	} while (!p->zip.avail_out && !ferror(p->out));
	plumb_protobuf_clear(&p->message);
}

static void
put_often(struct pprof *p)
{
	if (p->message.size > 65536)
		put_out(p, Z_NO_FLUSH);
}

static uint64_t
add_string(struct pprof *p, const char *text)
{
	uint32_t id = plumb_strtab_add(p->strings, text ? text : "", text ? strlen(text) : 0);

	p->failed |= id == PLUMB_STRTAB_NONE;
	return id;
}

/* ---- functions and locations ---- */

/* pprof prints names to terminals as they are. */
static void
clean_text(char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = ' ';
}

static void
put_function(struct pprof *p, uint32_t number, uint32_t frame, unsigned mark, const char *file)
{
	struct plumb_export_text name = { 0 };
	const struct plumb_frame *f = &p->profile->frames[frame];

	plumb_export_append(&name, plumb_frame_label(p->profile, frame));
	plumb_export_append(&name, plumb_export_mark_texts[mark]);
	clean_text(name.bytes.items, name.bytes.count);
	char *end = plumb_vec_add(&name.bytes); /* zeroed: terminates */
	p->failed |= !end || name.failed;
	plumb_protobuf_begin(&p->message, PROFILE_FUNCTION);
	plumb_protobuf_number(&p->message, FUNCTION_ID, number);
	plumb_protobuf_number(&p->message, FUNCTION_NAME,
	                      add_string(p, end ? name.bytes.items : NULL));
	plumb_protobuf_number(&p->message, FUNCTION_SYSTEM_NAME,
	                      add_string(p, plumb_text(p->profile, f->name)));
	plumb_protobuf_number(&p->message, FUNCTION_FILE, add_string(p, file));
	plumb_protobuf_end(&p->message);
	plumb_vec_free(&name.bytes);
}

/* The location of CONTEXT's frame, written before the first sample that needs it. */
static uint32_t
put_location(struct pprof *p, uint32_t context)
{
	uint32_t frame = p->profile->contexts[context].frame, line;
	unsigned mark = plumb_export_mark(p->profile, context);
	uint32_t *number = &p->locations[(size_t)frame * PLUMB_EXPORT_MARKS + mark];
	const char *file;

	if (*number)
		return *number;
	*number = ++p->locations_count;
	file = plumb_export_source(p->profile, frame, &line);
	put_function(p, *number, frame, mark, file);
	plumb_protobuf_begin(&p->message, PROFILE_LOCATION);
	plumb_protobuf_number(&p->message, LOCATION_ID, *number);
	plumb_protobuf_number(&p->message, LOCATION_MAPPING, 1);
	plumb_protobuf_begin(&p->message, LOCATION_LINE);
	plumb_protobuf_number(&p->message, LINE_FUNCTION, *number);
	plumb_protobuf_number(&p->message, LINE_LINE, line);
	plumb_protobuf_end(&p->message);
	plumb_protobuf_end(&p->message);
	return *number;
}

/* ---- samples ---- */

static void
put_label(struct pprof *p, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	plumb_protobuf_begin(&p->message, SAMPLE_LABEL);
	plumb_protobuf_number(&p->message, LABEL_KEY, add_string(p, key));
	plumb_protobuf_number(&p->message, LABEL_TEXT, add_string(p, text));
	plumb_protobuf_end(&p->message);
}

static void
put_number_label(struct pprof *p, const char *key, int64_t number)
{
	char text[24];

	if (number == PLUMB_UNKNOWN)
		return;
	snprintf(text, sizeof text, "%" PRId64, number);
	put_label(p, key, text);
}

static void
put_labels(struct pprof *p, uint32_t track)
{
	const struct plumb_profile *profile = p->profile;
	const struct plumb_track *t =
		track < profile->tracks_count ? &profile->tracks[track] : NULL;

	if (!t)
		return;
	if (t->process < profile->processes_count) {
		put_number_label(p, "rank", profile->processes[t->process].rank);
		put_number_label(p, "pid", profile->processes[t->process].pid);
		put_label(p, "host", plumb_text(profile, profile->processes[t->process].host));
	}
	if (t->device < profile->devices_count) {
		put_number_label(p, "device", profile->devices[t->device].ordinal);
		put_label(p, "gpu", plumb_text(profile, profile->devices[t->device].name));
	}
	put_number_label(p, "stream", t->stream);
	put_number_label(p, "tid", t->tid);
	put_label(p, "thread", plumb_text(profile, t->name));
}

static void
put_sample(struct pprof *p, uint32_t context, uint32_t track)
{
	for (uint32_t c = context; c; c = p->profile->contexts[c].parent)
		if (!plumb_export_folds(p->profile, c))
			put_location(p, c);
	plumb_protobuf_begin(&p->message, PROFILE_SAMPLE);
	plumb_protobuf_begin(&p->message, SAMPLE_LOCATION);
	for (uint32_t c = context; c; c = p->profile->contexts[c].parent)
		if (!plumb_export_folds(p->profile, c))
			plumb_protobuf_packed(&p->message, put_location(p, c));
	plumb_protobuf_end(&p->message);
	plumb_protobuf_begin(&p->message, SAMPLE_VALUE);
	for (uint32_t m = 0; m < p->metrics_count; m++)
		plumb_protobuf_packed(&p->message, (uint64_t)p->metrics[m].sum);
	plumb_protobuf_end(&p->message);
	put_labels(p, track);
	plumb_protobuf_end(&p->message);
	put_often(p);
}

/* The values of one context, [FROM, TO), ordered by metric and track: a sample for each track. So
 * each metric's values are a list in the order of tracks, and these are merged. */
static void
put_context(struct pprof *p, uint32_t from, uint32_t to)
{
	const struct plumb_value *values = p->profile->values;
	struct pprof_metric *of;

	for (uint32_t m = 0; m < p->metrics_count; m++)
		p->metrics[m].at = p->metrics[m].end = 0;
	for (uint32_t i = from; i < to; i++) {
		uint32_t place = p->metrics[plumb_metric_slot(values[i].metric)].place;
		if (!place)
			continue; /* this metric is not exported */
		of = &p->metrics[place - 1];
		if (of->at == of->end)
			of->at = i;
		of->end = i + 1;
	}
	for (;;) {
		uint64_t track = UINT64_MAX;
		for (uint32_t m = 0; m < p->metrics_count; m++) {
			of = &p->metrics[m];
			if (of->at < of->end && values[of->at].track < track)
				track = values[of->at].track;
		}
		if (track == UINT64_MAX)
			return;
		for (uint32_t m = 0; m < p->metrics_count; m++) {
			of = &p->metrics[m];
			of->sum = 0;
			if (of->at < of->end && values[of->at].track == track)
				of->sum = values[of->at++].sum;
		}
		put_sample(p, values[from].context, (uint32_t)track);
	}
}

static void
put_samples(struct pprof *p)
{
	const struct plumb_profile *profile = p->profile;
	uint32_t to;

	for (uint32_t from = 0; from < profile->values_count && !ferror(p->out); from = to) {
		for (to = from + 1; to < profile->values_count &&
		                    profile->values[to].context == profile->values[from].context;
		     to++)
			;
		put_context(p, from, to);
	}
}

/* ---- what stands once ---- */

/* Every metric that adds up and was seen, the main one first. */
static void
choose_metrics(struct pprof *p, const struct plumb_export_options *options)
{
	uint32_t first = options->metric ? options->metric : options->main;
	uint32_t slots = plumb_metric_slots(p->profile);
	bool *seen = calloc(slots, sizeof *seen);

	p->metrics = calloc(slots, sizeof *p->metrics);
	p->failed = !seen || !p->metrics;
	for (uint32_t i = 0; !p->failed && i < p->profile->values_count; i++)
		if (p->profile->values[i].sum)
			seen[plumb_metric_slot(p->profile->values[i].metric)] = true;
	for (uint32_t s = 0; !p->failed && s < slots; s++) {
		uint32_t metric = s == 0 ? first : plumb_metric_at(s);
		uint32_t slot = plumb_metric_slot(metric);
		if (!plumb_export_adds_up(metric) || !seen[slot] || p->metrics[slot].place ||
		    (options->metric && metric != options->metric))
			continue;
		p->metrics[p->metrics_count++].number = metric;
		p->metrics[slot].place = p->metrics_count;
	}
	free(seen);
}

static uint64_t
metric_name(struct pprof *p, uint32_t place)
{
	char name[256];

	snprintf(name, sizeof name, "%s",
	         plumb_profile_metric(p->profile, p->metrics[place].number).name);
	clean_text(name, strlen(name));
	return add_string(p, name);
}

static const char *
unit_of(const struct pprof *p, uint32_t place)
{
	const char *unit = plumb_profile_metric(p->profile, p->metrics[place].number).unit;

	return !strcmp(unit, "ns") ? "nanoseconds" : !strcmp(unit, "byte") ? "bytes" : unit;
}

static void
put_head(struct pprof *p)
{
	const struct plumb_run *run = &p->profile->run;
	const char *command = plumb_text(p->profile, run->command);
	const char *tool = plumb_text(p->profile, run->tool_version);
	int64_t start = plumb_realtime(p->profile, 0, run->start_ns);
	char comment[128];

	for (uint32_t m = 0; m < p->metrics_count; m++) {
		plumb_protobuf_begin(&p->message, PROFILE_SAMPLE_TYPE);
		plumb_protobuf_number(&p->message, VALUE_TYPE, metric_name(p, m));
		plumb_protobuf_number(&p->message, VALUE_UNIT, add_string(p, unit_of(p, m)));
		plumb_protobuf_end(&p->message);
	}
	/* One mapping for all: it says that nothing is left to symbolise. */
	plumb_protobuf_begin(&p->message, PROFILE_MAPPING);
	plumb_protobuf_number(&p->message, MAPPING_ID, 1);
	plumb_protobuf_number(&p->message, MAPPING_FILE, add_string(p, command));
	plumb_protobuf_number(&p->message, MAPPING_HAS_FUNCTIONS, 1);
	plumb_protobuf_number(&p->message, MAPPING_HAS_FILES, 1);
	plumb_protobuf_number(&p->message, MAPPING_HAS_LINES, 1);
	plumb_protobuf_end(&p->message);
	if (start != PLUMB_UNKNOWN)
		plumb_protobuf_number(&p->message, PROFILE_TIME, (uint64_t)start);
	if (run->wall_ns != PLUMB_UNKNOWN)
		plumb_protobuf_number(&p->message, PROFILE_DURATION, (uint64_t)run->wall_ns);
	snprintf(comment, sizeof comment, "plumb %s", tool ? tool : PLUMB_VERSION);
	plumb_protobuf_number(&p->message, PROFILE_COMMENT, add_string(p, comment));
	plumb_protobuf_number(&p->message, PROFILE_DEFAULT_TYPE, metric_name(p, 0));
}

static void
put_strings(struct pprof *p)
{
	for (uint32_t i = 0; i < plumb_strtab_count(p->strings) && !ferror(p->out); i++) {
		plumb_protobuf_text(&p->message, PROFILE_STRING, plumb_strtab_text(p->strings, i));
		put_often(p);
	}
}

static int
pprof_write(const struct plumb_profile *profile, const struct plumb_export_options *options,
            FILE *out, struct plumb_error *error)
{
	struct pprof p = { .profile = profile, .out = out };
	bool zip = false;

	choose_metrics(&p, options);
	if (!p.failed && !p.metrics_count) {
		free(p.metrics);
		return plumb_fail(
			error, PLUMB_EEMPTY,
			"there are no values of %s in this profile; choose another --metric",
			options->metric ? plumb_profile_metric(profile, options->metric).name
					: "any metric that adds up");
	}
	p.strings = plumb_strtab_new();
	p.locations =
		calloc((size_t)profile->frames_count * PLUMB_EXPORT_MARKS + 1, sizeof *p.locations);
	p.failed |= !p.strings || !p.locations;
	if (!p.failed)
		p.failed = add_string(&p, "") != 0; /* number 0 has to be the empty one */
	if (!p.failed) {
		zip = deflateInit2(&p.zip, LEVEL, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) == Z_OK;
		p.head.comment = (Bytef *)PLUMB_EXPORT_MARK;
		p.head.os = 3; /* Unix */
		p.failed = !zip || deflateSetHeader(&p.zip, &p.head) != Z_OK;
	}
	if (!p.failed) {
		put_head(&p);
		put_samples(&p);
		put_strings(&p);
		put_out(&p, Z_FINISH);
	}
	if (zip)
		deflateEnd(&p.zip);
	plumb_protobuf_free(&p.message);
	plumb_strtab_free(p.strings);
	free(p.locations);
	free(p.metrics);
	if (p.failed)
		return plumb_fail_memory(error, "to export the profile");
	return 0;
}

const struct plumb_export_format plumb_export_pprof = {
	.name = "pprof",
	.binary = true,
	.metric = true,
	.write = pprof_write,
};
