/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* What the innermost open bracket waits for. */
enum state {
	TOP,        /* the one value of the text */
	DONE,       /* it was written */
	FIRST_KEY,  /* object, nothing in it */
	NEXT_KEY,   /* object, something in it */
	VALUE,      /* object, after a key */
	FIRST_ITEM, /* array, nothing in it */
	NEXT_ITEM,
};

struct plumb_json {
	FILE *out;
	unsigned char *stack; /* a state per open bracket, under it TOP or DONE */
	size_t depth, room;
	bool failed;
};

struct plumb_json *
plumb_json_new(FILE *out)
{
	struct plumb_json *json = calloc(1, sizeof *json);

	if (!json)
		return NULL;
	json->out = out;
	json->room = 64;
	json->stack = malloc(json->room);
	if (!json->stack) {
		free(json);
		return NULL;
	}
	json->stack[0] = TOP;
	return json;
}

int
plumb_json_finish(struct plumb_json *json)
{
	bool failed;

	if (!json)
		return -1;
	failed = json->failed || json->stack[json->depth] != DONE;
	if (!failed)
		fputc('\n', json->out);
	failed = failed || fflush(json->out) || ferror(json->out);
	free(json->stack);
	free(json);
	return failed ? -1 : 0;
}

/* Writes what stands between the value before and the one to come; false: no value may come. */
static bool
begin_value(struct plumb_json *json)
{
	unsigned char *state;

	if (!json || json->failed)
		return false;
	state = &json->stack[json->depth];
	switch (*state) {
	case TOP:
		*state = DONE;
		return true;
	case VALUE:
		*state = NEXT_KEY;
		return true;
	case NEXT_ITEM:
		fputc(',', json->out);
		return true;
	case FIRST_ITEM:
		*state = NEXT_ITEM;
		return true;
	default:
		json->failed = true;
		return false;
	}
}

static void
open_bracket(struct plumb_json *json, char bracket, enum state state)
{
	if (!begin_value(json))
		return;
	if (json->depth + 1 == json->room) {
		unsigned char *stack = realloc(json->stack, json->room * 2);
		if (!stack) {
			json->failed = true;
			return;
		}
		json->stack = stack;
		json->room *= 2;
	}
	json->stack[++json->depth] = (unsigned char)state;
	fputc(bracket, json->out);
}

void
plumb_json_object(struct plumb_json *json)
{
	open_bracket(json, '{', FIRST_KEY);
}

void
plumb_json_array(struct plumb_json *json)
{
	open_bracket(json, '[', FIRST_ITEM);
}

void
plumb_json_end(struct plumb_json *json)
{
	if (!json || json->failed)
		return;
	switch (json->stack[json->depth]) {
	case FIRST_KEY:
	case NEXT_KEY:
		fputc('}', json->out);
		break;
	case FIRST_ITEM:
	case NEXT_ITEM:
		fputc(']', json->out);
		break;
	default:
		json->failed = true;
		return;
	}
	json->depth--;
}

/* Can the byte stand in a JSON text as it is? (Beyond ASCII that depends on its neighbours.) */
static bool
is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void
write_text(FILE *out, const char *text)
{
	size_t bytes = strlen(text);

	fputc('"', out);
	while (bytes) {
		unsigned char c = (unsigned char)*text;
		size_t length = 0;

		while (length < bytes && is_plain((unsigned char)text[length]))
			length++;
		if (!length)
			length = plumb_utf8_character(text, bytes);
		if (!length)
			fputs("\xef\xbf\xbd", out);
		else if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c == '\n')
			fputs("\\n", out);
		else if (c == '\t')
			fputs("\\t", out);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fwrite(text, 1, length, out);
		length += !length;
		text += length;
		bytes -= length;
	}
	fputc('"', out);
}

void
plumb_json_key(struct plumb_json *json, const char *key)
{
	unsigned char *state;

	if (!json || json->failed)
		return;
	state = &json->stack[json->depth];
	if (*state != FIRST_KEY && *state != NEXT_KEY) {
		json->failed = true;
		return;
	}
	if (*state == NEXT_KEY)
		fputc(',', json->out);
	*state = VALUE;
	write_text(json->out, key);
	fputc(':', json->out);
}

void
plumb_json_null(struct plumb_json *json)
{
	if (begin_value(json))
		fputs("null", json->out);
}

void
plumb_json_bool(struct plumb_json *json, bool value)
{
	if (begin_value(json))
		fputs(value ? "true" : "false", json->out);
}

void
plumb_json_integer(struct plumb_json *json, int64_t value)
{
	if (begin_value(json))
		fprintf(json->out, "%" PRId64, value);
}

void
plumb_json_unsigned(struct plumb_json *json, uint64_t value)
{
	if (begin_value(json))
		fprintf(json->out, "%" PRIu64, value);
}

void
plumb_json_quantity(struct plumb_json *json, int64_t value)
{
	if (value == INT64_MIN)
		plumb_json_null(json);
	else
		plumb_json_integer(json, value);
}

void
plumb_json_number(struct plumb_json *json, double value)
{
	char text[40];

	if (!isfinite(value)) {
		plumb_json_null(json);
		return;
	}
	if (!begin_value(json))
		return;
	/* The shortest form that reads back as the same number. */
	snprintf(text, sizeof text, "%.0f", fabs(value) < 1e15 ? value : 0);
	for (int digits = 15; strtod(text, NULL) != value && digits <= 17; digits++)
		snprintf(text, sizeof text, "%.*g", digits, value);
	fputs(text, json->out);
}

void
plumb_json_text(struct plumb_json *json, const char *text)
{
	if (!text)
		plumb_json_null(json);
	else if (begin_value(json))
		write_text(json->out, text);
}

void
plumb_json_raw(struct plumb_json *json, const char *text)
{
	if (!text || !plumb_json_valid(text))
		plumb_json_null(json);
	else if (begin_value(json))
		fputs(text, json->out);
}

void
plumb_json_key_array(struct plumb_json *json, const char *key)
{
	plumb_json_key(json, key);
	plumb_json_array(json);
}

void
plumb_json_key_object(struct plumb_json *json, const char *key)
{
	plumb_json_key(json, key);
	plumb_json_object(json);
}

void
plumb_json_key_bool(struct plumb_json *json, const char *key, bool value)
{
	plumb_json_key(json, key);
	plumb_json_bool(json, value);
}

void
plumb_json_key_number(struct plumb_json *json, const char *key, double value)
{
	plumb_json_key(json, key);
	plumb_json_number(json, value);
}

void
plumb_json_key_line(struct plumb_json *json, const char *key, uint32_t line)
{
	plumb_json_key_quantity(json, key, line ? (int64_t)line : INT64_MIN);
}

void
plumb_json_key_text(struct plumb_json *json, const char *key, const char *text)
{
	plumb_json_key(json, key);
	plumb_json_text(json, text);
}

void
plumb_json_key_quantity(struct plumb_json *json, const char *key, int64_t value)
{
	plumb_json_key(json, key);
	plumb_json_quantity(json, value);
}
