/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole profile as one JSON object: the tables of a profile file (docs/profile-format.md) with
 * the same names and columns, each a list of objects whose `id` is their place. Metrics are named
 * where the file has their number, and spans are rows.
 */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "export/export.h"
#include "model/metric.h"
#include "store/schema.h"
#include "store/store.h"

struct writer {
	const struct plumb_profile *profile;
	struct plumb_json *json;
	FILE *out;
};

/* What FIELD holds. */
static void
put_cell(struct writer *w, const struct plumb_column *column, const void *field)
{
	uint32_t number = 0;
	int64_t integer = 0;
	double real = 0;

	if (column->cell == PLUMB_CELL_INT || column->cell == PLUMB_CELL_NUMBER ||
	    column->cell == PLUMB_CELL_COUNT)
		memcpy(&integer, field, sizeof integer);
	else if (column->cell == PLUMB_CELL_REAL)
		memcpy(&real, field, sizeof real);
	else
		memcpy(&number, field, sizeof number);
	plumb_json_key(w->json, column->name);
	switch (column->cell) {
	case PLUMB_CELL_INT:
		plumb_json_quantity(w->json, integer);
		break;
	case PLUMB_CELL_NUMBER:
		plumb_json_integer(w->json, integer);
		break;
	case PLUMB_CELL_COUNT:
		plumb_json_unsigned(w->json, (uint64_t)integer);
		break;
	case PLUMB_CELL_REAL:
		plumb_json_number(w->json, real);
		break;
	case PLUMB_CELL_TEXT:
		plumb_json_text(w->json, plumb_text(w->profile, number));
		break;
	case PLUMB_CELL_WORD:
		plumb_json_text(w->json, number < column->limit ? column->words[number] : NULL);
		break;
	case PLUMB_CELL_LINE:
		plumb_json_quantity(w->json, number ? number : PLUMB_UNKNOWN);
		break;
	case PLUMB_CELL_ID_OR_NONE:
		plumb_json_quantity(w->json, number == PLUMB_NONE ? PLUMB_UNKNOWN : number);
		break;
	case PLUMB_CELL_ID:
	case PLUMB_CELL_BITS:
		plumb_json_integer(w->json, number);
		break;
	}
}

static void
begin_row(struct writer *w, uint32_t id)
{
	fputc('\n', w->out);
	plumb_json_object(w->json);
	plumb_json_key_quantity(w->json, "id", id);
}

static void
put_table(struct writer *w, const struct plumb_table *table, bool values)
{
	const char *profile = (const char *)w->profile, *rows = profile + table->rows_offset;
	uint32_t count = 1;

	if (table->count_offset) {
		memcpy(&rows, profile + table->rows_offset, sizeof(void *));
		memcpy(&count, profile + table->count_offset, sizeof count);
	}
	plumb_json_key(w->json, table->name);
	plumb_json_array(w->json);
	for (uint32_t i = 0; i < count && !ferror(w->out); i++) {
		const char *row = rows + (size_t)i * table->row_size;
		begin_row(w, i);
		for (uint32_t k = 0; k < table->columns_count; k++) {
			const struct plumb_column *column = &table->columns[k];
			uint32_t metric;
			if (!values || strcmp(column->name, "metric") != 0) {
				put_cell(w, column, row + column->offset);
				continue;
			}
			memcpy(&metric, row + column->offset, sizeof metric);
			plumb_json_key_text(w->json, "metric",
			                    plumb_profile_metric(w->profile, metric).name);
		}
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
}

static void
put_metrics(struct writer *w)
{
	static const char *const aggregations[] = {
		[PLUMB_SUM] = "sum", [PLUMB_MAX] = "max", [PLUMB_CALL] = "call"
	};

	plumb_json_key(w->json, "metrics");
	plumb_json_array(w->json);
	for (uint32_t i = 1; i < plumb_metric_slots(w->profile); i++) {
		struct plumb_metric_info metric =
			plumb_profile_metric(w->profile, plumb_metric_at(i));
		if (!metric.name)
			continue;
		fputc('\n', w->out);
		plumb_json_object(w->json);
		plumb_json_key_text(w->json, "name", metric.name);
		plumb_json_key_text(w->json, "unit", metric.unit);
		plumb_json_key_text(w->json, "aggregation", aggregations[metric.aggregation]);
		plumb_json_key_text(w->json, "source", metric.source);
		plumb_json_key_text(w->json, "meaning", metric.meaning);
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
}

static void
put_span(struct writer *w, uint32_t id, uint32_t track, uint32_t context, int64_t start,
         int64_t end, uint64_t correlation, uint64_t bytes)
{
	begin_row(w, id);
	plumb_json_key_quantity(w->json, "track", track);
	plumb_json_key_quantity(w->json, "context", context);
	plumb_json_key_quantity(w->json, "start_ns", start);
	plumb_json_key_quantity(w->json, "end_ns", end);
	if (correlation) {
		plumb_json_key(w->json, "correlation");
		plumb_json_unsigned(w->json, correlation);
	}
	if (bytes) {
		plumb_json_key(w->json, "bytes");
		plumb_json_unsigned(w->json, bytes);
	}
	plumb_json_end(w->json);
}

static void
put_spans(struct writer *w)
{
	const struct plumb_profile *p = w->profile;

	plumb_json_key(w->json, "work");
	plumb_json_array(w->json);
	for (uint32_t i = 0; i < p->work_count && !ferror(w->out); i++)
		put_span(w, i, p->work[i].track, p->work[i].context, p->work[i].start_ns,
		         p->work[i].end_ns, 0, 0);
	plumb_json_end(w->json);
	plumb_json_key(w->json, "spans");
	plumb_json_array(w->json);
	for (uint32_t i = 0; i < p->spans_count && !ferror(w->out); i++)
		put_span(w, i, p->spans[i].track, p->spans[i].context, p->spans[i].start_ns,
		         p->spans[i].end_ns, p->spans[i].correlation, p->spans[i].bytes);
	plumb_json_end(w->json);
}

static int
json_write(const struct plumb_profile *profile, const struct plumb_export_options *options,
           FILE *out, struct plumb_error *error)
{
	struct writer w = { profile, plumb_json_new(out), out };

	(void)options;
	plumb_json_object(w.json);
	plumb_json_key_quantity(w.json, "schema", PLUMB_STORE_SCHEMA);
	plumb_json_key_text(w.json, "version", PLUMB_VERSION);
	for (uint32_t i = 0; i < PLUMB_TABLES; i++)
		put_table(&w, &plumb_store_schema[i], i == PLUMB_TABLE_VALUES);
	put_metrics(&w);
	put_spans(&w);
	plumb_json_end(w.json);
	if (plumb_json_finish(w.json) < 0 && !ferror(out))
		return plumb_fail(error, PLUMB_ESYSTEM, "not enough memory to export the profile");
	return 0;
}

const struct plumb_export_format plumb_export_json = {
	.name = "json",
	.write = json_write,
};
