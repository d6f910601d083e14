/* SPDX-License-Identifier: Apache-2.0 */
#include "view/tables.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/workload.h"
#include "view/render.h"
#include "view/view.h"
#include "view/windows.h"

static const char *
device_of(const struct plumb_profile *profile)
{
	return profile->devices_count ? plumb_text(profile, profile->devices[0].name) : NULL;
}

void
plumb_tables_want(struct plumb_tables_query *query, const struct plumb_tables_kind *kind)
{
	for (uint32_t i = 0; i < query->kind_count; i++)
		if (query->kinds[i] == kind)
			return;
	query->kinds[query->kind_count++] = kind;
}

void
plumb_tables_want_all(struct plumb_tables_query *query)
{
	for (const struct plumb_tables_kind *kind = plumb_tables_kinds; kind->id; kind++)
		if (!kind->aside)
			plumb_tables_want(query, kind);
}

void
plumb_tables_want_default(struct plumb_tables_query *query, uint32_t profiles)
{
	if (!query->kind_count && profiles > 1)
		plumb_tables_want(query, plumb_tables_find("A1"));
	if (!query->kind_count)
		plumb_tables_want_all(query);
}

struct plumb_tables *
plumb_tables_new(const struct plumb_tables_query *query)
{
	struct plumb_tables *tables = calloc(1, sizeof *tables);

	if (tables)
		tables->query = *query;
	return tables;
}

void
plumb_tables_free(struct plumb_tables *tables)
{
	if (!tables)
		return;
	for (uint32_t i = 0; i < tables->query.kind_count; i++)
		plumb_answer_free(&tables->answers[i]);
	for (uint32_t i = 0; i < tables->count; i++)
		plumb_layers_free(&tables->layers[i]);
	free(tables);
}

/* ---- profiles ---- */

/* The peaks to hold against: those of the query, else those of the profile's GPU. */
static struct plumb_roof
find_roof(const struct plumb_tables_query *query, const char *device)
{
	const struct plumb_peak *peak = plumb_peak_of(device);
	struct plumb_roof roof = { NAN, NAN };

	if (peak && peak->tflops[query->precision] > 0)
		roof.peak_gflops = peak->tflops[query->precision] * 1e3;
	if (peak && peak->terabytes > 0)
		roof.bandwidth = peak->terabytes * 1e12;
	if (query->peak_gflops > 0)
		roof.peak_gflops = query->peak_gflops;
	if (query->bandwidth > 0)
		roof.bandwidth = query->bandwidth;
	return roof;
}

/* Takes the layers' times of the serialised run. */
static int
take_serialised(const struct plumb_tables *tables, const struct plumb_tables_profile *profile,
                struct plumb_layers *layers, struct plumb_error *error)
{
	struct plumb_layers_options wanted = tables->query.layers;
	struct plumb_layers serialised;
	int code;

	wanted.serialised = true;
	code = plumb_layers_make(profile->serialised, &wanted, &serialised, error);
	if (code)
		return plumb_fail_in(error, "%s", profile->serialised_file);
	if (plumb_layers_take_serialised(layers, &serialised))
		code = plumb_fail_memory(error, NULL);
	plumb_layers_free(&serialised);
	return code;
}

int
plumb_tables_add(struct plumb_tables *tables, const struct plumb_tables_profile *profile,
                 struct plumb_error *error)
{
	if (tables->count == PLUMB_TABLES_PROFILES)
		return plumb_fail(error, PLUMB_EUSAGE, "at most %d files at a time; leave some out",
		                  PLUMB_TABLES_PROFILES);
	uint32_t at = tables->count;
	struct plumb_layers *layers = &tables->layers[at];
	int code = plumb_layers_make(profile->profile, &tables->query.layers, layers, error);
	if (code)
		return profile->file ? plumb_fail_in(error, "%s", profile->file) : code;
	tables->count++;
	if (profile->serialised)
		code = take_serialised(tables, profile, layers, error);
	if (code)
		return code;
	tables->files[at] = profile->file;
	tables->roofs[at] = find_roof(&tables->query, device_of(profile->profile));
	tables->batches[at] = profile->batch;
	tables->batch_sources[at] = "given";
	if (!profile->batch)
		tables->batches[at] = plumb_batch_size_of(layers, &tables->batch_sources[at]);
	return 0;
}

const char *
plumb_tables_device(const struct plumb_tables *tables)
{
	return device_of(tables->layers[0].profile);
}

/* ---- the answers ---- */

#define SWAP(a, b)                                                                                 \
	do {                                                                                       \
		__typeof__(a) swapped_ = (a);                                                      \
		(a) = (b);                                                                         \
		(b) = swapped_;                                                                    \
	} while (0)

/* Puts profiles in the order of their batch sizes, which a shell's b*.plumb does not keep. Profiles
 * without a batch size come last. */
static void
order_by_batch(struct plumb_tables *t)
{
	for (uint32_t i = 1; i < t->count; i++)
		for (uint32_t k = i; k && t->batches[k] &&
		                     (!t->batches[k - 1] || t->batches[k - 1] > t->batches[k]);
		     k--) {
			SWAP(t->files[k], t->files[k - 1]);
			SWAP(t->batches[k], t->batches[k - 1]);
			SWAP(t->layers[k], t->layers[k - 1]);
			SWAP(t->roofs[k], t->roofs[k - 1]);
			SWAP(t->batch_sources[k], t->batch_sources[k - 1]);
		}
}

int
plumb_tables_make(struct plumb_tables *tables, struct plumb_error *error)
{
	const struct plumb_tables_query *query = &tables->query;
	int code = 0;

	if (!tables->count)
		return plumb_fail(error, PLUMB_EUSAGE, "tables are of one or more profiles");
	plumb_tables_want_default(&tables->query, tables->count);
	if (!query->as_given)
		order_by_batch(tables);
	tables->input = (struct plumb_tables_input){
		.layers = tables->layers,
		.count = tables->count,
		.batches = tables->batches,
		.peak_gflops = tables->roofs[0].peak_gflops,
		.bandwidth = tables->roofs[0].bandwidth,
		.gain = 0.05,
		.batch_sources = tables->batch_sources,
		.files = tables->files,
		.roofs = tables->roofs,
		.key = query->key,
		.against_best = query->against_best,
		.constraints = query->constraints,
	};
	for (uint32_t i = 0; i < query->kind_count && !code; i++) {
		code = plumb_tables_answer(query->kinds[i], &tables->input, &tables->answers[i],
		                           error);
		tables->rows += tables->answers[i].row_count;
	}
	return code;
}

/* ---- for programs ---- */

static int
write_json(const struct plumb_tables *tables, FILE *out)
{
	struct plumb_json *json = plumb_view_json_new(out, "tables");
	const struct plumb_layers *layers = tables->layers;
	const struct plumb_profile *p = layers->profile;

	plumb_window_json(p, json);
	plumb_json_key_text(json, "model",
	                    layers->model == PLUMB_NONE
	                            ? NULL
	                            : plumb_frame_label(p, p->contexts[layers->model].frame));
	plumb_json_key_quantity(json, "runs", layers->runs);
	plumb_json_key_text(json, "order", layers->in_order ? "execution" : "context");
	plumb_json_key_array(json, "tables");
	for (uint32_t i = 0; i < tables->query.kind_count; i++)
		plumb_view_answer_json(&tables->answers[i], json);
	plumb_json_end(json);
	plumb_json_end(json);
	return plumb_json_finish(json);
}

int
plumb_tables_write(const struct plumb_tables *tables, enum plumb_view_format format, FILE *out,
                   struct plumb_error *error)
{
	int code = 0;

	if (format == PLUMB_VIEW_JSON)
		code = write_json(tables, out);
	else if (format == PLUMB_VIEW_CSV)
		plumb_view_answers_csv(tables->answers, tables->query.kind_count, out);
	for (uint32_t i = 0; format == PLUMB_VIEW_COLUMNS && i < tables->query.kind_count; i++)
		if ((code = plumb_view_answer_columns(&tables->answers[i], out, error)))
			return code;
	if (ferror(out))
		return plumb_fail(error, PLUMB_ESYSTEM, "the tables cannot be written");
	return code ? plumb_fail_memory(error, "to print the tables") : 0;
}

int
plumb_view_tables(const struct plumb_tables_profile *profiles, uint32_t count,
                  const struct plumb_tables_query *query, enum plumb_view_format format, FILE *out,
                  struct plumb_error *error)
{
	struct plumb_tables *tables = plumb_tables_new(query);
	int code = tables ? 0 : plumb_fail_memory(error, NULL);

	for (uint32_t i = 0; i < count && !code; i++)
		code = plumb_tables_add(tables, &profiles[i], error);
	if (!code)
		code = plumb_tables_make(tables, error);
	if (!code)
		code = plumb_tables_write(tables, format, out, error);
	plumb_tables_free(tables);
	return code;
}
