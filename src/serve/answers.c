/* SPDX-License-Identifier: Apache-2.0 */
/* From a question to a reply: the one place where queries are checked, errors become replies, and
 * replies are kept. */
#include "serve/answers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/format.h"
#include "base/json.h"

#define TYPE_JSON "application/json; charset=utf-8"
#define TYPE_TEXT "text/plain; charset=utf-8"

static const char *const format_types[] = { TYPE_JSON, "text/csv; charset=utf-8",
	                                    "application/octet-stream" };

/* ---- replies ---- */

static struct plumb_reply *
reply_new(int status, const char *type, char *data, size_t bytes)
{
	struct plumb_reply *reply = data ? malloc(sizeof *reply) : NULL;

	if (!reply) {
		free(data);
		return NULL;
	}
	*reply = (struct plumb_reply){ status, type, data, bytes, 1 };
	return reply;
}

struct plumb_reply *
plumb_reply_keep(struct plumb_reply *reply)
{
	if (reply)
		reply->references++;
	return reply;
}

void
plumb_reply_drop(struct plumb_reply *reply)
{
	if (!reply || --reply->references)
		return;
	free(reply->data);
	free(reply);
}

static struct plumb_reply *
text_reply(int status, const char *text)
{
	char *line = NULL;
	int length = asprintf(&line, "%s\n", text);

	return length < 0 ? NULL : reply_new(status, TYPE_TEXT, line, (size_t)length);
}

/* The profile cannot give the answer: why, and a command that brings it. */
static struct plumb_reply *
empty_reply(const char *why, const char *remedy)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	struct plumb_json *json = out ? plumb_json_new(out) : NULL;
	int code;

	plumb_json_object(json);
	plumb_json_key_text(json, "why", why);
	plumb_json_key_text(json, "remedy", remedy);
	plumb_json_end(json);
	code = json ? plumb_json_finish(json) : -1;
	if (out && fclose(out))
		code = -1;
	if (code < 0) {
		free(text);
		return NULL;
	}
	return reply_new(404, TYPE_JSON, text, bytes);
}

static struct plumb_reply *
error_reply(const struct plumb_error *error, const char *remedy)
{
	if (error->code == PLUMB_EEMPTY)
		return empty_reply(error->message, remedy);
	return text_reply(error->code == PLUMB_EUSAGE ? 400 : 500, error->message);
}

/* ---- replies that are kept ---- */

static void
forget_reply(struct plumb_answers *answers, uint32_t i)
{
	struct plumb_kept_reply *kept = &answers->kept[i];

	answers->kept_bytes -= kept->reply->bytes;
	plumb_reply_drop(kept->reply);
	free(kept->question);
	*kept = answers->kept[--answers->kept_count];
}

static void
forget_oldest(struct plumb_answers *answers)
{
	uint32_t oldest = 0;

	for (uint32_t i = 1; i < answers->kept_count; i++)
		if (answers->kept[i].used < answers->kept[oldest].used)
			oldest = i;
	forget_reply(answers, oldest);
}

static struct plumb_reply *
find_reply(struct plumb_answers *answers, const char *question)
{
	for (uint32_t i = 0; i < answers->kept_count; i++)
		if (!strcmp(answers->kept[i].question, question)) {
			answers->kept[i].used = answers->questions;
			return plumb_reply_keep(answers->kept[i].reply);
		}
	return NULL;
}

/* Takes QUESTION. */
static void
keep_reply(struct plumb_answers *answers, char *question, struct plumb_reply *reply)
{
	if (!reply || reply->status >= 500 || reply->status == PLUMB_REPLY_LATER ||
	    reply->bytes > PLUMB_REPLIES_BYTES / 2) {
		free(question);
		return;
	}
	while (answers->kept_count == PLUMB_REPLIES_MOST ||
	       (answers->kept_count && answers->kept_bytes + reply->bytes > PLUMB_REPLIES_BYTES))
		forget_oldest(answers);
	answers->kept[answers->kept_count++] =
		(struct plumb_kept_reply){ question, plumb_reply_keep(reply), answers->questions };
	answers->kept_bytes += reply->bytes;
}

/* ---- a question ---- */

static int
choose_format(const struct plumb_answer_kind *kind, struct plumb_question *question,
              struct plumb_error *error)
{
	const char *text = plumb_query_text(question->query, "format");
	static const char *const names[] = { "json", "csv", "columns" };

	for (unsigned f = 0; f < 3; f++)
		if ((kind->formats >> f & 1) && !strcmp(text, names[f])) {
			question->format = (enum plumb_view_format)f;
			return 0;
		}
	return plumb_fail(error, PLUMB_EUSAGE, "%s has no format %s", kind->name, text);
}

static int
choose_file(struct plumb_question *question, struct plumb_error *error)
{
	int64_t number = plumb_query_has(question->query, "file")
	                         ? plumb_query_number(question->query, "file")
	                         : 0;

	if (number >= question->answers->count)
		return plumb_fail(error, PLUMB_EUSAGE, "there is no file %lld; files are 0 to %u",
		                  (long long)number, question->answers->count - 1);
	question->file = &question->answers->files[number];
	return 0;
}

/* Some questions are of the whole run, whatever the main loop is: who holds memory is known of one
 * moment. So are rows by shape where windows do not know shapes. */
static bool
wants_whole(const struct plumb_question *question)
{
	const char *by = plumb_query_has(question->query, "by")
	                         ? plumb_query_text(question->query, "by")
	                         : NULL;

	/* A comparison is of the whole, as that of the verb: the main loops may differ. */
	if (plumb_query_has(question->query, "against") &&
	    plumb_query_given(question->query, "against"))
		return true;
	return by && (!strcmp(by, "memory") ||
	              (!strcmp(by, "shape") && !plumb_window_has_variants(question->file->whole)));
}

static int
choose_window(const struct plumb_answer_kind *kind, struct plumb_question *question,
              struct plumb_error *error)
{
	struct plumb_window_choice choice = { PLUMB_WINDOW_ALL, 0 };
	const char *text = NULL;
	bool findings;

	question->profile = question->file->whole;
	if (kind->window == PLUMB_OF_WHOLE)
		return 0;
	text = plumb_query_text(question->query, "window");
	if (text && plumb_window_parse(text, &choice, error) < 0)
		return plumb_fail_in(error, "window");
	if (!text && kind->window == PLUMB_OF_MAIN && !wants_whole(question))
		choice = plumb_served_main(question->file);
	question->windowed = choice.kind;
	question->window = choice;
	/* With a window that is named, findings are of that alone, as the verb's are. */
	findings = text &&
	           (kind->write == plumb_answer_findings || kind->write == plumb_answer_overview ||
	            (kind->write == plumb_answer_report && question->format == PLUMB_VIEW_JSON));
	return plumb_served_window(question->answers, question->file, &choice, findings,
	                           &question->profile, error);
}

/* Answers into memory. */
static struct plumb_reply *
answer_question(const struct plumb_answer_kind *kind, struct plumb_question *question)
{
	struct plumb_error error = { 0 };
	char *data = NULL;
	size_t bytes = 0;
	int code = choose_format(kind, question, &error);

	if (!code)
		code = choose_file(question, &error);
	if (!code)
		code = choose_window(kind, question, &error);
	if (!code && !(question->out = open_memstream(&data, &bytes)))
		code = plumb_fail_memory(&error, "for an answer");
	if (!code) {
		code = kind->write(question, &error);
		if (fclose(question->out) && !code)
			code = plumb_fail_memory(&error, "for an answer");
	}
	if (!code && !question->later)
		return reply_new(200, format_types[question->format], data, bytes);
	free(data);
	if (!code)
		return text_reply(PLUMB_REPLY_LATER, "the answer is being made; ask again");
	error.code = code;
	return error_reply(&error, question->remedy);
}

/* "report?by=kernel", malloced; NULL: no memory. */
static char *
write_question(const char *name, const struct plumb_query *query)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	fprintf(out, "%s?", name);
	plumb_query_write(query, NULL, out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

struct plumb_reply *
plumb_answers_reply(struct plumb_answers *answers, const char *name, const char *query)
{
	const struct plumb_answer_kind *kind = plumb_answer_kind_find(name);
	struct plumb_query read;
	struct plumb_question question = { .answers = answers, .query = &read };
	struct plumb_reply *reply = NULL;
	struct plumb_error error;
	char *key = NULL;

	answers->questions++;
	if (!kind)
		return text_reply(404, "there is no such answer");
	if (plumb_query_read(&read, query, kind->keys, &error) < 0)
		reply = error_reply(&error, NULL);
	else if ((key = write_question(name, &read)) && (reply = find_reply(answers, key)))
		free(key);
	else if (key)
		keep_reply(answers, key, reply = answer_question(kind, &question));
	plumb_query_free(&read);
	return reply;
}

/* ---- files ---- */

static void
make_title(struct plumb_answers *answers)
{
	size_t used = 0;

	for (uint32_t i = 0; i < answers->count && used < sizeof answers->title; i++)
		used += (size_t)snprintf(answers->title + used, sizeof answers->title - used,
		                         "%s%s", i ? ", " : "",
		                         plumb_path_base(answers->files[i].name));
}

const char *
plumb_answers_title(const struct plumb_answers *answers)
{
	return answers->title;
}

struct plumb_answers *
plumb_answers_new(const struct plumb_serve_file *files, uint32_t count, uint32_t before,
                  struct plumb_error *error)
{
	struct plumb_answers *answers = calloc(1, sizeof *answers);
	struct plumb_served_file *served = calloc(count, sizeof *served);
	struct plumb_window_sums sums = { 0 };

	if (!answers || !served) {
		free(answers);
		free(served);
		plumb_fail_memory(error, "for the profile");
		return NULL;
	}
	answers->files = served;
	answers->count = count;
	answers->wake = -1;
	answers->before = before ? before : 1;
	for (uint32_t i = 0; i < count; i++) {
		served[i].name = files[i].name;
		served[i].whole = files[i].profile;
		if (plumb_window_sums(files[i].profile, &sums) < 0) {
			plumb_window_sums_free(&sums);
			plumb_answers_free(answers);
			plumb_fail_memory(error, "for the windows");
			return NULL;
		}
		served[i].has_loop = sums.main != PLUMB_NONE;
		plumb_window_sums_free(&sums);
	}
	make_title(answers);
	return answers;
}

void
plumb_answers_free(struct plumb_answers *answers)
{
	if (!answers)
		return;
	while (answers->kept_count)
		forget_reply(answers, answers->kept_count - 1);
	plumb_flames_forget(answers, NULL);
	plumb_whys_forget(answers);
	for (uint32_t i = 0; i < answers->count; i++)
		plumb_served_free(answers, &answers->files[i]);
	free(answers->files);
	if (answers->wake >= 0)
		close(answers->wake);
	free(answers);
}

void
plumb_answers_demangle(struct plumb_answers *answers, char *(*demangle)(const char *name))
{
	answers->demangle = demangle;
}

int
plumb_answers_wake(struct plumb_answers *answers)
{
	if (answers->wake < 0)
		answers->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return answers->wake;
}
