/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/explains.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/study_private.h"

#define COVERS 0.5 /* of the other one's time */
#define SURE 0.3   /* less sure findings explain nothing */

#define KEY "\"explains\": ["

struct told {
	struct plumb_study *study;
	struct plumb_finding_text *row;
	const struct plumb_study_about *about;
};

/* One of them may be of the whole, which the other one is a part of. */
static bool
share_time(const struct plumb_study *a, const struct plumb_study *b)
{
	return a == b || !a->profile->window.kind || !b->profile->window.kind;
}

static bool
is_explained(const struct told *by, const struct told *told)
{
	int64_t ns =
		by->about->idle_ns > by->row->saving_ns ? by->about->idle_ns : by->row->saving_ns;

	return share_time(by->study, told->study) && told->about->tells &&
	       by->about->tells > told->about->tells && by->row->saving_ns != PLUMB_UNKNOWN &&
	       by->row->saving_ns > 0 && told->row->saving_ns != PLUMB_UNKNOWN &&
	       by->row->confidence >= SURE && (double)ns >= COVERS * (double)told->row->saving_ns;
}

/* IDS, a list in JSON, into the evidence of BY. */
static bool
write_explained(const struct told *by, const char *ids)
{
	const char *evidence = by->row->evidence;
	size_t bytes = evidence ? strlen(evidence) : 0;
	char *text = NULL;

	if (bytes < 2 || evidence[bytes - 1] != '}')
		return true;
	if (asprintf(&text, "%.*s%s" KEY "%s]}", (int)bytes - 1, evidence, bytes > 2 ? ", " : "",
	             ids) < 0)
		return false;
	by->row->evidence = plumb_study_keep(by->study, text);
	free(text);
	return by->row->evidence;
}

static bool
explain_with(const struct told *by, const struct told *all, uint32_t count)
{
	char *ids = NULL;
	size_t bytes;
	FILE *out = by->about->tells ? open_memstream(&ids, &bytes) : NULL;
	uint32_t found = 0;
	bool done;

	if (!out)
		return !by->about->tells;
	for (uint32_t i = 0; i < count; i++) {
		if (!is_explained(by, &all[i]))
			continue;
		/* An id is made of names of the file's own, so it needs no escapes. */
		fprintf(out, "%s\"%s\"", found++ ? ", " : "", all[i].row->id);
		if (all[i].row->severity > by->row->severity)
			by->row->severity = all[i].row->severity;
	}
	done = !fclose(out) && (!found || write_explained(by, ids));
	free(ids);
	return done;
}

static int
by_level(const void *x, const void *y)
{
	const struct told *a = x, *b = y;

	return (a->about->tells > b->about->tells) - (a->about->tells < b->about->tells);
}

int
plumb_explains_find(struct plumb_study *const *studies, uint32_t count)
{
	uint32_t all = 0, n = 0;
	struct told *told;
	bool done = true;

	for (uint32_t i = 0; i < count; i++)
		all += studies[i]->findings->rows.count;
	told = calloc((size_t)all + 1, sizeof *told);
	if (!told)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < studies[i]->findings->rows.count; k++)
			told[n++] = (struct told){ studies[i], &studies[i]->findings->rows.items[k],
				                   &studies[i]->findings->about.items[k] };
	/* What explains an explanation is as severe as that. */
	qsort(told, n, sizeof *told, by_level);
	for (uint32_t i = 0; done && i < n; i++)
		done = explain_with(&told[i], told, n);
	free(told);
	return done ? 0 : PLUMB_ESYSTEM;
}

bool
plumb_explains(const struct plumb_finding_text *finding, const struct plumb_finding_text *other)
{
	const char *ids = finding->evidence ? strstr(finding->evidence, KEY) : NULL;
	const char *end = ids ? strchr(ids, ']') : NULL;
	size_t bytes = other->id ? strlen(other->id) : 0;

	if (!end || !bytes)
		return false;
	for (const char *at = strstr(ids, other->id); at && at < end;
	     at = strstr(at + 1, other->id))
		if (at[-1] == '"' && at[bytes] == '"')
			return true;
	return false;
}

bool
plumb_explains_nothing(const struct plumb_finding_text *finding)
{
	static const char idle[] = "latency-idle-";

	/* Looks at the main thread may have named what it did instead. */
	return finding->id && !strncmp(finding->id, idle, sizeof idle - 1) &&
	       finding->severity < PLUMB_SERIOUS;
}
