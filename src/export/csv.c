/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a profile as a table for pandas and spreadsheets: a row for each call path, metric
 * and thread or stream, with all that is known of the three, so that grouping and pivoting need no
 * second table. CSV as of RFC 4180, but lines end with a line feed; what is unknown is empty.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/csv.h"
#include "export/export.h"
#include "export/names.h"
#include "model/metric.h"

static const char header[] =
	"context,parent,depth,kind,name,file,line,backward,path,metric,unit,aggregation,"
	"pid,rank,host,device,gpu,stream,gpu_context,tid,thread,count,sum,min,max,mean\n";

static void
put_text(FILE *out, const char *value)
{
	plumb_csv_put(out, value);
	fputc(',', out);
}

static void
put_number(FILE *out, int64_t number)
{
	if (number != PLUMB_UNKNOWN)
		fprintf(out, "%" PRId64, number);
	fputc(',', out);
}

/* Names from the outermost frame to CONTEXT, with " > " between them. */
static void
put_path(const struct plumb_profile *profile, uint32_t context, struct plumb_export_text *text,
         FILE *out)
{
	uint32_t steps[512], count = 0;

	for (uint32_t at = context; at && at != PLUMB_NONE && count < 512;
	     at = profile->contexts[at].parent)
		steps[count++] = at;
	text->bytes.count = 0;
	if (count == 512)
		plumb_export_append(text, "… > ");
	while (count--) {
		plumb_export_label(profile, steps[count], text);
		if (count)
			plumb_export_append(text, " > ");
	}
	char *end = plumb_vec_add(&text->bytes); /* zeroed: terminates */
	text->failed |= !end;
	put_text(out, end ? text->bytes.items : NULL);
}

static void
put_context(const struct plumb_profile *profile, uint32_t context, struct plumb_export_text *text,
            FILE *out)
{
	const struct plumb_context *c = &profile->contexts[context];
	const struct plumb_frame *frame = &profile->frames[c->frame];
	uint32_t line;
	const char *file = plumb_export_source(profile, c->frame, &line);

	put_number(out, context);
	put_number(out, c->parent == PLUMB_NONE ? PLUMB_UNKNOWN : c->parent);
	put_number(out, c->depth);
	put_text(out, plumb_frame_kind_names[frame->kind]);
	put_text(out, plumb_frame_label(profile, c->frame));
	put_text(out, file);
	put_number(out, line ? line : PLUMB_UNKNOWN);
	put_number(out, (c->flags & PLUMB_CONTEXT_BACKWARD) != 0);
	put_path(profile, context, text, out);
}

static void
put_track(const struct plumb_profile *profile, uint32_t track, FILE *out)
{
	static const struct plumb_track none = {
		.process = PLUMB_NONE,
		.device = PLUMB_NONE,
		.name = PLUMB_NONE,
		.tid = PLUMB_UNKNOWN,
		.stream = PLUMB_UNKNOWN,
		.gpu_context = PLUMB_UNKNOWN,
	};
	const struct plumb_track *t =
		track < profile->tracks_count ? &profile->tracks[track] : &none;
	const struct plumb_process *process =
		t->process < profile->processes_count ? &profile->processes[t->process] : NULL;
	const struct plumb_device *device =
		t->device < profile->devices_count ? &profile->devices[t->device] : NULL;

	put_number(out, process ? process->pid : PLUMB_UNKNOWN);
	put_number(out, process ? process->rank : PLUMB_UNKNOWN);
	put_text(out, process ? plumb_text(profile, process->host) : NULL);
	put_number(out, device ? device->ordinal : PLUMB_UNKNOWN);
	put_text(out, device ? plumb_text(profile, device->name) : NULL);
	put_number(out, t->stream);
	put_number(out, t->gpu_context);
	put_number(out, t->tid);
	put_text(out, plumb_text(profile, t->name));
}

static void
put_value(const struct plumb_profile *profile, const struct plumb_value *v,
          struct plumb_export_text *text, FILE *out)
{
	static const char *const aggregations[] = {
		[PLUMB_SUM] = "sum", [PLUMB_MAX] = "max", [PLUMB_CALL] = "call"
	};
	struct plumb_metric_info metric = plumb_profile_metric(profile, v->metric);

	put_context(profile, v->context, text, out);
	put_text(out, metric.name);
	put_text(out, metric.unit);
	put_text(out, aggregations[metric.aggregation]);
	put_track(profile, v->track, out);
	fprintf(out, "%" PRIu64 ",", v->count);
	/* A sum that means nothing is none. */
	put_number(out, metric.aggregation == PLUMB_SUM ? v->sum : PLUMB_UNKNOWN);
	put_number(out, v->min);
	put_number(out, v->max);
	if (isfinite(v->mean))
		fprintf(out, "%.17g", v->mean);
	fputc('\n', out);
}

static int
csv_write(const struct plumb_profile *profile, const struct plumb_export_options *options,
          FILE *out, struct plumb_error *error)
{
	struct plumb_export_text text = { 0 };

	(void)options;
	fputs(header, out);
	for (uint32_t i = 0; i < profile->values_count && !ferror(out) && !text.failed; i++)
		put_value(profile, &profile->values[i], &text, out);
	plumb_vec_free(&text.bytes);
	if (text.failed)
		return plumb_fail_memory(error, "to export the profile");
	return 0;
}

const struct plumb_export_format plumb_export_csv = {
	.name = "csv",
	.write = csv_write,
};
