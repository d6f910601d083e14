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
#include "model/rows.h"
#include "store/store.h"

struct writer {
	const struct plumb_profile *profile;
	struct plumb_json *json;
	FILE *out;
};

static void
put_number(struct plumb_json *json, const struct plumb_row_column *column, const void *field)
{
	int64_t number;
	double real;

	memcpy(&number, field, sizeof number);
	memcpy(&real, field, sizeof real);
	if (column->cell == PLUMB_ROW_LINK && !number)
		return;
	plumb_json_key(json, column->name);
	if (column->cell == PLUMB_ROW_REAL || column->cell == PLUMB_ROW_KNOWN)
		plumb_json_number(json, real);
	else if (column->cell == PLUMB_ROW_COUNT || column->cell == PLUMB_ROW_LINK)
		plumb_json_unsigned(json, (uint64_t)number);
	else if (column->cell == PLUMB_ROW_INT)
		plumb_json_quantity(json, number);
	else
		plumb_json_integer(json, number);
}

/* JSON has no bytes: of a blob it tells only how long it is. */
static void
put_blob(struct plumb_json *json, const struct plumb_row_column *column, const void *field)
{
	struct plumb_blob blob;
	char name[80];

	memcpy(&blob, field, sizeof blob);
	snprintf(name, sizeof name, "%s_bytes", column->name);
	plumb_json_key_quantity(json, name, blob.data ? (int64_t)blob.bytes : PLUMB_UNKNOWN);
}

static void
put_id(struct writer *w, const struct plumb_row_column *column, const void *field)
{
	uint32_t id;

	memcpy(&id, field, sizeof id);
	if (column->cell == PLUMB_ROW_ID_OR_0 && !id)
		return;
	plumb_json_key(w->json, column->name);
	switch (column->cell) {
	case PLUMB_ROW_TEXT:
		plumb_json_text(w->json, plumb_text(w->profile, id));
		break;
	case PLUMB_ROW_WORD:
		plumb_json_text(w->json, id < column->limit ? column->words[id] : NULL);
		break;
	case PLUMB_ROW_METRIC:
		plumb_json_text(w->json, plumb_profile_metric(w->profile, id).name);
		break;
	case PLUMB_ROW_LINE:
		plumb_json_quantity(w->json, id ? id : PLUMB_UNKNOWN);
		break;
	case PLUMB_ROW_ID_OR_NONE:
		plumb_json_quantity(w->json, id == PLUMB_NONE ? PLUMB_UNKNOWN : id);
		break;
	case PLUMB_ROW_ID_OR_0:
		plumb_json_integer(w->json, id - INT64_C(1));
		break;
	default:
		plumb_json_integer(w->json, id);
	}
}

static void
put_table(struct writer *w, const struct plumb_row_table *table)
{
	struct plumb_row_array rows = plumb_row_array_of(w->profile, table);

	plumb_json_key(w->json, table->name);
	plumb_json_array(w->json);
	for (uint32_t i = 0; i < rows.count && !ferror(w->out); i++) {
		const char *row = rows.items + (size_t)i * table->row_size;
		fputc('\n', w->out);
		plumb_json_object(w->json);
		plumb_json_key_quantity(w->json, "id", i);
		for (uint32_t c = 0; c < table->columns_count; c++) {
			const struct plumb_row_column *column = &table->columns[c];
			if (plumb_row_width(column) == sizeof(uint32_t))
				put_id(w, column, row + column->offset);
			else if (column->cell == PLUMB_ROW_BLOB)
				put_blob(w->json, column, row + column->offset);
			else
				put_number(w->json, column, row + column->offset);
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

static int
json_write(const struct plumb_profile *profile, const struct plumb_export_options *options,
           FILE *out, struct plumb_error *error)
{
	struct writer w = { profile, plumb_json_new(out), out };

	(void)options;
	plumb_json_object(w.json);
	plumb_json_key_quantity(w.json, "schema", PLUMB_STORE_SCHEMA);
	plumb_json_key_text(w.json, "version", PLUMB_VERSION);
	for (int t = 0; t < PLUMB_TABLES; t++)
		if (!plumb_row_tables[t].chunks)
			put_table(&w, &plumb_row_tables[t]);
	put_metrics(&w);
	for (int t = 0; t < PLUMB_TABLES; t++)
		if (plumb_row_tables[t].chunks)
			put_table(&w, &plumb_row_tables[t]);
	plumb_json_end(w.json);
	if (plumb_json_finish(w.json) < 0 && !ferror(out))
		return plumb_fail_memory(error, "to export the profile");
	return 0;
}

const struct plumb_export_format plumb_export_json = {
	.name = "json",
	.write = json_write,
};
