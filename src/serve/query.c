/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/query.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* ---- decoding ---- */

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes TEXT in place. False: it is not well encoded, or not UTF-8, or it has a control
 * character, which no name needs. */
static bool
decode(char *text)
{
	char *out = text;

	for (const char *at = text; *at; at++) {
		unsigned char c = (unsigned char)*at;

		if (c == '+') {
			c = ' ';
		} else if (c == '%') {
			int high = hex_value(at[1]), low = high < 0 ? -1 : hex_value(at[2]);
			if (low < 0)
				return false;
			c = (unsigned char)(high << 4 | low);
			at += 2;
		}
		if (c < 0x20 || c == 0x7f)
			return false;
		*out++ = (char)c;
	}
	*out = '\0';
	return plumb_utf8_valid(text, (size_t)(out - text));
}

/* ---- checking ---- */

static const struct plumb_query_key *
find_key(const struct plumb_query_key *keys, const char *name)
{
	for (; keys->name; keys++)
		if (!strcmp(keys->name, name))
			return keys;
	return NULL;
}

static int
unknown_key(const struct plumb_query_key *keys, const char *name, struct plumb_error *error)
{
	char known[400] = "";
	size_t used = 0;

	for (; keys->name && used + strlen(keys->name) + 3 < sizeof known; keys++)
		used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
		                         used ? ", " : "", keys->name);
	return plumb_fail(error, PLUMB_EUSAGE, "the query has no key \"%.80s\"; its keys are %s",
	                  name, known);
}

/* Which of CHOICES TEXT is; UINT32_MAX: none. */
static uint32_t
find_choice(const char *choices, const char *text)
{
	size_t length = strlen(text);

	for (uint32_t i = 0; length && choices; i++) {
		size_t part = strcspn(choices, "|");
		if (part == length && !memcmp(choices, text, length))
			return i;
		choices = choices[part] ? choices + part + 1 : NULL;
	}
	return UINT32_MAX;
}

static bool
is_number(const char *text)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	strtoll(text, &end, 10);
	return !*end && !errno;
}

static bool
is_real(const char *text)
{
	char *end;
	double value;

	if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
		return false;
	value = strtod(text, &end);
	return !*end && isfinite(value);
}

static int
check_value(const struct plumb_query_key *key, const char *text, struct plumb_error *error)
{
	switch (key->kind) {
	case PLUMB_QUERY_TEXT:
		return *text ? 0
		             : plumb_fail(error, PLUMB_EUSAGE, "%s is empty; leave it out",
		                          key->name);
	case PLUMB_QUERY_NUMBER:
		return is_number(text) ? 0
		                       : plumb_fail(error, PLUMB_EUSAGE,
		                                    "%s takes an integer from 0, not \"%.80s\"",
		                                    key->name, text);
	case PLUMB_QUERY_REAL:
		return is_real(text)
		               ? 0
		               : plumb_fail(error, PLUMB_EUSAGE, "%s takes a number, not \"%.80s\"",
		                            key->name, text);
	case PLUMB_QUERY_FLAG:
		return !strcmp(text, "0") || !strcmp(text, "1")
		               ? 0
		               : plumb_fail(error, PLUMB_EUSAGE, "%s takes 0 or 1, not \"%.80s\"",
		                            key->name, text);
	case PLUMB_QUERY_CHOICE:
		break;
	}
	if (find_choice(key->choices, text) != UINT32_MAX)
		return 0;
	return plumb_fail(error, PLUMB_EUSAGE, "%s takes one of %s, not \"%.80s\"", key->name,
	                  key->choices, text);
}

/* ---- reading ---- */

static int
compare_pairs(const void *a, const void *b)
{
	const struct plumb_query_pair *left = a, *right = b;
	int order = strcmp(left->key, right->key);

	/* Values lie in the storage in the order in which they were given. */
	return order ? order : (left->value > right->value) - (left->value < right->value);
}

static int
add_pair(struct plumb_query *query, char *text, struct plumb_error *error)
{
	char *value = strchr(text, '=');
	const struct plumb_query_key *key;

	if (!value)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "a part of the query has no \"=\"; write KEY=VALUE&KEY=VALUE");
	*value++ = '\0';
	if (!decode(text) || !decode(value))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "the query is not percent-encoded UTF-8 without control "
		                  "characters; encode keys and values");
	key = find_key(query->keys, text);
	if (!key)
		return unknown_key(query->keys, text, error);
	if (!key->repeated && plumb_query_given(query, text))
		return plumb_fail(error, PLUMB_EUSAGE, "%s is given twice; give it once",
		                  key->name);
	if (query->count == PLUMB_QUERY_PAIRS)
		return plumb_fail(error, PLUMB_EUSAGE, "the query has more than %d parts",
		                  PLUMB_QUERY_PAIRS);
	if (check_value(key, value, error) < 0)
		return PLUMB_EUSAGE;
	query->pairs[query->count++] = (struct plumb_query_pair){ key->name, value };
	return 0;
}

int
plumb_query_read(struct plumb_query *query, const char *text, const struct plumb_query_key *keys,
                 struct plumb_error *error)
{
	int code = 0;

	*query = (struct plumb_query){ .keys = keys };
	if (!text || !*text)
		return 0;
	if (strlen(text) > PLUMB_QUERY_BYTES)
		return plumb_fail(error, PLUMB_EUSAGE, "the query is longer than %d bytes",
		                  PLUMB_QUERY_BYTES);
	query->storage = strdup(text);
	if (!query->storage)
		return plumb_fail_memory(error, "for a query");
	for (char *at = query->storage, *next; !code && at; at = next) {
		next = strchr(at, '&');
		if (next)
			*next++ = '\0';
		if (*at)
			code = add_pair(query, at, error);
	}
	qsort(query->pairs, query->count, sizeof *query->pairs, compare_pairs);
	return code;
}

void
plumb_query_free(struct plumb_query *query)
{
	free(query->storage);
	*query = (struct plumb_query){ .keys = query->keys };
}

const char *
plumb_query_each(const struct plumb_query *query, const char *key, uint32_t which)
{
	for (uint32_t i = 0; i < query->count; i++)
		if (!strcmp(query->pairs[i].key, key) && !which--)
			return query->pairs[i].value;
	return NULL;
}

bool
plumb_query_has(const struct plumb_query *query, const char *key)
{
	return find_key(query->keys, key);
}

bool
plumb_query_given(const struct plumb_query *query, const char *key)
{
	return plumb_query_each(query, key, 0);
}

const char *
plumb_query_text(const struct plumb_query *query, const char *key)
{
	const char *given = plumb_query_each(query, key, 0);

	return given ? given : find_key(query->keys, key)->fallback;
}

int64_t
plumb_query_number(const struct plumb_query *query, const char *key)
{
	const char *text = plumb_query_text(query, key);

	return text ? strtoll(text, NULL, 10) : -1;
}

double
plumb_query_real(const struct plumb_query *query, const char *key)
{
	const char *text = plumb_query_text(query, key);

	return text ? strtod(text, NULL) : NAN;
}

bool
plumb_query_flag(const struct plumb_query *query, const char *key)
{
	const char *text = plumb_query_text(query, key);

	return text && !strcmp(text, "1");
}

uint32_t
plumb_query_choice(const struct plumb_query *query, const char *key)
{
	const char *text = plumb_query_text(query, key);

	return text ? find_choice(find_key(query->keys, key)->choices, text) : UINT32_MAX;
}

/* ---- the canonical form ---- */

static void
write_encoded(const char *text, FILE *out)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "-_.!~*'()";

	for (; *text; text++)
		if (strchr(plain, *text))
			fputc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned char)*text);
}

static bool
is_in(const char *const *list, const char *name)
{
	while (list && *list && strcmp(*list, name) != 0)
		list++;
	return list && *list;
}

void
plumb_query_write(const struct plumb_query *query, const char *const *except, FILE *out)
{
	bool first = true;

	for (uint32_t i = 0; i < query->count; i++) {
		const struct plumb_query_pair *pair = &query->pairs[i];
		const struct plumb_query_key *key = find_key(query->keys, pair->key);
		bool flag = key->kind == PLUMB_QUERY_FLAG && !key->fallback;

		if (is_in(except, key->name) ||
		    (key->fallback && !key->repeated && !strcmp(key->fallback, pair->value)) ||
		    (flag && !strcmp(pair->value, "0")))
			continue;
		fputs(first ? "" : "&", out);
		write_encoded(pair->key, out);
		fputc('=', out);
		write_encoded(pair->value, out);
		first = false;
	}
}
