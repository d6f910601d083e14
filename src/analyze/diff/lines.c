/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file and which line of one run is which of another. A file is known by its path from the
 * folder of packages or the standard library on; one that lies elsewhere by its whole path, else,
 * when the first run has a single file of that name that this run lacks, by its name.
 *
 * Lines are numbers, and those of a file move when it is edited. So the lines of a function that
 * two runs saw are aligned in order, such that lines with the same things under them (the operators
 * and functions that they call) meet; the number only decides between equals.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diff/diff_private.h"
#include "base/hash.h"
#include "base/map.h"

#define CELLS_MOST 4000000u /* of a function's table; a larger one keeps its numbers */

struct diff_files {
	PLUMB_VEC(const char *) names;
	struct plumb_map by_path;
	uint32_t first; /* so many of them the first run has */
};

const char *
diff_file_name(const struct plumb_diff *diff, uint32_t number)
{
	return number < diff->files->names.count ? diff->files->names.items[number] : NULL;
}

/* ---- files ---- */

/* What of PATH is the same on another machine. */
static const char *
path_key(const char *path)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		const char *at = strstr(path, folders[i]);
		if (at)
			return at + strlen(folders[i]);
	}
	const char *at = strstr(path, "/lib/python3");
	const char *end = at ? strchr(at + 12, '/') : NULL;
	return end ? end + 1 : path;
}

static const char *
base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static uint32_t
find_file(const struct diff_files *files, const char *key)
{
	struct plumb_map_cursor at;
	uint32_t id;

	for (id = plumb_map_first(&files->by_path, plumb_hash_bytes(key, strlen(key)), &at);
	     id != PLUMB_MAP_NONE; id = plumb_map_next(&files->by_path, &at))
		if (!strcmp(path_key(files->names.items[id]), key))
			return id;
	return PLUMB_NONE;
}

static uint32_t
add_file(struct diff_files *files, const char *path)
{
	const char **name = plumb_vec_add(&files->names);
	const char *key = path_key(path);

	if (!name || plumb_map_add(&files->by_path, plumb_hash_bytes(key, strlen(key)),
	                           files->names.count - 1) < 0)
		return PLUMB_NONE;
	*name = path;
	return files->names.count - 1;
}

/* The only file of the first run that has PATH's name and is not TAKEN by this one. */
static uint32_t
same_base(const struct diff_files *files, const char *path, const unsigned char *taken)
{
	uint32_t found = PLUMB_NONE;

	for (uint32_t i = 0; i < files->first; i++) {
		if (taken[i] || strcmp(base_of(files->names.items[i]), base_of(path)))
			continue;
		if (found != PLUMB_NONE)
			return PLUMB_NONE;
		found = i;
	}
	return found;
}

/* Numbers the files of the run's Python frames. */
static bool
number_files(struct diff_files *files, struct diff_run *run, bool first)
{
	const struct plumb_profile *p = run->profile;
	unsigned char *taken = calloc(files->names.count + (size_t)1, 1);
	bool ok = true;

	run->file = malloc((p->strings_count + (size_t)1) * sizeof *run->file);
	for (uint32_t i = 0; run->file && i < p->strings_count; i++)
		run->file[i] = PLUMB_NONE;
	/* Those that are there by their path, then the others. */
	for (int pass = 0; run->file && taken && ok && pass < 2; pass++)
		for (uint32_t f = 0; ok && f < p->frames_count; f++) {
			uint32_t file = p->frames[f].file, number;

			if (p->frames[f].kind != PLUMB_FRAME_PYTHON || file >= p->strings_count ||
			    run->file[file] != PLUMB_NONE)
				continue;
			number = find_file(files, path_key(p->strings[file]));
			if (number == PLUMB_NONE && pass && !first)
				number = same_base(files, p->strings[file], taken);
			if (number == PLUMB_NONE && pass) {
				number = add_file(files, p->strings[file]);
				ok = number != PLUMB_NONE;
			} else if (number != PLUMB_NONE && number < files->first) {
				taken[number] = 1;
			}
			run->file[file] = number;
		}
	ok = ok && run->file && taken;
	free(taken);
	if (first)
		files->first = files->names.count;
	return ok;
}

/* ---- lines ---- */

void
diff_plain_name(const char *name, char *text, size_t size)
{
	static const char mark[] = " at 0x";
	const char *at = *name == '<' ? strstr(name, mark) : NULL;
	const char *end = at ? at + sizeof mark - 1 : NULL;

	while (end && isxdigit((unsigned char)*end))
		end++;
	if (at)
		snprintf(text, size, "%.*s%s", (int)(at - name), name, end);
	else
		snprintf(text, size, "%s", name);
}

struct line {
	uint64_t function; /* hash of the file's number and the function's name */
	uint64_t under;    /* a bit for each name of what lies right under it */
	uint32_t frame, number;
};

typedef PLUMB_VEC(struct line) lines;

static int
by_function(const void *x, const void *y)
{
	const struct line *a = x, *b = y;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->frame > b->frame) - (a->frame < b->frame);
}

/* A built-in function has no file, and its lines are not aligned. */
static bool
has_lines(const struct plumb_profile *p, uint32_t frame)
{
	return p->frames[frame].kind == PLUMB_FRAME_PYTHON &&
	       p->frames[frame].file < p->strings_count;
}

static bool
gather_lines(const struct diff_run *run, lines *list)
{
	const struct plumb_profile *p = run->profile;
	uint64_t *under = calloc(p->frames_count + (size_t)1, sizeof *under);
	bool ok = under;

	for (uint32_t c = 1; ok && c < p->contexts_count; c++) {
		char name[256];

		diff_plain_name(plumb_frame_label(p, p->contexts[c].frame), name, sizeof name);
		under[p->contexts[p->contexts[c].parent].frame] |=
			UINT64_C(1) << (plumb_hash_bytes(name, strlen(name)) >> 58);
	}
	for (uint32_t f = 0; ok && f < p->frames_count; f++) {
		const struct plumb_frame *frame = &p->frames[f];
		const char *name = plumb_text(p, frame->name);

		if (!has_lines(p, f))
			continue;
		struct line *line = plumb_vec_add(list);
		ok = line;
		if (ok)
			*line = (struct line){
				plumb_hash_mix(run->file[frame->file],
				               name ? plumb_hash_bytes(name, strlen(name)) : 0),
				under[f], f, frame->line
			};
	}
	free(under);
	if (ok && list->count)
		qsort(list->items, list->count, sizeof *list->items, by_function);
	return ok;
}

/* How alike two lines are: 0 not at all. */
static float
rate_likeness(const struct line *a, const struct line *b)
{
	int common = __builtin_popcountll(a->under & b->under);
	int all = __builtin_popcountll(a->under | b->under);
	float alike = all ? (float)common / (float)all : 0.3f;

	return alike + (a->number == b->number ? 0.05f : 0);
}

/* Aligns the lines of one function: B's frames get the numbers of A's. */
static bool
align_function(const struct line *a, uint32_t n, const struct line *b, uint32_t m, uint32_t *number)
{
	size_t wide = (size_t)m + 1;
	float *best;

	if ((uint64_t)n * m > CELLS_MOST) {
		for (uint32_t j = 0; j < m; j++)
			number[b[j].frame] = b[j].number;
		return true;
	}
	best = calloc(((size_t)n + 1) * wide, sizeof *best);
	if (!best)
		return false;
	for (uint32_t i = n; i-- > 0;)
		for (uint32_t j = m; j-- > 0;) {
			float skip = best[(i + 1) * wide + j], other = best[i * wide + j + 1];
			float alike = rate_likeness(&a[i], &b[j]);
			float both = alike > 0 ? alike + best[(i + 1) * wide + j + 1] : 0;

			skip = skip > other ? skip : other;
			best[i * wide + j] = both > skip ? both : skip;
		}
	for (uint32_t i = 0, j = 0; i < n && j < m;) {
		if (best[i * wide + j] == best[(i + 1) * wide + j])
			i++;
		else if (best[i * wide + j] == best[i * wide + j + 1])
			j++;
		else
			number[b[j++].frame] = a[i++].number;
	}
	free(best);
	return true;
}

static bool
align_lines(const lines *first, const lines *own, uint32_t *number)
{
	uint32_t i = 0, j = 0;
	bool ok = true;

	while (ok && i < first->count && j < own->count) {
		uint64_t function = own->items[j].function;
		uint32_t n = i, m = j;

		if (first->items[i].function != function) {
			if (first->items[i].function < function)
				i++;
			else
				j++;
			continue;
		}
		while (n < first->count && first->items[n].function == function)
			n++;
		while (m < own->count && own->items[m].function == function)
			m++;
		ok = align_function(&first->items[i], n - i, &own->items[j], m - j, number);
		i = n;
		j = m;
	}
	return ok;
}

int
diff_lines_align(struct plumb_diff *diff)
{
	lines first = { 0 };
	bool ok;

	diff->files = calloc(1, sizeof *diff->files);
	ok = diff->files;
	for (uint32_t r = 0; ok && r < diff->count; r++) {
		struct diff_run *run = &diff->runs[r];
		uint32_t frames = run->profile->frames_count;
		lines own = { 0 };

		run->line = malloc((frames + (size_t)1) * sizeof *run->line);
		ok = run->line && number_files(diff->files, run, !r) &&
		     gather_lines(run, r ? &own : &first);
		for (uint32_t f = 0; ok && f < frames; f++)
			run->line[f] = r && has_lines(run->profile, f)
			                       ? PLUMB_NONE
			                       : run->profile->frames[f].line;
		if (ok && r)
			ok = align_lines(&first, &own, run->line);
		plumb_vec_free(&own);
	}
	plumb_vec_free(&first);
	return ok ? 0 : PLUMB_ESYSTEM;
}

void
diff_lines_free(struct plumb_diff *diff)
{
	if (diff->files) {
		plumb_vec_free(&diff->files->names);
		plumb_map_free(&diff->files->by_path);
	}
	free(diff->files);
	for (uint32_t r = 0; r < diff->count; r++) {
		free(diff->runs[r].line);
		free(diff->runs[r].file);
	}
}
