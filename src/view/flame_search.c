/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames an expression matches, and what the nodes of those hold. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "view/flame_private.h"
#include "view/view.h"

#define LONGEST 200 /* of an expression: a long one may take very long to match */

int
plumb_flame_compile(const char *text, const char *what, regex_t *expression,
                    struct plumb_error *error)
{
	char why[120];
	int code;

	if (strlen(text) > LONGEST)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "%s: the expression is too long; use at most %d bytes", what,
		                  LONGEST);
	code = regcomp(expression, text, REG_EXTENDED | REG_NOSUB);
	if (!code)
		return 0;
	regerror(code, expression, why, sizeof why);
	return plumb_fail(error, PLUMB_EUSAGE, "%s \"%s\": %s", what, text, why);
}

/* ---- texts, each matched once ---- */

struct matcher {
	const struct plumb_profile *profile;
	const regex_t *expression; /* NULL: TEXT is no expression */
	const char *text;          /* what is looked for */
	bool named;                /* TEXT has names, one on each line; else it is a part of one */
	unsigned char *known;      /* by string: 0 not looked at, 1 no match, 2 a match */
	uint32_t *library;         /* by string that is a build id or a path: the path */
};

/* Is TEXT one of the lines of NAMES? */
static bool
is_named(const char *names, const char *text)
{
	size_t bytes = strlen(text);

	for (; names; names = strchr(names, '\n'), names = names ? names + 1 : NULL)
		if (!strncmp(names, text, bytes) && (!names[bytes] || names[bytes] == '\n'))
			return true;
	return false;
}

static bool
matches_text(const struct matcher *m, const char *text)
{
	if (m->expression)
		return !regexec(m->expression, text, 0, NULL, 0);
	return m->named ? is_named(m->text, text) : strstr(text, m->text) != NULL;
}

static bool
matches_string(struct matcher *m, uint32_t string)
{
	const char *text = plumb_text(m->profile, string);

	if (!text)
		return false;
	if (!m->known[string])
		m->known[string] = matches_text(m, text) ? 2 : 1;
	return m->known[string] == 2;
}

static bool
matches_library(struct matcher *m, const struct plumb_frame *frame)
{
	if (frame->kind != PLUMB_FRAME_NATIVE || frame->file >= m->profile->strings_count)
		return false;
	return matches_string(m, m->library[frame->file]);
}

/* An expression without an operator matches as a text does, which takes half the time. */
static bool
is_plain(const char *text)
{
	return !strpbrk(text, ".[]{}()*+?|^$\\");
}

static bool
open_matcher(struct matcher *m, const struct plumb_profile *p, const regex_t *expression,
             const char *text, bool named)
{
	*m = (struct matcher){
		.profile = p,
		.expression = named || (text && is_plain(text)) ? NULL : expression,
		.text = text,
		.named = named,
		.known = calloc(p->strings_count + (size_t)1, 1),
		.library = malloc((p->strings_count + (size_t)1) * sizeof *m->library),
	};
	if (!m->known || !m->library)
		return false;
	memset(m->library, 0xff, (p->strings_count + (size_t)1) * sizeof *m->library);
	for (uint32_t i = 0; i < p->code_objects_count; i++) {
		const struct plumb_code_object *object = &p->code_objects[i];

		if (object->build_id < p->strings_count)
			m->library[object->build_id] = object->path;
		if (object->path < p->strings_count)
			m->library[object->path] = object->path;
	}
	return true;
}

static void
close_matcher(struct matcher *m)
{
	free(m->known);
	free(m->library);
}

unsigned char *
plumb_flame_of_files(const struct plumb_profile *p, const regex_t *expression)
{
	unsigned char *found = calloc(p->frames_count + (size_t)1, 1);
	struct matcher m;

	if (!open_matcher(&m, p, expression, NULL, false) || !found) {
		free(found);
		found = NULL;
	}
	for (uint32_t f = 0; found && f < p->frames_count; f++) {
		const struct plumb_frame *frame = &p->frames[f];
		bool own = frame->kind != PLUMB_FRAME_MODULE && matches_string(&m, frame->file);

		found[f] =
			own || matches_string(&m, frame->source_file) || matches_library(&m, frame);
	}
	close_matcher(&m);
	return found;
}

/* ---- the same texts as a table ---- */

static void
add_text(struct plumb_answer *a, const char *text)
{
	plumb_answer_text(a, text && *text ? text : NULL);
}

int
plumb_view_frame_files(const struct plumb_profile *p, enum plumb_view_format format, FILE *out,
                       struct plumb_error *error)
{
	const enum plumb_answer_source measured = PLUMB_SOURCE_IS_MEASURED;
	struct plumb_answer a = { .id = "flame.frames", .title = "files of frames" };
	struct matcher m;
	bool ok = open_matcher(&m, p, NULL, NULL, false);
	int code;

	plumb_answer_column(&a, "frame", NULL, measured);
	plumb_answer_column(&a, "file", NULL, measured);
	plumb_answer_column(&a, "source_file", NULL, measured);
	plumb_answer_column(&a, "library", NULL, measured);
	for (uint32_t i = 0; ok && i < p->frames_count; i++) {
		const struct plumb_frame *f = &p->frames[i];
		bool native = f->kind == PLUMB_FRAME_NATIVE && f->file < p->strings_count;
		const char *file = f->kind == PLUMB_FRAME_MODULE ? NULL : plumb_text(p, f->file);
		const char *source = plumb_text(p, f->source_file);
		const char *library = native ? plumb_text(p, m.library[f->file]) : NULL;

		if (!(file && *file) && !(source && *source) && !(library && *library))
			continue;
		plumb_answer_integer(&a, i);
		add_text(&a, file);
		add_text(&a, source);
		add_text(&a, library);
	}
	close_matcher(&m);
	code = ok ? plumb_answer_end(&a, error) : plumb_fail_memory(error, "for the frames");
	if (!code)
		code = plumb_view_answer(&a, format, out, error);
	plumb_answer_free(&a);
	return code;
}

/* ---- the search ---- */

static bool
matches_place(const struct matcher *m, uint32_t file, uint32_t line)
{
	const char *text = plumb_text(m->profile, file);
	char where[1200];

	if (!text || !*text)
		return false;
	snprintf(where, sizeof where, "%s:%" PRIu32, text, line);
	return matches_text(m, where);
}

/* As the filter of a report. */
static bool
matches_frame(struct matcher *m, uint32_t frame)
{
	const struct plumb_frame *f = &m->profile->frames[frame];

	return matches_string(m, f->name) || matches_string(m, f->display) ||
	       matches_library(m, f) || matches_place(m, f->file, f->line) ||
	       matches_place(m, f->source_file, f->source_line);
}

void
plumb_flame_search_free(struct plumb_flame_search *search)
{
	free(search->text);
	free(search->flags);
	free(search->matched);
	free(search->before);
	*search = (struct plumb_flame_search){ 0 };
}

/* From the last node to the first, so that children come before their parent. */
static void
add_matches(const struct plumb_flame *f, struct plumb_flame_search *search)
{
	for (uint32_t n = f->count; n-- > 1;) {
		unsigned char *above = &search->flags[f->parent[n]];
		int64_t *whole = &search->matched[f->parent[n]];

		if (search->flags[n] & PLUMB_FLAME_MATCHES) {
			search->matched[n] = f->value[n];
			if (search->before)
				search->before[n] = f->before[n];
		}
		if (search->flags[n])
			*above |= PLUMB_FLAME_MATCHES_BELOW;
		*whole = plumb_flame_sum(*whole, search->matched[n]);
		if (!search->before)
			continue;
		whole = &search->before[f->parent[n]];
		*whole = plumb_flame_sum(*whole, search->before[n]);
	}
}

/* By frame of the graph: 1 becomes 2 if it matches. False: no memory. */
static bool
search_frames(const struct plumb_flame *f, const regex_t *expression,
              const struct plumb_flame_search *search, unsigned char *known)
{
	for (uint32_t s = 0, first = 0; s < f->side_count; s++) {
		const struct plumb_profile *p = f->sides[s].profile;
		struct matcher m;
		bool ok = open_matcher(&m, p, expression, search->text, search->named);

		/* Frames in their own order, in which their texts lie in memory. */
		for (uint32_t i = 0; ok && i < p->frames_count; i++)
			if (known[first + i] && matches_frame(&m, i))
				known[first + i] = 2;
		close_matcher(&m);
		if (!ok)
			return false;
		first += p->frames_count;
	}
	return true;
}

static int
search_nodes(const struct plumb_flame *f, const regex_t *expression,
             struct plumb_flame_search *search)
{
	/* By frame: 0 no node has it, 1 no match, 2 a match. */
	uint32_t frames = plumb_flame_frames(f);
	unsigned char *known = calloc(frames + (size_t)1, 1);
	bool ok;

	search->flags = calloc(f->count + (size_t)1, 1);
	search->matched = calloc(f->count + (size_t)1, sizeof *search->matched);
	if (f->before)
		search->before = calloc(f->count + (size_t)1, sizeof *search->before);
	ok = known && search->flags && search->matched && !search->before == !f->before;
	for (uint32_t n = 1; ok && n < f->count; n++)
		if (f->frame[n] < frames)
			known[f->frame[n]] = 1;
	ok = ok && search_frames(f, expression, search, known);
	for (uint32_t n = 1; ok && n < f->count; n++)
		if (f->frame[n] < frames && known[f->frame[n]] == 2)
			search->flags[n] = PLUMB_FLAME_MATCHES;
	if (ok)
		add_matches(f, search);
	free(known);
	return ok ? 0 : PLUMB_ESYSTEM;
}

int
plumb_flame_find(struct plumb_flame *f, const char *text, bool named, struct plumb_error *error)
{
	struct plumb_flame_search search = { .named = named };
	regex_t expression;
	int code = 0;

	if (f->search.text && f->search.named == named && !strcmp(f->search.text, text))
		return 0;
	if (!named)
		code = plumb_flame_compile(text, "search", &expression, error);
	if (code)
		return code;
	search.text = strdup(text);
	code = search.text ? search_nodes(f, named ? NULL : &expression, &search) : PLUMB_ESYSTEM;
	if (!named)
		regfree(&expression);
	if (code) {
		plumb_flame_search_free(&search);
		return plumb_fail_memory(error, "for the search");
	}
	plumb_flame_search_free(&f->search);
	f->search = search;
	return 0;
}
