/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page with its answers inside. It holds the answers to a list of questions, and an index of
 * these by their canonical queries. Each answer is packed (zstd) and written as base64, in an
 * element that no browser runs. What an answer leaves out is said in its note.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "analyze/group.h"
#include "analyze/iterations.h"
#include "analyze/kernel_code.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/regular.h"
#include "base/sha256.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/metric.h"
#include "serve/answers.h"
#include "serve/page.h"
#include "view/timeline.h"

#define PACK_LEVEL 9
#define ROWS_MOST 1000   /* of a report */
#define FLAME_WIDTH 8000 /* pixels */
#define BOXES_MOST 100000
#define BOXES_FEW 25000
#define TIMELINE_WIDTH 8000      /* pixels */
#define COUNTER_BINS_MOST 200000 /* of all hardware counters together */
#define MEMORIES_MOST 64         /* of devices and processes */
#define DETAILS_MOST 60          /* boxes of a flame graph */
#define EXPLAINED_MOST 12        /* iterations of a track */
#define PATH_WIDTH 4000
#define KERNELS_MOST 8  /* with their causes */
#define STALLS_MOST 100 /* of a kernel */
#define CODE_MOST 4000  /* instructions; as answers have them if nobody says how many */
#define FILES_MOST 6    /* of source of a kernel */

struct entry {
	char *key;   /* the canonical query, without what a page does not choose by */
	uint32_t id; /* of its element; equal answers have one */
	unsigned char digest[PLUMB_SHA256_BYTES];
	bool columns;
	char *why, *remedy; /* there is no answer; or NULL */
	char *note;         /* what is left out; or NULL */
};

struct onefile {
	struct plumb_answers *answers;
	FILE *out;
	PLUMB_VEC(struct entry) entries;
};

static void
free_onefile(struct onefile *page)
{
	for (uint32_t i = 0; i < page->entries.count; i++) {
		free(page->entries.items[i].key);
		free(page->entries.items[i].why);
		free(page->entries.items[i].remedy);
		free(page->entries.items[i].note);
	}
	plumb_vec_free(&page->entries);
}

/* ---- one answer ---- */

static int
write_packed(struct onefile *page, const struct entry *entry, const struct plumb_reply *reply,
             struct plumb_error *error)
{
	size_t room = ZSTD_compressBound(reply->bytes);
	void *packed = malloc(room);
	size_t bytes =
		packed ? ZSTD_compress(packed, room, reply->data, reply->bytes, PACK_LEVEL) : 0;

	if (!packed || ZSTD_isError(bytes)) {
		free(packed);
		return plumb_fail_memory(error, "for the page");
	}
	fprintf(page->out,
	        "<script type=\"application/octet-stream;base64\" id=\"answer-%" PRIu32
	        "\" data-query=\"",
	        entry->id);
	plumb_page_text(entry->key, page->out);
	fputs("\">", page->out);
	plumb_base64_write(packed, bytes, page->out);
	fputs("</script>\n", page->out);
	free(packed);
	return 0;
}

/* The text of KEY in the JSON object of REPLY, which plumb wrote; malloced, or NULL. */
static char *
read_text(const struct plumb_reply *reply, const char *key)
{
	const char *at = strstr(reply->data, key), *end;

	at = at ? at + strlen(key) : NULL;
	end = at && *at == '"' ? strchr(at + 1, '"') : NULL;
	return end ? strndup(at + 1, (size_t)(end - at - 1)) : NULL;
}

/* The question as the page asks it: canonical, without what a page does not choose by. Malloced. */
static char *
write_key(const struct plumb_answer_kind *kind, const char *text, struct plumb_error *error)
{
	static const char *const except[] = { "top", "px", "first", "count", "near", NULL };
	struct plumb_query query;
	char *key = NULL;
	size_t bytes;
	FILE *out;

	if (plumb_query_read(&query, text, kind->keys, error) == 0 &&
	    (out = open_memstream(&key, &bytes))) {
		fprintf(out, "%s?", kind->name);
		plumb_query_write(&query, except, out);
		if (fclose(out)) {
			free(key);
			key = NULL;
		} else if (key[bytes - 1] == '?') {
			key[bytes - 1] = '\0';
		}
	}
	plumb_query_free(&query);
	return key;
}

/* Writes the answer, unless an element has it already. */
static int
write_once(struct onefile *page, struct entry *entry, const struct plumb_reply *reply,
           struct plumb_error *error)
{
	plumb_sha256(reply->data, reply->bytes, entry->digest);
	for (const struct entry *other = page->entries.items; other < entry; other++)
		if (!other->why && !memcmp(other->digest, entry->digest, sizeof entry->digest)) {
			entry->id = other->id;
			return 0;
		}
	return write_packed(page, entry, reply, error);
}

/* Adds the answer NAME to QUERY. NOTE says what it leaves out, or is NULL. Takes REPLY, which is
 * the answer. */
static int
add_reply(struct onefile *page, const char *name, const char *query, const char *note,
          struct plumb_reply *reply, struct plumb_error *error)
{
	struct entry *entry = reply ? plumb_vec_add(&page->entries) : NULL;
	int code = 0;

	plumb_fail_memory(error, "for the page");
	if (!entry || !(entry->key = write_key(plumb_answer_kind_find(name), query, error))) {
		plumb_reply_drop(reply);
		return error->code;
	}
	entry->id = page->entries.count;
	entry->columns = !strcmp(reply->type, "application/octet-stream");
	entry->note = note && reply->status == 200 ? strdup(note) : NULL;
	if (reply->status == 200) {
		code = write_once(page, entry, reply, error);
	} else if (reply->status == 404) {
		entry->why = read_text(reply, "\"why\":");
		entry->remedy = read_text(reply, "\"remedy\":");
	} else {
		code = plumb_fail(error, PLUMB_ESYSTEM, "%s?%s: %.*s", name, query,
		                  (int)(reply->bytes ? reply->bytes - 1 : 0), reply->data);
	}
	plumb_reply_drop(reply);
	if (!code && ferror(page->out))
		code = plumb_fail(error, PLUMB_ESYSTEM, "the page cannot be written");
	return code;
}

/* The query is written as FORMAT says. An empty part, as in "a=1&&b=2", is nothing. */
static int PLUMB_PRINTF(5, 6) add(struct onefile *page, const char *name, const char *note,
                                  struct plumb_error *error, const char *format, ...)
{
	char query[400];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(query, sizeof query, format, arguments);
	va_end(arguments);
	return add_reply(page, name, query, note, plumb_answers_reply(page->answers, name, query),
	                 error);
}

/* ---- what a page holds ---- */

static int
add_reports(struct onefile *page, const char *file, const char *window, struct plumb_error *error)
{
	static const char *const groups[] = { "",        "kernel",  "operator", "module",
		                              "python",  "line",    "phase",    "native",
		                              "range",   "thread",  "shape",    "rank",
		                              "library", "process", "memory",   "collective" };
	char note[80];
	int code = 0;

	snprintf(note, sizeof note, "it has at most the %d largest rows", ROWS_MOST);
	for (size_t g = 0; !code && g < sizeof groups / sizeof *groups; g++)
		code = add(page, "report", note, error, "%s%s&%s&%s&top=%d",
		           *groups[g] ? "by=" : "", groups[g], file, window, ROWS_MOST);
	return code;
}

/* How many rows the first of the binary tables of REPLY has. */
static uint64_t
count_rows(const struct plumb_reply *reply)
{
	uint64_t rows = 0;

	for (int i = 7; reply->bytes >= 64 && i >= 0; i--)
		rows = rows << 8 | (unsigned char)reply->data[24 + i];
	return rows;
}

/* A flame graph as wide as a page may hold: boxes that are narrower than a pixel of this width are
 * merged. WHOLE_TOO: if it has few boxes, it is there as it is, since the page makes other views of
 * it. */
static int
add_flame(struct onefile *page, const char *query, bool whole_too, struct plumb_error *error)
{
	char whole[400], note[120];
	struct plumb_reply *reply = NULL;
	int px = FLAME_WIDTH;

	if (whole_too) {
		reply = plumb_answers_reply(page->answers, "flame", query);
		if (reply && reply->status == 200 && count_rows(reply) <= BOXES_FEW)
			return add_reply(page, "flame", query, NULL, reply, error);
	}
	for (; px >= 250; px /= 2) {
		snprintf(whole, sizeof whole, "%s&px=%d", query, px);
		plumb_reply_drop(reply);
		reply = plumb_answers_reply(page->answers, "flame", whole);
		if (!reply || reply->status != 200 || count_rows(reply) <= BOXES_MOST)
			break;
	}
	snprintf(note, sizeof note,
	         "boxes that are narrower than 1/%d of the whole are merged with their neighbours",
	         px);
	return add_reply(page, "flame", whole, note, reply, error);
}

static int
add_flames(struct onefile *page, const struct plumb_served_file *file, const char *number,
           const char *window, struct plumb_error *error)
{
	static const uint32_t metrics[] = { PLUMB_METRIC_GPU_TIME, PLUMB_METRIC_OP_TIME,
		                            PLUMB_METRIC_CPU_TIME, PLUMB_METRIC_HOST_WAIT };
	enum { METRICS = sizeof metrics / sizeof *metrics };
	static const char *const views[] = { "down", "heavy", "up" };
	const struct plumb_profile *p = file->whole;
	uint32_t usual = plumb_metric_default(p);
	unsigned has = 0;
	char query[300];
	int code = 0;

	for (uint32_t i = 0; i < p->values_count; i++)
		for (unsigned m = 0; m < METRICS; m++)
			has |= (unsigned)(p->values[i].metric == metrics[m]) << m;
	for (size_t v = 0; !code && v < 3; v++) {
		snprintf(query, sizeof query, "view=%s&%s&%s", views[v], number, window);
		code = add_flame(page, query, !v, error);
		/* The default is asked for with its name, and without. */
		for (unsigned m = 0; !code && m < METRICS; m++) {
			if (!(has >> m & 1) && metrics[m] != usual)
				continue;
			snprintf(query, sizeof query, "view=%s&%s&%s&metric=%s", views[v], number,
			         window, plumb_metrics[metrics[m]].name);
			code = add_flame(page, query, !v, error);
		}
	}
	return code;
}

/* ---- boxes in detail ---- */

static int
compare_boxes(const void *a, const void *b)
{
	const struct plumb_sort_item *x = a, *y = b;

	return (x->key < y->key) - (x->key > y->key);
}

/* How many boxes a page has details of. Each takes a pass over the profile. */
static uint32_t
count_details(const struct plumb_profile *p)
{
	uint64_t most = UINT64_C(20000000) / (p->contexts_count + UINT64_C(1));

	return most < 10 ? 10 : most < DETAILS_MOST ? (uint32_t)most : DETAILS_MOST;
}

/* Adds the details of the widest boxes of the flame graph that QUERY asks for. */
static int
add_details_of(struct onefile *page, struct plumb_flame *flame, uint32_t most, const char *query,
               struct plumb_error *error)
{
	const struct plumb_flame_range range = { .px = 2000 };
	struct plumb_sort_item *order;
	struct plumb_answer boxes;
	int code = plumb_flame_boxes(flame, &range, &boxes, error);

	if (code)
		return code;
	order = malloc((boxes.row_count + (size_t)1) * sizeof *order);
	for (uint32_t r = 0; order && r < boxes.row_count; r++) {
		const struct plumb_answer_cell *c = plumb_answer_at(&boxes, r, 0);

		order[r].index = (uint32_t)c[0].integer;
		order[r].key = (uint64_t)((c[4].number - c[3].number) * 1e15);
	}
	if (order)
		qsort(order, boxes.row_count, sizeof *order, compare_boxes);
	for (uint32_t r = 0; order && !code && r < boxes.row_count && r < most; r++)
		code = add(page, "frame", NULL, error, "%s&node=%" PRIu32, query, order[r].index);
	if (!order)
		code = plumb_fail_memory(error, "for the page");
	free(order);
	plumb_answer_free(&boxes);
	return code;
}

/* Of the flame graph of FILE, or of FILE against AGAINST. */
static int
add_details(struct onefile *page, struct plumb_served_file *file, struct plumb_served_file *against,
            const struct plumb_window_choice *window, enum plumb_flame_view view, const char *query,
            struct plumb_error *error)
{
	struct plumb_flame_query wanted = { .view = view };
	const struct plumb_profile *p;
	struct plumb_flame *flame;
	uint32_t most = count_details(file->whole);
	int code = plumb_served_window(page->answers, file, window, false, &p, error);

	if (!code && against)
		code = plumb_served_window(page->answers, against, window, false, &wanted.against,
		                           error);
	if (code)
		return code;
	flame = plumb_flame_make(p, &wanted, error);
	if (!flame) /* there is no such answer, as the page says where the graph would be */
		return error->code == PLUMB_ESYSTEM ? error->code : 0;
	code = add_details_of(page, flame, against ? most / 2 : most, query, error);
	plumb_flame_free(flame);
	return code;
}

/* The node of the answer, if it says that its box is what finding ID is about; -1. */
static int64_t
node_of_finding(struct onefile *page, const char *query, const char *id)
{
	struct plumb_reply *reply = plumb_answers_reply(page->answers, "frame", query);
	char *text = reply && reply->status == 200 ? strndup(reply->data, reply->bytes) : NULL;
	const char *findings = text ? strstr(text, "\"findings\":") : NULL;
	const char *node = text ? strstr(text, "\"node\":") : NULL;
	int64_t found = node && findings && strstr(findings, id) ? strtoll(node + 7, NULL, 10) : -1;

	free(text);
	plumb_reply_drop(reply);
	return found;
}

/* The box of a finding, as the page looks for it: with the default metric, else with one that has a
 * value there. Then the page opens the box by its node. */
static int
add_finding_box(struct onefile *page, const struct plumb_profile *p,
                const struct plumb_finding *finding, const char *number, struct plumb_error *error)
{
	static const uint32_t others[] = { 0, PLUMB_METRIC_GPU_TIME, PLUMB_METRIC_OP_TIME,
		                           PLUMB_METRIC_CPU_TIME, PLUMB_METRIC_HOST_WAIT };
	const char *id = plumb_text(p, finding->id), *window = plumb_text(p, finding->window);
	char about[200], query[300];
	int64_t node = -1;
	int code;

	for (size_t m = 0; node < 0 && m < sizeof others / sizeof *others; m++) {
		snprintf(about, sizeof about, "%s&window=%s%s%s", number, window ? window : "all",
		         m ? "&metric=" : "", m ? plumb_metrics[others[m]].name : "");
		snprintf(query, sizeof query, "%s&finding=%s", about, id);
		node = node_of_finding(page, query, id);
	}
	if (node < 0)
		return 0;
	code = add(page, "frame", NULL, error, "%s", query);
	return code ? code : add(page, "frame", NULL, error, "%s&node=%" PRId64, about, node);
}

static int
add_finding_boxes(struct onefile *page, const struct plumb_served_file *file, const char *number,
                  struct plumb_error *error)
{
	const struct plumb_profile *p = file->whole;
	uint32_t most = count_details(p);
	int code = 0;

	for (uint32_t i = 0; !code && i < p->findings_count && i < most; i++)
		if (p->findings[i].context < p->contexts_count)
			code = add_finding_box(page, p, &p->findings[i], number, error);
	return code;
}

/* ---- iterations ---- */

/* Why outliers of the outermost loop of each main track differ; the longest first. */
static int
add_explained(struct onefile *page, const struct plumb_iteration_track *track, const char *number,
              struct plumb_error *error)
{
	const struct plumb_iteration_level *level = &track->levels[0];
	struct plumb_sort_item *order = malloc((level->count + (size_t)1) * sizeof *order);
	uint32_t count = 0;
	int code = order ? 0 : plumb_fail_memory(error, "for the page");

	for (uint32_t i = 0; order && i < level->count; i++) {
		int64_t ns = level->items[i].end_ns - level->items[i].start_ns;

		if (level->items[i].outlier || level->count <= EXPLAINED_MOST)
			order[count++] = (struct plumb_sort_item){ (uint64_t)ns, i };
	}
	if (order)
		qsort(order, count, sizeof *order, compare_boxes);
	for (uint32_t i = 0; !code && i < count && i < EXPLAINED_MOST; i++)
		code = add(page, "explain", NULL, error, "%s&track=%" PRIu32 "&iteration=%" PRIu32,
		           number, track->track, order[i].index);
	free(order);
	return code;
}

static int
add_iterations(struct onefile *page, const struct plumb_served_file *file, const char *number,
               struct plumb_error *error)
{
	const struct plumb_iters_query wanted = { .paths = PLUMB_ITERS_NO_PATHS };
	struct plumb_iters iters;
	int code = plumb_iters_make(file->whole, &wanted, &iters, error);

	for (uint32_t t = 0; !code && t < iters.found.count; t++)
		if (iters.found.tracks[t].level_count)
			code = add_explained(page, &iters.found.tracks[t], number, error);
	plumb_iters_free(&iters);
	return code;
}

/* Hardware counters over time. They share their bound, so that few of them lose nothing. */
static int
add_counters(struct onefile *page, const struct plumb_served_file *file, const char *number,
             struct plumb_error *error)
{
	uint32_t count = file->lanes ? plumb_lanes_counters(file->lanes) : 0;
	/* Up to two bins lie in a pixel if they do not fit into one together. */
	uint32_t px = count ? COUNTER_BINS_MOST / 2 / count : 0;
	char note[80];

	if (!count)
		return 0;
	px = px > TIMELINE_WIDTH ? TIMELINE_WIDTH : px < 1 ? 1 : px;
	snprintf(note, sizeof note,
	         "values of counters are means of at least 1/%" PRIu32 " of the time", px);
	return add(page, "timeline/counters", note, error, "%s&px=%" PRIu32, number, px);
}

static int
add_timeline(struct onefile *page, const char *number, struct plumb_error *error)
{
	static const char *const wide[] = { "timeline/spans", "timeline/arrows", "timeline/bands" };
	char note[120];
	int code = add(page, "timeline/tracks", NULL, error, "%s", number);

	if (!code)
		code = add(page, "timeline/sum", NULL, error, "%s", number);
	snprintf(note, sizeof note,
	         "spans that are shorter than 1/%d of the time are merged with their neighbours",
	         TIMELINE_WIDTH);
	for (int i = 0; !code && i < 3; i++)
		code = add(page, wide[i], note, error, "%s&px=%d", number, TIMELINE_WIDTH);
	return code;
}

/* Of each memory, up to a number; the page shows one at a time. */
static int
add_memory(struct onefile *page, const struct plumb_served_file *file, const char *number,
           struct plumb_error *error)
{
	static const char *const groups[] = { "line", "operator", "module" };
	char note[80];
	uint32_t count = plumb_memories_count(file->whole);
	int code = add(page, "memory/devices", NULL, error, "%s", number);

	snprintf(note, sizeof note, "it has at most the %d largest rows", ROWS_MOST);
	for (uint32_t m = 0; !code && m < count && m < MEMORIES_MOST; m++) {
		code = add(page, "memory/series", NULL, error, "%s&memory=%" PRIu32, number, m);
		for (size_t g = 0; !code && g < sizeof groups / sizeof *groups; g++)
			code = add(page, "memory/holders", note, error,
			           "%s&memory=%" PRIu32 "&by=%s&top=%d", number, m, groups[g],
			           ROWS_MOST);
	}
	return code;
}

/* The state graph of each level of the usual loop, and the path of its median iteration. */
static int
add_loop(struct onefile *page, const char *number, struct plumb_error *error)
{
	char note[120];
	int code = 0;

	for (int level = 0; !code && level < PLUMB_LEVELS_MOST; level++)
		code = add(page, "states", NULL, error, "%s&level=%d", number, level);
	snprintf(note, sizeof note,
	         "segments that are shorter than 1/%d of the path are merged with their neighbours",
	         PATH_WIDTH);
	if (!code)
		code = add(page, "path", note, error, "%s&px=%d", number, PATH_WIDTH);
	return code;
}

/* Of one kernel: its stalls and causes, and as much of its code and source as a page may hold. */
static int
add_kernel(struct onefile *page, const char *number, uint32_t kernel, struct plumb_error *error)
{
	char query[120], note[160];
	struct plumb_reply *reply;
	uint64_t files;
	int code;

	snprintf(query, sizeof query, "%s&kernel=%" PRIu32, number, kernel);
	code = add(page, "why", NULL, error, "%s&top=%d", query, STALLS_MOST);
	if (!code)
		code = add(page, "why/code", NULL, error, "%s&hot=1&count=0", query);
	if (code)
		return code;
	reply = plumb_answers_reply(page->answers, "why/code", query);
	snprintf(note, sizeof note,
	         "the page holds the %d instructions around the one with most waiting", CODE_MOST);
	code = add_reply(page, "why/code", query,
	                 reply && count_rows(reply) == CODE_MOST ? note : NULL, reply, error);
	reply = code ? NULL : plumb_answers_reply(page->answers, "why/source", query);
	files = reply ? count_rows(reply) : 0;
	if (!code)
		code = add_reply(page, "why/source", query, NULL, reply, error);
	for (uint32_t f = 0; !code && f < files && f < FILES_MOST; f++)
		code = add(page, "why/source", NULL, error, "%s&source=%" PRIu32 "&near=1", query,
		           f);
	return code;
}

static int
add_kernels(struct onefile *page, const struct plumb_served_file *file, const char *number,
            struct plumb_error *error)
{
	struct plumb_kernels found;
	uint32_t added = 0, left = 0;
	char note[120];
	int code = plumb_kernels_find(file->whole, &found, error);

	if (code)
		return code;
	for (uint32_t k = 0; !code && k < found.count; k++) {
		if (!found.items[k].samples)
			continue;
		if (added == KERNELS_MOST) {
			left++;
			continue;
		}
		code = add_kernel(page, number, k, error);
		added++;
	}
	plumb_kernels_free(&found);
	snprintf(note, sizeof note,
	         "This page holds the causes of the %" PRIu32 " greatest kernels with samples, "
	         "not of %" PRIu32 " others.",
	         added, left);
	return code ? code : add(page, "why/kernels", left ? note : NULL, error, "%s", number);
}

static int
add_window(struct onefile *page, const struct plumb_served_file *file, const char *number,
           const char *window, struct plumb_error *error)
{
	int code = add_reports(page, number, window, error);

	if (!code && *window)
		code = add(page, "overview", NULL, error, "%s&%s", number, window);
	if (!code)
		code = add_flames(page, file, number, window, error);
	return code;
}

/* The details that the page can open in WINDOW. */
static int
add_window_details(struct onefile *page, struct plumb_served_file *file, const char *number,
                   const char *window, struct plumb_error *error)
{
	struct plumb_window_choice choice = plumb_served_main(file);
	const char *name = strchr(window, '=');
	char query[200];
	int code = name ? plumb_window_parse(name + 1, &choice, error) : 0;

	for (int v = PLUMB_FLAME_DOWN; !code && v <= PLUMB_FLAME_UP; v++) {
		snprintf(query, sizeof query, "view=%s&%s&%s", plumb_flame_view_names[v], number,
		         window);
		code = add_details(page, file, NULL, &choice, (enum plumb_flame_view)v, query,
		                   error);
	}
	return code;
}

/* The first file of each side. */
static int
add_comparison(struct onefile *page, struct plumb_error *error)
{
	static const char *const groups[] = { "",       "kernel", "operator", "module",
		                              "python", "line",   NULL };
	const struct plumb_window_choice all = { PLUMB_WINDOW_ALL, 0 };
	struct plumb_answers *answers = page->answers;
	char query[200];
	int code = 0;

	for (int g = 0; !code && groups[g]; g++)
		code = add(page, "diff", NULL, error, "%s%s", *groups[g] ? "by=" : "", groups[g]);
	if (answers->count < 2)
		return code;
	for (int v = PLUMB_FLAME_DOWN; !code && v <= PLUMB_FLAME_UP; v++)
		for (int w = 0; !code && w < PLUMB_FLAME_WIDTHS; w++) {
			snprintf(query, sizeof query, "view=%s&width=%s&file=%" PRIu32 "&against=0",
			         plumb_flame_view_names[v], plumb_flame_width_names[w],
			         answers->before);
			code = add_flame(page, query, false, error);
		}
	snprintf(query, sizeof query, "file=%" PRIu32 "&against=0", answers->before);
	return code ? code
	            : add_details(page, &answers->files[answers->before], &answers->files[0], &all,
	                          PLUMB_FLAME_DOWN, query, error);
}

/* Where the time went in each phase. */
static int
add_shares(struct onefile *page, const struct plumb_served_file *file, const char *number,
           const struct plumb_window_sums *sums, struct plumb_error *error)
{
	char name[PLUMB_WINDOW_NAME];
	int code = add(page, "shares", NULL, error, "%s&window=all", number);

	for (uint32_t w = 0; !code && w < sums->count; w++)
		code = add(page, "shares", NULL, error, "%s&window=%s", number,
		           plumb_window_name(file->whole, sums->items[w].kind,
		                             sums->items[w].number, name));
	return code;
}

static int
add_file(struct onefile *page, uint32_t i, struct plumb_error *error)
{
	static const char *const plain[] = { "overview", "findings", "iters", "tables",
		                             "ranks",    "traffic",  "levels" };
	static const char *const windows[] = { "", "window=all", "window=loop", "window=startup" };
	struct plumb_served_file *file = &page->answers->files[i];
	struct plumb_window_sums sums;
	char number[40] = "";
	bool startup = false;
	int code = 0;

	if (i)
		snprintf(number, sizeof number, "file=%" PRIu32, i);
	for (size_t a = 0; !code && a < sizeof plain / sizeof *plain; a++)
		code = add(page, plain[a], NULL, error, "%s", number);
	for (size_t k = 0; !code && plumb_tables_kinds[k].id; k++)
		if (!plumb_tables_kinds[k].aside)
			code = add(page, "tables", NULL, error, "%s&kind=%s", number,
			           plumb_tables_kinds[k].id);
	if (!code && file->whole->frames_count <= BOXES_MOST)
		code = add(page, "flame/frames", NULL, error, "%s", number);
	if (!code)
		code = add_timeline(page, number, error);
	if (!code)
		code = add_counters(page, file, number, error);
	if (!code)
		code = add_memory(page, file, number, error);
	if (!code)
		code = add_loop(page, number, error);
	if (!code && file->whole->code_samples_count)
		code = add_kernels(page, file, number, error);
	if (!code && plumb_window_sums(file->whole, &sums) < 0)
		return plumb_fail_memory(error, "for the page");
	for (uint32_t w = 0; !code && w < sums.count; w++)
		startup |= sums.items[w].kind == PLUMB_WINDOW_STARTUP;
	if (!code) {
		code = add_shares(page, file, number, &sums, error);
		plumb_window_sums_free(&sums);
	}
	for (size_t w = 0; !code && w < 2 + 2u * file->has_loop; w++)
		if (w < 3 || startup) {
			code = add_window(page, file, number, windows[w], error);
			if (!code)
				code = add_window_details(page, file, number, windows[w], error);
		}
	if (!code)
		code = add_finding_boxes(page, file, number, error);
	return code ? code : add_iterations(page, file, number, error);
}

/* The tables that are of all files together. */
static int
add_several(struct onefile *page, struct plumb_error *error)
{
	uint32_t count = page->answers->count;
	int code = 0;

	for (size_t k = 0; !code && plumb_tables_kinds[k].id; k++)
		if (plumb_tables_kinds[k].several && count > 1 && count <= PLUMB_TABLES_PROFILES)
			code = add(page, "tables", NULL, error, "files=all&kind=%s",
			           plumb_tables_kinds[k].id);
	return code;
}

static int
add_all(struct onefile *page, struct plumb_error *error)
{
	int code = add(page, "about", NULL, error, "%s", "");

	for (uint32_t i = 0; !code && i < page->answers->count; i++)
		code = add_file(page, i, error);
	if (!code)
		code = add_several(page, error);
	return code ? code : add_comparison(page, error);
}

/* ---- the index ---- */

static void
write_index(const struct onefile *page, struct plumb_json *json)
{
	char id[24];

	plumb_json_object(json);
	plumb_json_key_object(json, "answers");
	for (uint32_t i = 0; i < page->entries.count; i++) {
		const struct entry *entry = &page->entries.items[i];

		plumb_json_key_object(json, entry->key);
		snprintf(id, sizeof id, "answer-%" PRIu32, entry->id);
		plumb_json_key_text(json, "id", id);
		plumb_json_key_text(json, "type", entry->columns ? "columns" : "json");
		if (entry->note)
			plumb_json_key_text(json, "note", entry->note);
		if (entry->why) {
			plumb_json_key_text(json, "why", entry->why);
			plumb_json_key_text(json, "remedy", entry->remedy);
		}
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_end(json);
}

/* The index as JSON in which no "<" stands, which could end the element. */
static int
add_index(const struct onefile *page, struct plumb_error *error)
{
	char *text = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&text, &bytes);
	struct plumb_json *json = memory ? plumb_json_new(memory) : NULL;
	int code;

	write_index(page, json);
	code = json ? plumb_json_finish(json) : -1;
	if ((memory && fclose(memory)) || code < 0) {
		free(text);
		return plumb_fail_memory(error, "for the page");
	}
	fputs("<script type=\"application/json\" id=\"plumb-answers\">", page->out);
	for (const char *at = text; *at; at++)
		if (*at == '<')
			fputs("\\u003c", page->out);
		else
			fputc(*at, page->out);
	fputs("</script>\n", page->out);
	free(text);
	return 0;
}

int
plumb_page_write(struct plumb_answers *answers, FILE *out, struct plumb_error *error)
{
	struct onefile page = { .answers = answers, .out = out };
	int code;

	plumb_page_begin(plumb_answers_title(answers), false, out);
	code = add_all(&page, error);
	if (!code)
		code = add_index(&page, error);
	if (!code)
		plumb_page_end(out);
	free_onefile(&page);
	return code;
}

bool
plumb_page_is(const char *path)
{
	char head[512] = "";
	int fd = plumb_regular_open(AT_FDCWD, path, 0);
	ssize_t bytes = fd < 0 ? -1 : read(fd, head, sizeof head - 1);

	if (fd >= 0)
		close(fd);
	return bytes > 0 && strstr(head, PLUMB_PAGE_MARK);
}
