/* SPDX-License-Identifier: Apache-2.0 */
#include "view/why.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/vec.h"
#include "model/metric.h"

/* ---- which kernels ---- */

char *
plumb_why_name(const struct plumb_profile *p, const struct plumb_why_query *query, uint32_t row)
{
	const char *name = plumb_text(p, p->code_functions[row].name);
	char *shown = name && query->demangle ? query->demangle(name) : NULL;

	return shown ? shown : strdup(name ? name : "?");
}

static bool
matches_name(const struct plumb_profile *p, const struct plumb_why_query *query, uint32_t row,
             const char *shown)
{
	const char *name = plumb_text(p, p->code_functions[row].name);

	return !query->kernel || (name && strstr(name, query->kernel)) ||
	       strstr(shown, query->kernel);
}

/* ---- its stalls ---- */

static bool
is_file(const char *file, const char *end)
{
	size_t all = file ? strlen(file) : 0, bytes = strlen(end);

	return bytes && all >= bytes && !strcmp(file + all - bytes, end) &&
	       (all == bytes || file[all - bytes - 1] == '/' || *end == '/');
}

/* Is OFFSET of the code function ROW of the query's line, or inlined there? */
static bool
is_at_line(const struct plumb_profile *p, const struct plumb_why_query *query, uint32_t row,
           int64_t offset)
{
	uint32_t count;
	const struct plumb_code_line *lines = plumb_code_lines_at(p, row, offset, &count);

	for (uint32_t i = 0; lines && i < count; i++)
		if (lines[i].line == query->line &&
		    is_file(plumb_text(p, lines[i].file), query->file))
			return true;
	return false;
}

static bool
is_caused_by_line(const struct plumb_why_kernel *k, const struct plumb_why_query *query,
                  const struct plumb_stall *stall)
{
	for (uint32_t c = 0; c < stall->cause_count; c++) {
		const struct plumb_stall_cause *cause = &stall->causes[c];

		if (cause->has_place &&
		    is_at_line(k->code.profile, query, k->code.rows[cause->place.function],
		               plumb_kernel_insn(&k->code, cause->place)->offset))
			return true;
		for (uint32_t i = 0; i < cause->chain_count && i < PLUMB_CHAIN_MOST; i++) {
			struct plumb_slice_place place = cause->chain[i].place;

			if (is_at_line(k->code.profile, query, k->code.rows[place.function],
			               plumb_kernel_insn(&k->code, place)->offset))
				return true;
		}
	}
	return false;
}

/* Keeps STALL if the query wants it. */
static void
choose_stall(struct plumb_why_kernel *k, const struct plumb_why_query *query,
             struct plumb_why_stall stall)
{
	if (query->file) {
		if (is_at_line(k->code.profile, query, k->code.rows[stall.function], stall.offset))
			stall.matches |= PLUMB_WHY_AT_LINE;
		if (stall.from && is_caused_by_line(k, query, stall.from))
			stall.matches |= PLUMB_WHY_BY_LINE;
		if (!stall.matches)
			return;
	}
	if (query->top && k->stall_count >= query->top)
		k->stalls_left++;
	else
		k->stalls[k->stall_count++] = stall;
}

static int
add_sliced(struct plumb_why_kernel *k, const struct plumb_why_query *query)
{
	k->stalls = calloc(k->slice.stall_count + 1u, sizeof *k->stalls);
	if (!k->stalls)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < k->slice.stall_count; i++) {
		const struct plumb_stall *from = &k->slice.stalls[i];

		if (from->class == PLUMB_STALL_NONE)
			continue;
		k->waiting += from->samples;
		choose_stall(k, query,
		             (struct plumb_why_stall){
				     .from = from,
				     .number = i,
				     .function = from->place.function,
				     .insn = from->place.insn,
				     .offset = plumb_kernel_insn(&k->code, from->place)->offset,
				     .reason = from->reason,
				     .class = from->class,
				     .samples = from->samples,
				     .hidden = from->hidden,
			     });
	}
	return 0;
}

static int
compare_stalls(const void *a, const void *b)
{
	const struct plumb_why_stall *one = a, *two = b;

	if (one->samples != two->samples)
		return one->samples > two->samples ? -1 : 1;
	if (one->hidden != two->hidden)
		return one->hidden > two->hidden ? -1 : 1;
	if (one->function != two->function)
		return one->function < two->function ? -1 : 1;
	return one->offset < two->offset ? -1 : one->offset > two->offset;
}

/* Stalls without causes: of samples whose code is not known, or that lie in no instruction. */
static int
add_unsliced(struct plumb_why_kernel *k, const struct plumb_why_query *query)
{
	struct plumb_why_stall *found = calloc(k->code.sample_count + 1u, sizeof *found);
	uint32_t count = 0;

	k->stalls = calloc(k->code.sample_count + 1u, sizeof *k->stalls);
	if (!found || !k->stalls) {
		free(found);
		return PLUMB_ESYSTEM;
	}
	for (uint32_t i = 0; i < k->code.sample_count; i++) {
		const struct plumb_kernel_sample *s = &k->code.samples[i];
		const char *word = plumb_kernel_reason_word(&k->code, s->reason);
		struct plumb_why_stall *last = count ? &found[count - 1] : NULL;
		uint8_t class = (uint8_t)plumb_stall_reason_find(word)->class;

		if (class == PLUMB_STALL_NONE)
			continue;
		if (!last || last->function != s->function || last->offset != s->offset ||
		    last->reason != s->reason) {
			last = &found[count++];
			*last = (struct plumb_why_stall){ .function = s->function,
				                          .insn = PLUMB_NONE,
				                          .offset = s->offset,
				                          .reason = s->reason,
				                          .class = class };
		}
		*(s->issued ? &last->hidden : &last->samples) += s->count;
		k->waiting += s->issued ? 0 : s->count;
	}
	if (count)
		qsort(found, count, sizeof *found, compare_stalls);
	for (uint32_t i = 0; i < count; i++)
		choose_stall(k, query, found[i]);
	free(found);
	return 0;
}

/* Sets the problem of CODE; what is known of the samples stays. */
static int
set_problem(struct plumb_kernel_code *code, const char *message)
{
	free(code->problem);
	code->problem = strdup(message);
	return code->problem ? 0 : PLUMB_ESYSTEM;
}

static int
make_kernel(struct plumb_why *why, uint32_t number, struct plumb_why_kernel *k,
            struct plumb_error *error)
{
	int code = plumb_kernel_code_load(&why->found, number, &k->code, error);

	if (code)
		return code;
	if (!k->code.problem) {
		code = plumb_slice_make(&k->code.input, &k->slice, error);
		if (code && code != PLUMB_ESYSTEM)
			code = set_problem(&k->code, error->message);
	}
	if (!code && !k->code.problem)
		code = plumb_kernel_causes_make(&k->code, &k->slice, &k->causes, error);
	if (code)
		return code;
	code = k->code.problem ? add_unsliced(k, &why->query) : add_sliced(k, &why->query);
	return code ? plumb_fail_memory(error, "for the stalls") : 0;
}

static void
free_kernel(struct plumb_why_kernel *k)
{
	for (uint32_t g = 0; g < k->group_count; g++)
		free(k->groups[g].samples);
	free(k->groups);
	free(k->name);
	free(k->stalls);
	plumb_kernel_causes_free(&k->causes);
	plumb_slice_free(&k->slice);
	plumb_kernel_code_free(&k->code);
}

/* ---- all kernels ---- */

static int
nothing(const struct plumb_why *why, struct plumb_error *error)
{
	const struct plumb_profile *p = why->profile;
	const struct plumb_why_query *query = &why->query;

	if (!p->code_samples_count && !p->code_functions_count)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "the profile has no samples of GPU code; record them with plumb "
		                  "run --stalls");
	if (query->kernel)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "no kernel with %s has \"%s\" in its name; plumb why without a "
		                  "kernel's name shows all",
		                  p->code_samples_count ? "samples" : "code", query->kernel);
	return plumb_fail(error, PLUMB_EEMPTY, "the code has no kernels, only other functions");
}

static int
no_line(const struct plumb_why *why, struct plumb_error *error)
{
	const struct plumb_profile *p = why->profile;

	if (!p->code_lines_count)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "the GPU code has no lines; compile it with nvcc -lineinfo");
	return plumb_fail(error, PLUMB_EEMPTY,
	                  "no stall is at %s:%" PRIu32 " or caused by it; plumb why without "
	                  "--line shows where stalls are",
	                  why->query.file, why->query.line);
}

static int
make_kernels(struct plumb_why *why, struct plumb_error *error)
{
	const struct plumb_why_query *query = &why->query;
	uint32_t matching = 0;
	int code = 0;

	why->kernels = calloc(why->found.count + 1u, sizeof *why->kernels);
	if (!why->kernels)
		return plumb_fail_memory(error, "for the stalls");
	for (uint32_t i = 0; !code && i < why->found.count; i++) {
		uint32_t row = why->found.items[i].function;
		struct plumb_why_kernel *k = &why->kernels[why->count];
		char *name;

		if (query->one && i != query->number)
			continue;
		name = plumb_why_name(why->profile, query, row);
		if (!name)
			return plumb_fail_memory(error, "for the stalls");
		if (!matches_name(why->profile, query, row, name)) {
			free(name);
			continue;
		}
		matching++;
		if (query->kernels && why->count == query->kernels) {
			why->left++;
			free(name);
			continue;
		}
		*k = (struct plumb_why_kernel){ .kernel = &why->found.items[i], .name = name };
		code = make_kernel(why, i, k, error);
		why->count++;
		if (!code && query->file && !k->stall_count) {
			free_kernel(k);
			why->count--;
		}
	}
	if (!code && !why->count)
		code = matching && query->file ? no_line(why, error) : nothing(why, error);
	return code;
}

int
plumb_why_make(const struct plumb_profile *profile, const struct plumb_why_query *query,
               struct plumb_why *why, struct plumb_error *error)
{
	int code;

	*why = (struct plumb_why){ .profile = profile, .query = *query };
	code = plumb_kernels_find(profile, &why->found, error);
	if (code)
		return code;
	for (uint32_t i = 0; i < why->found.count; i++)
		why->samples += why->found.items[i].samples;
	for (uint32_t i = 0; i < profile->values_count; i++)
		if (profile->values[i].metric == PLUMB_METRIC_GPU_TIME)
			why->gpu_ns += (double)profile->values[i].sum;
	code = make_kernels(why, error);
	if (!code && query->by)
		code = plumb_why_find_groups(why, error);
	if (code)
		plumb_why_free(why);
	return code;
}

void
plumb_why_free(struct plumb_why *why)
{
	for (uint32_t i = 0; i < why->count; i++)
		free_kernel(&why->kernels[i]);
	free(why->kernels);
	plumb_kernels_free(&why->found);
	*why = (struct plumb_why){ 0 };
}

/* ---- words and numbers ---- */

int64_t
plumb_why_saving(const struct plumb_why_kernel *k, double part)
{
	if (isnan(part) || k->kernel->gpu_ns == PLUMB_UNKNOWN)
		return PLUMB_UNKNOWN;
	part = plumb_kernel_saving(&k->causes, part);
	return part >= 1 ? k->kernel->gpu_ns : (int64_t)((double)k->kernel->gpu_ns * part);
}

double
plumb_why_share(const struct plumb_why *why, const struct plumb_why_kernel *k)
{
	if (k->kernel->gpu_ns == PLUMB_UNKNOWN)
		return why->samples ? (double)k->kernel->samples / (double)why->samples : NAN;
	return why->gpu_ns > 0 ? (double)k->kernel->gpu_ns / why->gpu_ns : NAN;
}

static const struct plumb_stall *
stall_of(const struct plumb_why_kernel *k, const struct plumb_kernel_cause *item)
{
	return &k->slice.stalls[item->stall];
}

/* Where there are no causes: what the hottest stall is. */
static char *
bare_sentence(const struct plumb_why_kernel *k, char *text, size_t size)
{
	const struct plumb_why_stall *s = k->stalls;
	char share[PLUMB_FORMAT_SIZE];
	const char *word;

	if (!k->stall_count || !s->samples) {
		snprintf(text, size, "no warp was seen waiting");
		return text;
	}
	word = plumb_kernel_reason_word(&k->code, s->reason);
	snprintf(text, size,
	         "%s of the waiting is at +0x%" PRIx64 ": %s (%s); the cause is unknown",
	         plumb_format_share(share, (double)s->samples, (double)k->waiting),
	         (uint64_t)s->offset, word, plumb_stall_reason_find(word)->meaning);
	return text;
}

/* The name of a cause, else of its kind. Equal names are one string. */
static const char *
name_of(const struct plumb_why_kernel *k, const struct plumb_kernel_cause *item)
{
	const struct plumb_stall_cause *cause = &stall_of(k, item)->causes[item->cause];

	return cause->named ? cause->named->name : plumb_cause_kind_names[cause->kind];
}

#define SPREAD 5 /* no cause has this part of the waiting: one alone is not the answer */
#define NAMES_TOLD 3

/* "The waiting is spread over 963 causes: low occupancy 61.2 %, latency chain 12.0 %. " */
static void
spread_sentence(const struct plumb_why_kernel *k, char *text, size_t size)
{
	const char *told[NAMES_TOLD] = { 0 };

	snprintf(text, size, "The waiting is spread over %" PRIu32 " causes:", k->causes.count);
	for (int n = 0; n < NAMES_TOLD; n++) {
		uint64_t most = 0;
		char share[PLUMB_FORMAT_SIZE];
		size_t used = strlen(text);

		for (uint32_t i = 0; i < k->causes.count; i++) {
			const char *name = name_of(k, &k->causes.items[i]);
			uint64_t sum = 0;
			bool seen = false;

			for (int t = 0; t < n; t++)
				seen |= told[t] == name;
			/* Each name is added up where it stands first. */
			for (uint32_t j = 0; !seen && j < k->causes.count; j++) {
				if (name_of(k, &k->causes.items[j]) != name)
					continue;
				if (j < i)
					break;
				sum += k->causes.items[j].samples;
			}
			if (sum > most) {
				most = sum;
				told[n] = name;
			}
		}
		if (most)
			snprintf(text + used, size - used, "%s %s %s", n ? "," : "", told[n],
			         plumb_format_share(share, (double)most, (double)k->waiting));
	}
	snprintf(text + strlen(text), size - strlen(text), ". ");
}

char *
plumb_why_sentence(const struct plumb_why_kernel *k, char *text, size_t size)
{
	const struct plumb_kernel_cause *item = plumb_kernel_causes_lead(&k->causes, &k->slice);
	const struct plumb_stall_cause *cause;
	char share[PLUMB_FORMAT_SIZE], what[PLUMB_WHY_SENTENCE / 2];
	const char *name;
	size_t used;

	if (!item)
		return bare_sentence(k, text, size);
	cause = &stall_of(k, item)->causes[item->cause];
	plumb_format_share(share, (double)item->together, (double)k->waiting);
	plumb_kernel_cause_sentence(&k->code, stall_of(k, item), item->cause, what, sizeof what);
	name = cause->named ? cause->named->name : NULL;
	*text = '\0';
	if (k->causes.count > SPREAD && item->together * SPREAD < k->waiting)
		spread_sentence(k, text, size);
	used = strlen(text);
	snprintf(text + used, size - used, "%s of the %swaiting is %s", share,
	         k->kernel->sampling == PLUMB_SAMPLING_NONE ? "estimated " : "", what);
	used = strlen(text);
	if (name)
		snprintf(text + used, size - used, " (%s)", name);
	used = strlen(text);
	if (*cause->evidence)
		snprintf(text + used, size - used, ": %s", cause->evidence);
	return text;
}
