/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/study_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "base/format.h"
#include "model/kernel_name.h"
#include "model/user_code.h"

#define SHORT_PART 35 /* bytes at either end of a long name */

/* ---- what is worked out once ---- */

static uint32_t *
operators_of(const struct plumb_profile *p)
{
	uint32_t *of = calloc(p->contexts_count + 1u, sizeof *of);

	for (uint32_t c = 0; of && c < p->contexts_count; c++) {
		if (plumb_context_frame(p, c)->kind == PLUMB_FRAME_OPERATOR)
			of[c] = c;
		else
			of[c] = c ? of[p->contexts[c].parent] : PLUMB_NONE;
	}
	return of;
}

/* Busy time and span of all devices together. */
static void
add_devices(struct plumb_study *study)
{
	const struct plumb_profile *p = study->profile;

	study->busy_ns = study->span_ns = p->devices_count ? 0 : PLUMB_UNKNOWN;
	for (uint32_t d = 0; d < p->devices_count; d++) {
		const struct plumb_device *device = &p->devices[d];
		int64_t span;

		if (!device->kernels && !device->copies && !device->sets)
			continue;
		if (device->busy_ns == PLUMB_UNKNOWN || device->first_ns == PLUMB_UNKNOWN ||
		    device->last_ns == PLUMB_UNKNOWN || device->busy_ns < 0 ||
		    __builtin_sub_overflow(device->last_ns, device->first_ns, &span) || span < 0) {
			study->busy_ns = study->span_ns = PLUMB_UNKNOWN;
			return;
		}
		/* A window may have come and gone several times meanwhile. */
		if (p->window.kind && p->run.wall_ns > 0 && span > p->run.wall_ns)
			span = p->run.wall_ns;
		study->busy_ns = plumb_add(study->busy_ns, device->busy_ns);
		study->span_ns = plumb_add(study->span_ns, span);
	}
}

static void
add_totals(struct plumb_study *study)
{
	const struct plumb_profile *p = study->profile;

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];

		if (v->metric == PLUMB_METRIC_GPU_COPY_TIME && v->sum > 0)
			study->copy_ns = plumb_add(study->copy_ns, v->sum);
	}
	for (uint32_t c = 0; c < p->contexts_count; c++)
		study->gpu_ns = plumb_add(study->gpu_ns, study->kernels[c].sum);
	if (study->span_ns != PLUMB_UNKNOWN && study->span_ns > 0)
		study->scale_ns = study->span_ns;
	else if (study->gpu_ns <= 0 && p->run.wall_ns > 0)
		study->scale_ns = p->run.wall_ns;
	else
		study->scale_ns = plumb_add(study->gpu_ns, study->copy_ns);
}

void
plumb_study_load(const struct plumb_profile *profile, uint32_t metric, struct plumb_stat *stats)
{
	plumb_inclusive(profile, metric, PLUMB_NONE, stats, NULL);
	for (uint32_t c = 0; c < profile->contexts_count; c++)
		if (stats[c].sum < 0)
			stats[c] = (struct plumb_stat){ 0 };
}

static bool
is_traced(const struct plumb_profile *p)
{
	bool threads = false, streams = false;

	for (uint32_t i = 0; i < p->spans_count && !(threads && streams); i++) {
		uint32_t kind = p->tracks[p->spans[i].track].kind;

		threads |= kind == PLUMB_TRACK_THREAD;
		streams |= kind == PLUMB_TRACK_STREAM;
	}
	return threads && streams;
}

struct plumb_study *
plumb_study_new(const struct plumb_profile *profile, const struct plumb_thresholds *thresholds,
                const char *user_code, struct plumb_error *error)
{
	struct plumb_study *study = calloc(1, sizeof *study);
	struct plumb_stat *kernels = calloc(profile->contexts_count + 1u, sizeof *kernels);

	if (!study || !kernels) {
		free(study);
		free(kernels);
		plumb_fail_memory(error, "for the analyses");
		return NULL;
	}
	study->profile = study->whole = profile;
	study->whole_ns = profile->window.kind ? profile->window.whole_ns : profile->run.wall_ns;
	study->kernels = kernels;
	if (!user_code)
		user_code = plumb_profile_environment(profile, "run.user_code");
	study->user = plumb_user_code_frames(profile, user_code, error);
	if (!study->user) {
		plumb_study_free(study);
		return NULL;
	}
	study->user_of = plumb_user_contexts(profile, study->user);
	study->division = study->user_of ? plumb_division_new(profile, study->user, study->user_of,
	                                                      plumb_metric_default(profile))
	                                 : NULL;
	study->place_of = study->division ? study->division->place_of : NULL;
	study->operator_of = operators_of(profile);
	study->findings = calloc(1, sizeof *study->findings);
	if (study->findings) {
		study->findings->thresholds = thresholds;
		study->findings->texts = plumb_pool_new();
	}
	if (!study->place_of || !study->operator_of || !study->findings ||
	    !study->findings->texts) {
		plumb_study_free(study);
		plumb_fail_memory(error, "for the analyses");
		return NULL;
	}
	plumb_study_load(profile, PLUMB_METRIC_GPU_TIME, kernels);
	add_devices(study);
	add_totals(study);
	study->traced = is_traced(profile);
	return study;
}

void
plumb_study_free(struct plumb_study *study)
{
	if (!study)
		return;
	free((void *)study->user);
	free((void *)study->user_of);
	plumb_division_free(study->division);
	free((void *)study->operator_of);
	free((void *)study->kernels);
	if (study->findings) {
		for (uint32_t i = 0; i < study->findings->about.count; i++)
			free(study->findings->about.items[i].gone);
		plumb_vec_free(&study->findings->about);
		plumb_vec_free(&study->findings->rows);
		plumb_pool_free(study->findings->texts);
		plumb_iterations_free(&study->findings->iterations);
		free(study->findings);
	}
	free(study);
}

const struct plumb_finding_text *
plumb_study_findings(const struct plumb_study *study, uint32_t *count)
{
	*count = study->findings->rows.count;
	return study->findings->rows.items;
}

void
plumb_study_rule(struct plumb_study *study, const char *rule)
{
	study->findings->rule = rule;
}

double
plumb_study_threshold(const struct plumb_study *study, const char *name)
{
	return plumb_thresholds_get(study->findings->thresholds, name);
}

const char *
plumb_study_scale(const struct plumb_study *study, char *text, size_t size)
{
	char time[PLUMB_FORMAT_SIZE];

	plumb_format_time(time, study->scale_ns);
	if (study->span_ns != PLUMB_UNKNOWN && study->span_ns > 0)
		snprintf(text, size, "the %s from the GPU's first work to its last", time);
	else if (study->gpu_ns <= 0 && study->profile->run.wall_ns > 0)
		snprintf(text, size, "the %s's %s", study->profile->window.kind ? "window" : "run",
		         time);
	else
		snprintf(text, size, "the GPU's %s of kernels and copies", time);
	return text;
}

const struct plumb_iterations *
plumb_study_iterations(const struct plumb_study *study)
{
	struct plumb_study_findings *f = study->findings;

	if (!f->have_iterations) {
		if (plumb_iterations_find(study->profile, NULL, &f->iterations, NULL) < 0) {
			plumb_iterations_free(&f->iterations);
			return NULL;
		}
		f->have_iterations = true;
	}
	return &f->iterations;
}

int64_t
plumb_study_idle(const struct plumb_study *study)
{
	if (study->span_ns == PLUMB_UNKNOWN || study->busy_ns == PLUMB_UNKNOWN)
		return PLUMB_UNKNOWN;
	return study->span_ns > study->busy_ns ? study->span_ns - study->busy_ns : 0;
}

/* ---- words ---- */

char *
plumb_study_line(const struct plumb_study *study, uint32_t frame, char *text, size_t size)
{
	struct plumb_user_place place;

	if (frame >= study->profile->frames_count) {
		snprintf(text, size, "no line of your code");
		return text;
	}
	if (plumb_division_is_part(study->division, frame))
		return plumb_division_text(study->profile, study->division, frame, false, text,
		                           size);
	place = plumb_user_place(study->profile, frame);
	return plumb_user_place_text(&place, false, text, size);
}

char *
plumb_study_key(const struct plumb_study *study, uint32_t frame, char *text, size_t size)
{
	if (!plumb_division_is_part(study->division, frame))
		return plumb_study_line(study, frame, text, size);
	snprintf(text, size, "%s:%" PRIu32,
	         plumb_division_name(study->profile, study->division, frame),
	         study->profile->frames[frame].kind == PLUMB_FRAME_PYTHON
	                 ? study->profile->frames[frame].line
	                 : 0);
	return text;
}

char *
plumb_study_line_at(const struct plumb_study *study, uint32_t line, uint32_t context, char *text,
                    size_t size)
{
	uint32_t place = study->place_of[context];
	size_t used = strlen(plumb_study_line(study, line, text, size));
	char part[420];

	if (place != line && plumb_division_is_part(study->division, place))
		snprintf(text + used, size - used, " (most in %s)",
		         plumb_study_line(study, place, part, sizeof part));
	return text;
}

char *
plumb_study_under(const struct plumb_study *study, const char *before, uint32_t frame, char *text,
                  size_t size)
{
	char line[420];

	if (frame >= study->profile->frames_count)
		*text = '\0';
	else
		snprintf(text, size, "%s%s", before,
		         plumb_study_line(study, frame, line, sizeof line));
	return text;
}

/* Of a kernel that a general template runs, what it computes: "FillFunctor" of
 * vectorized_elementwise_kernel. False: it is no such kernel. */
static bool
name_computed(const char *label, char *text, size_t size)
{
	char *compact = plumb_kernel_name_compact(label);
	bool wrapped = compact && strstr(compact, " (");

	if (wrapped)
		snprintf(text, size, "%.*s", (int)strcspn(compact, "<(# "), compact);
	free(compact);
	return wrapped;
}

char *
plumb_study_name(const struct plumb_study *study, uint32_t frame, char *text, size_t size)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *label = plumb_frame_label(study->profile, frame), *end;

	uint32_t kind = study->profile->frames[frame].kind;

	/* "enumerate(DataLoader)#next" of a range is no function with parameters. */
	if (kind != PLUMB_FRAME_KERNEL && kind != PLUMB_FRAME_NATIVE &&
	    kind != PLUMB_FRAME_INLINE) {
		snprintf(text, size, "%.400s", label);
		return text;
	}
	if (kind == PLUMB_FRAME_KERNEL && name_computed(label, text, size))
		return text;
	if (!strncmp(label, "void ", 5))
		label += 5;
	for (end = label; *end && *end != '<'; end++) {
		if (*end != '(')
			continue;
		if (strncmp(end, anonymous, sizeof anonymous - 1))
			break;
		end += sizeof anonymous - 2;
	}
	if (end == label)
		end = label + strlen(label);
	snprintf(text, size, "%.*s", (int)(end - label < 400 ? end - label : 400), label);
	return text;
}

char *
plumb_study_short(const struct plumb_study *study, uint32_t frame, char *text, size_t size)
{
	char name[420];
	size_t bytes = strlen(plumb_study_name(study, frame, name, sizeof name));
	size_t head = SHORT_PART, tail = bytes - SHORT_PART;

	if (bytes <= 2 * SHORT_PART + 1) {
		snprintf(text, size, "%s", name);
		return text;
	}
	/* Not within a character. */
	while (((unsigned char)name[head] & 0xc0) == 0x80)
		head--;
	while (((unsigned char)name[tail] & 0xc0) == 0x80)
		tail++;
	snprintf(text, size, "%.*s" PLUMB_ELLIPSIS "%s", (int)head, name, name + tail);
	return text;
}

void
plumb_study_line_json(const struct plumb_study *study, struct plumb_json *evidence, uint32_t frame)
{
	bool part = plumb_division_is_part(study->division, frame);
	char text[1200];
	struct plumb_user_place place;

	if (part)
		plumb_json_key_text(evidence, "divided_by",
		                    plumb_study_line(study, frame, text, sizeof text));
	place = plumb_user_place(study->profile, plumb_division_line(study->division, frame));
	plumb_json_key_text(evidence, "user_file", place.file);
	plumb_json_key_line(evidence, "user_line", place.line);
	if (place.function)
		plumb_json_key_text(evidence, "user_function", place.function);
}

/* ---- drafts ---- */

static void
replace_text(struct plumb_draft *draft, char **text, const char *format, va_list arguments)
{
	free(*text);
	if (vasprintf(text, format, arguments) < 0) {
		*text = NULL;
		draft->failed = true;
	}
}

void
plumb_draft_begin(struct plumb_draft *draft, const char *cause, uint32_t context)
{
	*draft = (struct plumb_draft){
		.cause = cause, .context = context, .saving_ns = PLUMB_UNKNOWN, .confidence = NAN
	};
	draft->evidence_out = open_memstream(&draft->evidence_text, &draft->evidence_bytes);
	draft->failed = !draft->evidence_out;
	draft->evidence = draft->evidence_out ? plumb_json_new(draft->evidence_out) : NULL;
	plumb_json_object(draft->evidence);
	if (cause)
		plumb_json_key_text(draft->evidence, "cause", cause);
}

#define DEFINE_TEXT(name, field)                                                                   \
	void plumb_draft_##name(struct plumb_draft *draft, const char *format, ...)                \
	{                                                                                          \
		va_list arguments;                                                                 \
                                                                                                   \
		va_start(arguments, format);                                                       \
		replace_text(draft, &draft->field, format, arguments);                             \
		va_end(arguments);                                                                 \
	}
DEFINE_TEXT(key, key)
DEFINE_TEXT(title, title)
DEFINE_TEXT(advice, advice)

unsigned char *
plumb_draft_about(const struct plumb_study *study, struct plumb_draft *draft)
{
	if (!study->traced)
		return NULL;
	free(draft->about);
	draft->about = calloc(study->profile->contexts_count + 1u, 1);
	if (!draft->about)
		draft->failed = true;
	return draft->about;
}

void
plumb_draft_about_samples(const struct plumb_study *study, struct plumb_draft *draft,
                          unsigned char *about)
{
	const struct plumb_profile *p = study->profile;
	/* By context: the innermost one with spans, which may be itself. */
	uint32_t *around = about ? calloc(p->contexts_count + 1u, sizeof *around) : NULL;

	if (about && !around)
		draft->failed = true;
	if (!around)
		return;
	for (uint32_t i = 0; i < p->spans_count; i++)
		around[p->spans[i].context] = 1;
	for (uint32_t c = 0; c < p->contexts_count; c++)
		around[c] = around[c] ? c : c ? around[p->contexts[c].parent] : PLUMB_NONE;
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		if (v->metric == PLUMB_METRIC_CPU_TIME && v->sum > 0 && about[v->context])
			about[around[v->context] == PLUMB_NONE ? p->contexts_count
			                                       : around[v->context]] = 1;
	}
	free(around);
}

uint32_t
plumb_study_severity(const struct plumb_study *study, int64_t saving_ns, double confidence)
{
	int64_t whole =
		study->main_scale_ns > study->scale_ns ? study->main_scale_ns : study->scale_ns;
	double part;

	if (saving_ns == PLUMB_UNKNOWN || whole <= 0 || !(confidence >= 0.3))
		return PLUMB_NOTE;
	part = (double)saving_ns / (double)whole;
	return part >= 0.2 ? PLUMB_SERIOUS : part >= 0.05 ? PLUMB_WARNING : PLUMB_NOTE;
}

const char *
plumb_study_keep(struct plumb_study *study, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = plumb_pool_take(study->findings->texts, bytes);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

static const char *
keep_text(struct plumb_study *study, const char *text, bool *ok)
{
	const char *copy = text ? plumb_study_keep(study, text) : NULL;

	*ok = *ok && copy;
	return copy;
}

static bool
add_finding(struct plumb_study *study, struct plumb_draft *draft)
{
	struct plumb_finding_text row = { .rule = study->findings->rule,
		                          .context = draft->context,
		                          .saving_ns = draft->saving_ns,
		                          .confidence = round(draft->confidence * 100) / 100,
		                          .severity = draft->severity };
	struct plumb_finding_text *added;
	struct plumb_study_about *about;
	char id[PLUMB_FINDING_ID];
	bool ok = true, judged = !draft->severity || study->main_scale_ns;

	if (judged)
		row.severity = plumb_study_severity(study, draft->saving_ns, draft->confidence);
	plumb_finding_id(id, study->profile, row.rule, draft->cause, draft->key, draft->context);
	row.id = keep_text(study, id, &ok);
	row.title = keep_text(study, draft->title, &ok);
	row.advice = keep_text(study, draft->advice, &ok);
	row.evidence = keep_text(study, draft->evidence_text, &ok);
	about = ok ? plumb_vec_add(&study->findings->about) : NULL;
	added = about ? plumb_vec_add(&study->findings->rows) : NULL;
	if (!added)
		return false;
	*added = row;
	*about = (struct plumb_study_about){ .gone = draft->about,
		                             .whole = !draft->key && draft->context,
		                             .host = draft->host,
		                             .device = draft->device,
		                             .device_gone = draft->device_gone,
		                             .tells = draft->tells,
		                             .idle_ns = draft->idle_ns,
		                             .judged = judged };
	draft->about = NULL;
	return true;
}

int
plumb_draft_end(struct plumb_study *study, struct plumb_draft *draft)
{
	bool ok = !draft->failed;

	plumb_json_end(draft->evidence);
	ok = plumb_json_finish(draft->evidence) == 0 && ok;
	if (draft->evidence_out && fclose(draft->evidence_out))
		ok = false;
	if (ok && draft->evidence_bytes && draft->evidence_text[draft->evidence_bytes - 1] == '\n')
		draft->evidence_text[draft->evidence_bytes - 1] = '\0';
	ok = ok && add_finding(study, draft);
	free(draft->key);
	free(draft->title);
	free(draft->advice);
	free(draft->evidence_text);
	free(draft->about);
	return ok ? 0 : PLUMB_ESYSTEM;
}

/* ---- tallies ---- */

int
plumb_tally_new(const struct plumb_study *study, struct plumb_tally *tally)
{
	tally->frames = study->profile->frames_count;
	tally->ns = calloc(tally->frames + 1u, sizeof *tally->ns);
	tally->count = calloc(tally->frames + 1u, sizeof *tally->count);
	if (tally->ns && tally->count)
		return 0;
	plumb_tally_free(tally);
	return PLUMB_ESYSTEM;
}

void
plumb_tally_free(struct plumb_tally *tally)
{
	free(tally->ns);
	free(tally->count);
	*tally = (struct plumb_tally){ 0 };
}

void
plumb_tally_add(struct plumb_tally *tally, uint32_t frame, int64_t ns, uint64_t count)
{
	if (frame > tally->frames)
		frame = tally->frames;
	tally->ns[frame] = plumb_add(tally->ns[frame], ns);
	tally->count[frame] += count;
}

/* The index with the most; frames + 1 where there is nothing. */
bool
plumb_is_same_function(const struct plumb_profile *p, uint32_t a, uint32_t b)
{
	return p->frames[a].kind == p->frames[b].kind && p->frames[a].name == p->frames[b].name &&
	       p->frames[a].file == p->frames[b].file;
}

static void
move_tally(struct plumb_tally *tally, uint32_t from, uint32_t to)
{
	tally->ns[to] = plumb_add(tally->ns[to], tally->ns[from]);
	tally->count[to] += tally->count[from];
	tally->ns[from] = 0;
	tally->count[from] = 0;
}

static int
by_function(const void *left, const void *right, void *profile)
{
	const struct plumb_profile *p = profile;
	const struct plumb_frame *a = &p->frames[*(const uint32_t *)left],
				 *b = &p->frames[*(const uint32_t *)right];

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return a->file < b->file ? -1 : a->file > b->file;
}

/* Joins the COUNT lines of one function. */
static void
join_function(const uint32_t *lines, uint32_t count, struct plumb_tally *const *tallies)
{
	uint32_t most = lines[0];

	for (uint32_t i = 1; i < count; i++)
		if (tallies[0]->ns[lines[i]] > tallies[0]->ns[most] ||
		    (tallies[0]->ns[lines[i]] == tallies[0]->ns[most] && lines[i] < most))
			most = lines[i];
	for (uint32_t i = 0; i < count; i++)
		for (int t = 0; lines[i] != most && tallies[t]; t++)
			move_tally(tallies[t], lines[i], most);
}

int
plumb_tally_join_functions(const struct plumb_study *study, struct plumb_tally *const *tallies)
{
	const struct plumb_profile *p = study->profile;
	uint32_t *lines = malloc(((size_t)p->frames_count + 1) * sizeof *lines);

	if (!lines)
		return PLUMB_ESYSTEM;
	for (uint32_t f = 0; f < p->frames_count; f++)
		lines[f] = f;
	qsort_r(lines, p->frames_count, sizeof *lines, by_function, (void *)(uintptr_t)p);
	for (uint32_t from = 0, to; from < p->frames_count; from = to) {
		for (to = from + 1; to < p->frames_count; to++)
			if (!plumb_is_same_function(p, lines[from], lines[to]))
				break;
		join_function(lines + from, to - from, tallies);
	}
	free(lines);
	return 0;
}

static uint32_t
find_greatest(const struct plumb_tally *tally)
{
	uint32_t best = tally->frames + 1;

	for (uint32_t f = 0; f <= tally->frames; f++)
		if (tally->count[f] && (best > tally->frames || tally->ns[f] > tally->ns[best]))
			best = f;
	return best;
}

uint32_t
plumb_tally_top(const struct plumb_tally *tally)
{
	uint32_t best = find_greatest(tally);

	return best < tally->frames ? best : PLUMB_NONE;
}

void
plumb_tally_json(const struct plumb_study *study, struct plumb_tally *tally,
                 struct plumb_json *evidence, const char *key, int most)
{
	const struct plumb_profile *p = study->profile;

	plumb_json_key(evidence, key);
	plumb_json_array(evidence);
	for (int i = 0; i < most; i++) {
		uint32_t f = find_greatest(tally);
		char text[600];

		if (f > tally->frames)
			break;
		plumb_json_object(evidence);
		if (f == tally->frames)
			plumb_json_key_text(evidence, "name", NULL);
		else if (p->frames[f].kind == PLUMB_FRAME_PYTHON)
			plumb_json_key_text(evidence, "line",
			                    plumb_study_line(study, f, text, sizeof text));
		else
			plumb_json_key_text(evidence, "name",
			                    p->frames[f].kind == PLUMB_FRAME_MODULE
			                            ? plumb_study_line(study, f, text, sizeof text)
			                            : plumb_frame_label(p, f));
		plumb_json_key_quantity(evidence, "ns", tally->ns[f]);
		plumb_json_key(evidence, "count");
		plumb_json_unsigned(evidence, tally->count[f]);
		plumb_json_end(evidence);
		tally->ns[f] = 0;
		tally->count[f] = 0;
	}
	plumb_json_end(evidence);
}
