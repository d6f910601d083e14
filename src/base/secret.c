/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define STARS 3
#define LONGEST_NAME 64
#define MAX_PARTS 8
#define SHORTEST_TOKEN 16

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Without the locale of <ctype.h>. */
static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool
is_alnum(char c)
{
	return is_digit(c) || is_upper(c) || (c >= 'a' && c <= 'z');
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool
is_name(char c)
{
	return is_alnum(c) || c == '_' || c == '-' || c == '.';
}

static bool
is_quote(char c)
{
	return c == '"' || c == '\'';
}

static bool
is_one_of(const char *word, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(word, list[i]))
			return true;
	return false;
}

static bool
ends_in_one_of(const char *word, const char *const *list, size_t count)
{
	size_t length = strlen(word);

	for (size_t i = 0; i < count; i++) {
		size_t tail = strlen(list[i]);
		if (length >= tail && !strcmp(word + length - tail, list[i]))
			return true;
	}
	return false;
}

/* Replaces FROM to TO by stars. Returns where the rest of the text begins. */
static char *
put_stars(char *from, char *to)
{
	size_t length = (size_t)(to - from), stars = length < STARS ? length : STARS;

	memset(from, '*', stars);
	memmove(from + stars, to, strlen(to) + 1);
	return from + stars;
}

/* ---- names ---- */

/* A name in its parts, in small letters: "hfApi_Key2" is hf, api, key. */
struct name {
	char text[LONGEST_NAME + MAX_PARTS];
	const char *parts[MAX_PARTS];
	size_t count;
};

static void
split_name(struct name *name, const char *from, size_t length)
{
	char *to = name->text;
	bool open = false;

	name->count = 0;
	while (length && is_digit(from[length - 1]))
		length--;
	for (size_t i = 0; i < length; i++) {
		bool hump = i && is_upper(from[i]) && !is_upper(from[i - 1]);
		if (open && (!is_alnum(from[i]) || hump)) {
			*to++ = '\0';
			open = false;
		}
		if (!is_alnum(from[i]))
			continue;
		if (!open) {
			if (name->count == MAX_PARTS)
				break;
			name->parts[name->count++] = to;
			open = true;
		}
		*to++ = is_upper(from[i]) ? (char)(from[i] - 'A' + 'a') : from[i];
	}
	*to = '\0';
}

static bool
is_secret_key(const char *before)
{
	static const char *const kinds[] = {
		"api",        "access",  "secret",  "private", "auth",      "account",
		"license",    "licence", "signing", "storage", "master",    "subscription",
		"shared",     "session", "ssh",     "service", "app",       "client",
		"encryption", "wandb",   "openai",  "azure",   "anthropic",
	};

	return is_one_of(before, kinds, COUNT(kinds));
}

/* Tokens of language models are no secrets. */
static bool
is_text_token(const char *before)
{
	static const char *const kinds[] = {
		"pad", "eos",  "bos",   "unk",   "mask", "sep",  "cls",     "special", "image",
		"end", "stop", "first", "start", "last", "next", "max",     "min",     "num",
		"new", "per",  "draft", "audio", "n",    "bad",  "decoder", "forced",  "prompt",
	};

	return is_one_of(before, kinds, COUNT(kinds));
}

static bool
is_secret_name(const char *from, size_t length)
{
	static const char *const flags[] = { "no",   "use",  "disable", "enable",  "skip",
		                             "show", "with", "without", "require", "has" };
	static const char *const last[] = {
		"token",  "secret",      "password",      "passwd", "passphrase", "credential",
		"apikey", "credentials", "authorization", "cookie", "auth",       "pw",
		"pwd",    "jwt",         "signature",     "sig",
	};
	static const char *const ends[] = { "password",   "passwd",      "passphrase", "secret",
		                            "apikey",     "secretkey",   "accesskey",  "authkey",
		                            "privatekey", "accesstoken", "authtoken" };
	static const char *const owners[] = { "db", "user", "http",  "proxy", "ftp",  "smtp",
		                              "pg", "key",  "mysql", "root",  "admin" };
	struct name name;

	if (!length || length > LONGEST_NAME || (length == 3 && !strncmp(from, "PWD", 3)) ||
	    (length == 6 && !strncmp(from, "OLDPWD", 6)))
		return false;
	split_name(&name, from, length);
	if (!name.count)
		return false;
	const char *word = name.parts[name.count - 1];
	const char *before = name.count > 1 ? name.parts[name.count - 2] : "";
	if (name.count > 1 && is_one_of(name.parts[0], flags, COUNT(flags)))
		return false;
	if (!strcmp(word, "key"))
		return is_secret_key(before);
	if (!strcmp(word, "pass"))
		return is_one_of(before, owners, COUNT(owners));
	if (!strcmp(word, "token") && is_text_token(before))
		return false;
	return is_one_of(word, last, COUNT(last)) || ends_in_one_of(word, ends, COUNT(ends));
}

/* ---- values ---- */

/* "--token=None" hides nothing. */
static bool
is_harmless(const char *value, size_t length)
{
	static const char *const words[] = { "true", "false", "yes",  "no", "on", "off",
		                             "none", "null",  "auto", "0",  "1" };

	for (size_t i = 0; i < COUNT(words); i++)
		if (strlen(words[i]) == length && !strncasecmp(words[i], value, length))
			return true;
	return !length;
}

/* "Bearer " and its like, which come before the secret. */
static char *
skip_scheme(char *value)
{
	static const char *const schemes[] = { "bearer", "basic", "token", "digest", "apikey" };

	for (size_t i = 0; i < COUNT(schemes); i++) {
		size_t length = strlen(schemes[i]);
		if (strncasecmp(value, schemes[i], length) || !is_space(value[length]))
			continue;
		value += length;
		while (is_space(*value))
			value++;
		break;
	}
	return value;
}

/* Where the value ends that begins at VALUE; ALL: it takes the rest of the line. */
static char *
value_end(char *value, bool all)
{
	char *end = value;

	if (is_quote(value[-1])) {
		while (*end && *end != value[-1])
			end++;
		return end;
	}
	return value + strcspn(value, all ? "\n" : " \t\r\n&;,|()[]{}\"'");
}

static char *
mask_value(char *value, bool all)
{
	value += is_quote(*value);
	value = skip_scheme(value);
	char *end = value_end(value, all);
	return is_harmless(value, (size_t)(end - value)) ? end : put_stars(value, end);
}

/* ---- what stands anywhere in a text ---- */

/* The password, or a long user name, before the "@" of a URL. AT is after "://". */
static char *
mask_url(char *at)
{
	size_t length = strcspn(at, "/?# \t\r\n\"'<>");
	char *sign = memrchr(at, '@', length), *colon;

	if (!sign)
		return at;
	colon = memchr(at, ':', (size_t)(sign - at));
	if (colon && colon + 1 < sign)
		return put_stars(colon + 1, sign);
	return sign - at >= 20 ? put_stars(at, sign) : sign;
}

/* The length of a token of a known shape at TEXT, or 0. */
static size_t
token_length(const char *text)
{
	static const char *const starts[] = {
		"hf_",     "sk-",    "sk_live_", "sk_test_", "rk_live_",    "ghp_",
		"gho_",    "ghu_",   "ghs_",     "ghr_",     "github_pat_", "glpat-",
		"xoxb-",   "xoxp-",  "xoxa-",    "xoxr-",    "xoxs-",       "xapp-",
		"AKIA",    "ASIA",   "AIza",     "ya29.",    "npm_",        "pypi-",
		"dop_v1_", "nvapi-", "gsk_",     "r8_",      "eyJ",         "lin_api_",
	};
	size_t length = 0, run = 0, longest = 0;
	bool digit = false;

	for (size_t i = 0; i < COUNT(starts) && !length; i++)
		if (!strncmp(text, starts[i], strlen(starts[i])))
			length = strlen(starts[i]);
	if (!length)
		return 0;
	size_t head = length;
	for (; is_name(text[length]); length++) {
		run = is_alnum(text[length]) ? run + 1 : 0;
		longest = run > longest ? run : longest;
		digit |= is_digit(text[length]);
	}
	if (longest >= SHORTEST_TOKEN || (digit && length - head >= SHORTEST_TOKEN))
		return length;
	return 0;
}

/*
 * The name at FROM, of LENGTH: masks the value that follows it, if it is a secret's. Returns where
 * to go on. FIRST: the text began with this name (and dashes), so that its value takes the whole
 * rest.
 */
static char *
look_at_name(char *from, size_t length, bool dashed, bool first)
{
	char *end = from + length, *next = end;

	if (length == 6 && !strncasecmp(from, "bearer", 6) && is_space(*end)) {
		while (is_space(*next))
			next++;
		char *stop = value_end(next, false);
		return stop - next >= 8 ? put_stars(next, stop) : next;
	}
	if (!is_secret_name(from, length))
		return end;
	next += is_quote(*next);
	bool close = *next == '=' || *next == ':';
	while (is_space(*next))
		next++;
	if ((*next == '=' || *next == ':') && next[1] != '=' && next[1] != '/') {
		for (next++; is_space(*next); next++)
			;
		return mask_value(next, first && close);
	}
	if (dashed && is_space(*end) && *next && *next != '-')
		return mask_value(next, false);
	return end;
}

static void
mask_text(char *text, bool whole)
{
	char *p = text;
	bool first = whole;

	while (*p) {
		bool boundary = p == text || !(is_alnum(p[-1]) || p[-1] == '_');
		size_t length = boundary ? token_length(p) : 0;
		if (length) {
			p = put_stars(p, p + length);
			first = false;
		} else if (!strncmp(p, "://", 3)) {
			p = mask_url(p + 3);
			first = false;
		} else if (is_alnum(*p) || *p == '_') {
			while (is_name(p[length]))
				length++;
			p = look_at_name(p, length, p > text && p[-1] == '-', first);
			first = false;
		} else {
			first &= *p == '-' || *p == '+' || *p == '\'' || *p == '"';
			p++;
		}
	}
}

/* ---- words ---- */

static bool
is_user_option(const char *word)
{
	return !strcmp(word, "-u") || !strcmp(word, "--user") || !strcmp(word, "--proxy-user");
}

/* USER:PASSWORD, and not two numbers. */
static void
mask_user(char *word)
{
	char *colon = strchr(word, ':');

	if (colon && colon[1] && colon[1] != '/' && !is_digit(colon[1]))
		put_stars(colon + 1, colon + strlen(colon));
}

void
plumb_secret_mask(struct plumb_secret *state, char *word)
{
	struct plumb_secret before = *state;
	size_t dashes = strspn(word, "-"), length = strlen(word);

	*state = (struct plumb_secret){ 0 };
	if (!dashes && before.value && !is_harmless(word, length)) {
		put_stars(word, word + length);
		return;
	}
	if (!dashes && before.user)
		mask_user(word);
	state->value = dashes && is_secret_name(word + dashes, length - dashes) &&
	               strcspn(word, "=: ") == length;
	state->user = is_user_option(word);
	mask_text(word, true);
}

void
plumb_secret_mask_line(char *line)
{
	mask_text(line, false);
}
