/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a text is one JSON value. A loop with its own stack: input may nest as it likes. */
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

#define DEPTH 500

static const char *
skip_space(const char *s)
{
	return s + strspn(s, " \t\r\n");
}

static const char *
skip_digits(const char *s)
{
	return s + strspn(s, "0123456789");
}

/* Each skip_ function returns what follows the thing at S, or NULL when it is not one. */
static const char *
skip_string(const char *s)
{
	if (*s++ != '"')
		return NULL;
	for (; *s != '"'; s++) {
		if ((unsigned char)*s < 0x20)
			return NULL;
		if (*s != '\\')
			continue;
		s++;
		if (*s == 'u') {
			if (strspn(s + 1, "0123456789abcdefABCDEF") < 4)
				return NULL;
			s += 4;
		} else if (!*s || !strchr("\"\\/bfnrt", *s)) {
			return NULL;
		}
	}
	return s + 1;
}

static const char *
skip_number(const char *s)
{
	const char *digits;

	s += *s == '-';
	digits = s;
	s = skip_digits(s);
	if (s == digits || (*digits == '0' && s > digits + 1))
		return NULL;
	if (*s == '.') {
		digits = s + 1;
		s = skip_digits(digits);
		if (s == digits)
			return NULL;
	}
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		digits = s;
		s = skip_digits(s);
		if (s == digits)
			return NULL;
	}
	return s;
}

static const char *
skip_scalar(const char *s)
{
	static const char *const words[] = { "null", "true", "false" };

	if (*s == '"')
		return skip_string(s);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strncmp(s, words[i], strlen(words[i])))
			return s + strlen(words[i]);
	return skip_number(s);
}

static const char *
skip_key(const char *s)
{
	s = skip_string(skip_space(s));
	if (!s)
		return NULL;
	s = skip_space(s);
	return *s == ':' ? s + 1 : NULL;
}

bool
plumb_json_valid(const char *s)
{
	char open[DEPTH];
	size_t depth = 0;

	if (!plumb_utf8_valid(s, strlen(s)))
		return false;

	for (;;) {
		bool closed = false;

		s = skip_space(s);
		if (*s == '{' || *s == '[') {
			char end = *s == '{' ? '}' : ']';
			const char *inside = skip_space(s + 1);
			if (*inside == end) {
				s = inside + 1;
				closed = true;
			} else {
				if (depth == DEPTH)
					return false;
				open[depth++] = end;
				s = end == '}' ? skip_key(inside) : inside;
				if (!s)
					return false;
				continue;
			}
		}
		if (!closed && !(s = skip_scalar(s)))
			return false;
		for (s = skip_space(s); depth && *s == open[depth - 1]; s = skip_space(s + 1))
			depth--;
		if (!depth)
			return !*s;
		if (*s++ != ',')
			return false;
		if (open[depth - 1] == '}' && !(s = skip_key(s)))
			return false;
	}
}
