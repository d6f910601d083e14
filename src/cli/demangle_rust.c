/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/demangle_rust.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEEPEST = 192,      /* nested parts; a name may be made to have no end */
	LONGEST = 64 << 10, /* bytes of the text: references can make it explode */
	HASH = 17,          /* "h" and 16 digits */
};

struct symbol {
	const char *begin, *at; /* what numbers of references count from; what comes next */
	FILE *out;              /* NULL: nothing is printed now */
	size_t bytes;           /* printed */
	unsigned depth;
	uint64_t lifetimes; /* that "for<…>" has named so far */
	bool failed;
};

static void
put(struct symbol *s, const char *text, size_t length)
{
	if (!s->out || s->failed)
		return;
	s->bytes += length;
	if (s->bytes > LONGEST)
		s->failed = true;
	else
		fwrite(text, 1, length, s->out);
}

static void
put_text(struct symbol *s, const char *text)
{
	put(s, text, strlen(text));
}

static void
put_number(struct symbol *s, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, number);
	put_text(s, text);
}

static void
put_code(struct symbol *s, uint32_t c)
{
	char text[4];
	size_t length = 0;

	if (c < 0x80) {
		text[length++] = (char)c;
	} else if (c < 0x800) {
		text[length++] = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			text[length++] = (char)(0xe0 | c >> 12);
		} else {
			text[length++] = (char)(0xf0 | c >> 18);
			text[length++] = (char)(0x80 | (c >> 12 & 0x3f));
		}
		text[length++] = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		text[length++] = (char)(0x80 | (c & 0x3f));
	put(s, text, length);
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
take(struct symbol *s, char c)
{
	bool there = !s->failed && *s->at == c;

	s->at += there;
	return there;
}

/* One level deeper; false: too deep. Every true one is followed by s->depth--. */
static bool
descend(struct symbol *s)
{
	if (s->failed || s->depth == DEEPEST)
		s->failed = true;
	else
		s->depth++;
	return !s->failed;
}

static uint64_t
decimal(struct symbol *s)
{
	uint64_t number = 0;

	if (take(s, '0')) /* ends here: another number may follow */
		return 0;
	s->failed = s->failed || !is_digit(*s->at);
	while (!s->failed && is_digit(*s->at)) {
		number = number * 10 + (uint64_t)(*s->at++ - '0');
		s->failed = number > LONGEST;
	}
	return number;
}

/* ---- the older kind ---- */

/* "$LT$" and so on at *AT, of LENGTH bytes: prints what it stands for. */
static bool
put_escape(struct symbol *s, const char *name, size_t length)
{
	static const struct {
		const char *name;
		char c;
	} escapes[] = { { "SP", '@' }, { "BP", '*' }, { "RF", '&' }, { "LT", '<' },
		        { "GT", '>' }, { "LP", '(' }, { "RP", ')' }, { "C", ',' } };

	for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
		if (strlen(escapes[i].name) == length && !memcmp(escapes[i].name, name, length)) {
			put(s, &escapes[i].c, 1);
			return true;
		}
	if (length > 1 && length < 8 && *name == 'u' &&
	    strspn(name + 1, "0123456789abcdef") >= length - 1) {
		uint32_t c = (uint32_t)strtoul(name + 1, NULL, 16);
		if (c >= 0x20 && c < 0x110000 && c != 0x7f)
			put_code(s, c);
		else
			return false;
		return true;
	}
	return false;
}

static void
put_component(struct symbol *s, const char *name, size_t length)
{
	const char *end = name + length;

	if (length > 1 && name[0] == '_' && name[1] == '$')
		name++;
	while (name < end) {
		const char *close =
			*name == '$' ? memchr(name + 1, '$', (size_t)(end - name - 1)) : NULL;
		if (close && put_escape(s, name + 1, (size_t)(close - name - 1))) {
			name = close + 1;
		} else if (end - name > 1 && name[0] == '.' && name[1] == '.') {
			put_text(s, "::");
			name += 2;
		} else {
			put(s, name++, 1);
		}
	}
}

static bool
is_hash(const char *text, size_t length)
{
	return length == HASH && *text == 'h' && strspn(text + 1, "0123456789abcdef") >= HASH - 1;
}

/* At "_ZN". */
static void
put_old(struct symbol *s)
{
	bool first = true, hashed = false;

	s->at += 3;
	while (!s->failed && !hashed) {
		size_t length = (size_t)decimal(s);

		if (s->failed || !length || strnlen(s->at, length) < length) {
			s->failed = true;
			return;
		}
		hashed = s->at[length] == 'E' && is_hash(s->at, length) &&
		         (!s->at[length + 1] || strchr(". ", s->at[length + 1]));
		if (!hashed) {
			put_text(s, first ? "" : "::");
			put_component(s, s->at, length);
		}
		first = false;
		s->at += length;
	}
}

/* ---- the newer kind ---- */

static void put_path(struct symbol *s, bool value);
static void put_type(struct symbol *s);
static void put_constant(struct symbol *s);

/* Digits up to "_"; "_" alone is 0. */
static uint64_t
base_62(struct symbol *s)
{
	uint64_t number = 0;

	if (take(s, '_'))
		return 0;
	while (!s->failed && !take(s, '_')) {
		char c = *s->at++;
		uint64_t digit = is_digit(c)            ? (uint64_t)(c - '0')
		                 : c >= 'a' && c <= 'z' ? (uint64_t)(c - 'a' + 10)
		                                        : (uint64_t)(c - 'A' + 36);

		s->failed = !(is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) ||
		            __builtin_mul_overflow(number, 62, &number) ||
		            __builtin_add_overflow(number, digit, &number);
	}
	s->failed = s->failed || number == UINT64_MAX;
	return number + 1;
}

/* A number behind TAG, counted from 1; 0: there is none. */
static uint64_t
optional(struct symbol *s, char tag)
{
	return take(s, tag) ? base_62(s) + 1 : 0;
}

/* Reads an identifier's bytes. Names that are not ASCII are in Punycode. */
static const char *
read_name(struct symbol *s, size_t *length, bool *punycode)
{
	const char *name;

	*punycode = take(s, 'u');
	*length = (size_t)decimal(s);
	take(s, '_');
	name = s->at;
	if (s->failed || strnlen(name, *length) < *length) {
		s->failed = true;
		*length = 0;
	}
	s->at += *length;
	return name;
}

/* RFC 3492, with "_" in place of "-"; false: NAME is none. */
static bool
put_punycode(struct symbol *s, const char *name, size_t length)
{
	enum { MOST = 128 };
	uint32_t codes[MOST];
	uint64_t n = 128, i = 0, bias = 72, count = 0;
	const char *end = name + length, *mark = memrchr(name, '_', length);

	for (const char *at = name; mark && at < mark; at++) {
		if (count == MOST)
			return false;
		codes[count++] = (unsigned char)*at;
	}
	for (const char *at = mark ? mark + 1 : name; at < end; i++) {
		uint64_t before = i, weight = 1, delta;

		for (uint64_t k = 36;; k += 36) {
			uint64_t t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
			uint64_t digit;

			if (at == end || !((*at >= 'a' && *at <= 'z') || is_digit(*at)))
				return false;
			digit = is_digit(*at) ? (uint64_t)(*at - '0' + 26) : (uint64_t)(*at - 'a');
			at++;
			i += digit * weight;
			if (digit < t)
				break;
			weight *= 36 - t;
			if (i > UINT32_MAX || weight > UINT32_MAX)
				return false;
		}
		if (count == MOST)
			return false;
		delta = (i - before) / (before ? 2 : 700);
		delta += delta / (count + 1);
		for (bias = 0; delta > 455; bias += 36)
			delta /= 35;
		bias += 36 * delta / (delta + 38);
		n += i / (count + 1);
		i %= count + 1;
		if (n >= 0x110000 || (n >= 0xd800 && n < 0xe000))
			return false;
		memmove(codes + i + 1, codes + i, (count - i) * sizeof *codes);
		codes[i] = (uint32_t)n;
		count++;
	}
	for (uint64_t k = 0; k < count; k++)
		put_code(s, codes[k]);
	return true;
}

static void
put_name(struct symbol *s, const char *name, size_t length, bool punycode)
{
	if (!punycode || !put_punycode(s, name, length))
		put(s, name, length);
}

/* What PUT prints at an earlier place. */
static void
put_back(struct symbol *s, void (*print)(struct symbol *))
{
	const char *tag = s->at - 1, *after;
	uint64_t place = base_62(s);

	if (s->failed || place >= (uint64_t)(tag - s->begin)) {
		s->failed = true;
		return;
	}
	if (!s->out)
		return;
	after = s->at;
	s->at = s->begin + place;
	print(s);
	s->at = after;
}

static void
put_path_as_type(struct symbol *s)
{
	put_path(s, false);
}

static void
put_path_as_value(struct symbol *s)
{
	put_path(s, true);
}

static void
skip_impl_path(struct symbol *s)
{
	FILE *out = s->out;

	optional(s, 's');
	s->out = NULL;
	put_path(s, false);
	s->out = out;
}

/* "L", then how many "for<…>" away the name was given; 0: it has none. */
static void
put_lifetime(struct symbol *s, uint64_t number)
{
	uint64_t depth = s->lifetimes - number;

	if (number > s->lifetimes) {
		s->failed = true;
		return;
	}
	put_text(s, "'");
	if (!number) {
		put_text(s, "_");
	} else if (depth < 26) {
		char letter = (char)('a' + depth);
		put(s, &letter, 1);
	} else {
		put_text(s, "_");
		put_number(s, depth);
	}
}

/* "for<'a, 'b> ": returns how many names it gives. */
static uint64_t
put_binder(struct symbol *s)
{
	uint64_t count = optional(s, 'G');

	if (!count)
		return 0;
	if (count > 64) {
		s->failed = true;
		return 0;
	}
	put_text(s, "for<");
	for (uint64_t i = 0; i < count; i++) {
		put_text(s, i ? ", " : "");
		s->lifetimes++;
		put_lifetime(s, 1);
	}
	put_text(s, "> ");
	return count;
}

static void
put_arguments(struct symbol *s)
{
	for (bool first = true; !s->failed && !take(s, 'E'); first = false) {
		put_text(s, first ? "" : ", ");
		if (take(s, 'L'))
			put_lifetime(s, base_62(s));
		else if (take(s, 'K'))
			put_constant(s);
		else
			put_type(s);
	}
}

/* "N": a name within a path. Upper case: what the compiler made there. */
static void
put_nested(struct symbol *s, bool value)
{
	char space = *s->at;
	uint64_t number;
	const char *name;
	size_t length;
	bool punycode;

	if (!((space >= 'a' && space <= 'z') || (space >= 'A' && space <= 'Z'))) {
		s->failed = true;
		return;
	}
	s->at++;
	put_path(s, value);
	number = optional(s, 's');
	name = read_name(s, &length, &punycode);
	if (space >= 'a') {
		put_text(s, length ? "::" : "");
		put_name(s, name, length, punycode);
		return;
	}
	put_text(s, "::{");
	if (space == 'C')
		put_text(s, "closure");
	else if (space == 'S')
		put_text(s, "shim");
	else
		put(s, &space, 1);
	put_text(s, length ? ":" : "");
	put_name(s, name, length, punycode);
	put_text(s, "#");
	put_number(s, number);
	put_text(s, "}");
}

static void
put_path_inside(struct symbol *s, bool value)
{
	const char *name;
	size_t length;
	bool punycode;

	switch (s->failed ? 0 : *s->at++) {
	case 'C':
		optional(s, 's');
		name = read_name(s, &length, &punycode);
		put_name(s, name, length, punycode);
		return;
	case 'N':
		put_nested(s, value);
		return;
	case 'M':
		skip_impl_path(s);
		put_text(s, "<");
		put_type(s);
		put_text(s, ">");
		return;
	case 'X':
		skip_impl_path(s);
		/* fall through */
	case 'Y':
		put_text(s, "<");
		put_type(s);
		put_text(s, " as ");
		put_path(s, false);
		put_text(s, ">");
		return;
	case 'I':
		put_path(s, value);
		put_text(s, value ? "::<" : "<");
		put_arguments(s);
		put_text(s, ">");
		return;
	case 'B':
		put_back(s, value ? put_path_as_value : put_path_as_type);
		return;
	default:
		s->failed = true;
	}
}

/* VALUE: it names a function or a constant, not a type. */
static void
put_path(struct symbol *s, bool value)
{
	if (!descend(s))
		return;
	put_path_inside(s, value);
	s->depth--;
}

static const char *
basic_type(char tag)
{
	static const char *const names[26] = {
		"i8",    "bool", "char", "f64", "str",  "f32",  NULL,  "u8", "isize",
		"usize", NULL,   "i32",  "u32", "i128", "u128", "_",   NULL, NULL,
		"i16",   "u16",  "()",   "...", NULL,   "i64",  "u64", "!",
	};

	return tag >= 'a' && tag <= 'z' ? names[tag - 'a'] : NULL;
}

static void
put_function_type(struct symbol *s)
{
	uint64_t named = put_binder(s);

	put_text(s, take(s, 'U') ? "unsafe " : "");
	if (take(s, 'K')) {
		put_text(s, "extern \"");
		if (take(s, 'C')) {
			put_text(s, "C");
		} else {
			bool punycode;
			size_t length;
			const char *name = read_name(s, &length, &punycode);

			for (size_t i = 0; i < length; i++)
				put(s, name[i] == '_' ? "-" : name + i, 1);
		}
		put_text(s, "\" ");
	}
	put_text(s, "fn(");
	for (bool first = true; !s->failed && !take(s, 'E'); first = false) {
		put_text(s, first ? "" : ", ");
		put_type(s);
	}
	put_text(s, ")");
	if (!take(s, 'u')) {
		put_text(s, " -> ");
		put_type(s);
	}
	s->lifetimes -= named;
}

/* A trait with what its associated types are: "Iterator<Item = u8>". */
static void
put_trait(struct symbol *s)
{
	bool open = take(s, 'I');

	put_path(s, false);
	if (open) {
		put_text(s, "<");
		put_arguments(s);
	}
	while (take(s, 'p')) {
		bool punycode;
		size_t length;
		const char *name;

		put_text(s, open ? ", " : "<");
		open = true;
		name = read_name(s, &length, &punycode);
		put_name(s, name, length, punycode);
		put_text(s, " = ");
		put_type(s);
	}
	put_text(s, open ? ">" : "");
}

static void
put_object_type(struct symbol *s)
{
	uint64_t named, lifetime;

	put_text(s, "dyn ");
	named = put_binder(s);
	for (bool first = true; !s->failed && !take(s, 'E'); first = false) {
		put_text(s, first ? "" : " + ");
		put_trait(s);
	}
	s->lifetimes -= named;
	if (!take(s, 'L')) {
		s->failed = true;
		return;
	}
	lifetime = base_62(s);
	if (lifetime) {
		put_text(s, " + ");
		put_lifetime(s, lifetime);
	}
}

static void
put_reference(struct symbol *s, bool changeable)
{
	uint64_t lifetime = take(s, 'L') ? base_62(s) : 0;

	put_text(s, "&");
	if (lifetime) {
		put_lifetime(s, lifetime);
		put_text(s, " ");
	}
	put_text(s, changeable ? "mut " : "");
	put_type(s);
}

static void
put_tuple(struct symbol *s)
{
	unsigned count = 0;

	put_text(s, "(");
	for (; !s->failed && !take(s, 'E'); count++) {
		put_text(s, count ? ", " : "");
		put_type(s);
	}
	put_text(s, count == 1 ? ",)" : ")");
}

static void
put_type_inside(struct symbol *s)
{
	char tag = s->failed ? '\0' : *s->at;
	const char *basic = basic_type(tag);

	if (basic) {
		s->at++;
		put_text(s, basic);
		return;
	}
	if (tag && strchr("CNMXYI", tag)) {
		put_path(s, false);
		return;
	}
	s->at += tag != '\0';
	switch (tag) {
	case 'A':
	case 'S':
		put_text(s, "[");
		put_type(s);
		if (tag == 'A') {
			put_text(s, "; ");
			put_constant(s);
		}
		put_text(s, "]");
		return;
	case 'T':
		put_tuple(s);
		return;
	case 'R':
	case 'Q':
		put_reference(s, tag == 'Q');
		return;
	case 'P':
	case 'O':
		put_text(s, tag == 'P' ? "*const " : "*mut ");
		put_type(s);
		return;
	case 'F':
		put_function_type(s);
		return;
	case 'D':
		put_object_type(s);
		return;
	case 'B':
		put_back(s, put_type);
		return;
	default:
		s->failed = true;
	}
}

static void
put_type(struct symbol *s)
{
	if (!descend(s))
		return;
	put_type_inside(s);
	s->depth--;
}

/* Hexadecimal digits up to "_" as a number; those of more than 64 bits as they are. */
static void
put_digits(struct symbol *s, char type)
{
	const char *digits = s->at;
	size_t length = strspn(digits, "0123456789abcdef");
	uint64_t number = length <= 16 ? strtoull(digits, NULL, 16) : 0;

	s->at += length;
	if (!take(s, '_')) {
		s->failed = true;
		return;
	}
	if (type == 'b') {
		put_text(s, number ? "true" : "false");
	} else if (type == 'c') {
		put_text(s, "'");
		put_code(s, number >= 0x20 && number < 0x110000 ? (uint32_t)number : '?');
		put_text(s, "'");
	} else if (length > 16) {
		put_text(s, "0x");
		put(s, digits, length);
	} else {
		put_number(s, length ? strtoull(digits, NULL, 16) : 0);
	}
}

static void
put_constant(struct symbol *s)
{
	char type;

	if (take(s, 'B')) {
		put_back(s, put_constant);
		return;
	}
	if (take(s, 'p')) {
		put_text(s, "_");
		return;
	}
	type = s->failed ? '\0' : *s->at;
	if (!type || !strchr("hmtyjoalsxinbc", type)) {
		s->failed = true; /* constants of other types are rare: the symbol says it */
		return;
	}
	s->at++;
	put_text(s, take(s, 'n') ? "-" : "");
	put_digits(s, type);
}

/* ---- both ---- */

char *
plumb_demangle_rust(const char *symbol)
{
	struct symbol s = { .at = symbol };
	char *text = NULL;
	size_t bytes = 0;
	bool old = !strncmp(symbol, "_ZN", 3);

	if (!old && (strncmp(symbol, "_R", 2) || is_digit(symbol[2])))
		return NULL;
	s.out = open_memstream(&text, &bytes);
	if (!s.out)
		return NULL;
	if (old) {
		put_old(&s);
	} else {
		s.begin = s.at = symbol + 2;
		put_path(&s, true);
		if (!s.failed && *s.at && *s.at != '.') { /* the crate that it was made in */
			FILE *out = s.out;
			s.out = NULL;
			put_path(&s, false);
			s.out = out;
		}
		s.failed = s.failed || (*s.at && *s.at != '.' && *s.at != '$');
	}
	if (!fclose(s.out) && !s.failed && bytes)
		return text;
	free(text);
	return NULL;
}
