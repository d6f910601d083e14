/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as what an address asks plumb view for: "report?by=kernel". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../golden/profiles.h"
#include "serve/answers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A canonical query means itself. */
static void
check_form(const struct plumb_answer_kind *kind, const char *text)
{
	struct plumb_query query;
	char *form[2] = { NULL, NULL };

	for (int i = 0; i < 2; i++) {
		size_t bytes;
		FILE *out = open_memstream(&form[i], &bytes);

		if (!out)
			exit(1);
		if (plumb_query_read(&query, i ? form[0] : text, kind->keys, NULL) == 0)
			plumb_query_write(&query, NULL, out);
		else if (i && strlen(form[0]) <= PLUMB_QUERY_BYTES)
			abort();
		else
			i = 2;
		fclose(out);
		plumb_query_free(&query);
		if (i == 1 && strcmp(form[0], form[1]) != 0)
			abort();
	}
	free(form[0]);
	free(form[1]);
}

/* Two files: one with windows and spans of iterations, one with names that are rude. */
static struct plumb_answers *
open_files(void)
{
	static struct plumb_profile profiles[2];
	static const struct plumb_serve_file files[] = { { "windows", &profiles[0] },
		                                         { "rude", &profiles[1] } };

	if (!sample_make("windows", &profiles[0]) || !sample_make("rude", &profiles[1]))
		exit(1);
	return plumb_answers_new(files, 2, 0, NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct plumb_answers *answers;
	struct plumb_reply *reply;
	char *text = malloc(size + 1), *query;

	if (!answers)
		answers = open_files();
	if (!text || !answers)
		exit(1);
	memcpy(text, data, size);
	text[size] = '\0';
	query = strchr(text, '?');
	if (query)
		*query++ = '\0';
	reply = plumb_answers_reply(answers, text, query);
	if (!reply || (reply->status != 200 && reply->status != 400 && reply->status != 404))
		abort();
	plumb_reply_drop(reply);
	if (plumb_answer_kind_find(text))
		check_form(plumb_answer_kind_find(text), query);
	free(text);
	return 0;
}
