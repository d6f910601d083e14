/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values in the window. They are all in one file, because a value is mostly a few bytes long: the
 * small steps are inlined, and nothing but pointers is moved. Texts are scanned 16 bytes at a time.
 */
#include "base/json_pull_private.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/utf8.h"

#define DEPTH_MAX 512

/* ---- arrays and objects ---- */

static inline bool
is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline char
peek(struct plumb_pull *pull)
{
	const char *at = pull->at;
	while (is_space(*at))
		at++;
	pull->at = at;
	return *at;
}

static inline char
next_of(struct plumb_pull *pull)
{
	if (pull->state != PLUMB_PULL_OK)
		return 0;
	char c = peek(pull);
	if (!c && !(pull->at >= pull->end && pull->ended))
		plumb_pull_out_of_bytes(pull);
	return c;
}

char
plumb_pull_next(struct plumb_pull *pull)
{
	return next_of(pull);
}

bool
plumb_pull_enter(struct plumb_pull *pull, char open)
{
	if (next_of(pull) != open)
		return false;
	pull->at++;
	pull->first = true;
	return true;
}

/* Is there another item or member before CLOSE? Reads the comma before it, or CLOSE. */
static inline bool
has_another(struct plumb_pull *pull, char close)
{
	if (pull->state != PLUMB_PULL_OK)
		return false;
	char c = peek(pull);
	bool comma = c == ',';
	if (comma) {
		if (pull->first) {
			plumb_pull_reject(pull, "one comma too many");
			return false;
		}
		pull->at++;
		c = peek(pull);
	}
	if (c == close) {
		pull->at++;
		pull->first = false;
		return false;
	}
	if (!c)
		plumb_pull_out_of_bytes(pull);
	else if (!comma && !pull->first)
		plumb_pull_reject(pull,
		                  close == '}' ? "a missing comma or }" : "a missing comma or ]");
	pull->first = false;
	return pull->state == PLUMB_PULL_OK;
}

bool
plumb_pull_item(struct plumb_pull *pull)
{
	return has_another(pull, ']');
}

bool
plumb_pull_is_over(struct plumb_pull *pull)
{
	const char *at = pull->at;
	if (pull->state != PLUMB_PULL_OK)
		return false;
	char c = peek(pull);
	if (c == ',') {
		pull->at++;
		c = peek(pull);
	}
	bool over = !c && pull->at >= pull->end && pull->ended;
	if (!c && !over)
		plumb_pull_out_of_bytes(pull);
	pull->at = at;
	return over;
}

/* ---- texts ---- */

/* AT is in a text. Returns where the next quotation mark or backslash is, or END. */
static inline const char *
scan_text(const char *at, const char *end)
{
#if defined(__SSE2__)
	const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
	while (at < end) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		int found = _mm_movemask_epi8(
			_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash)));
		if (found) {
			at += __builtin_ctz((unsigned)found);
			return at < end ? at : end;
		}
		at += 16;
	}
	return end;
#else
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
#endif
}

static int
read_hexadecimal(const char *at)
{
	int code = 0;
	for (int i = 0; i < 4; i++) {
		char c = at[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
		            : c >= 'a' && c <= 'f' ? c - 'a' + 10
		            : c >= 'A' && c <= 'F' ? c - 'A' + 10
		                                   : -1;
		if (digit < 0)
			return -1;
		code = code << 4 | digit;
	}
	return code;
}

/* Writes the escape at *AT, after its backslash, to TO as UTF-8, which is never longer than the
 * escape. Moves *AT after the escape. Half of a surrogate pair becomes U+FFFD, and so does a zero,
 * which would end the text. Returns the length in UTF-8. 0: this is not an escape. */
static size_t
read_escape(const char **at, const char *end, char *to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	int code, low;
	if (*at >= end)
		return 0;
	for (int i = 0; from[i]; i++)
		if (from[i] == **at) {
			*to = into[i];
			++*at;
			return 1;
		}
	if (**at != 'u' || end - *at < 5 || (code = read_hexadecimal(*at + 1)) < 0)
		return 0;
	*at += 5;
	if (code >= 0xd800 && code < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' &&
	    (*at)[1] == 'u') {
		low = read_hexadecimal(*at + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			*at += 6;
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		}
	}
	return plumb_utf8_put((uint32_t)code, to);
}

/* Takes the text that begins at START, and has its first backslash at SLASH. */
static bool
decode_text(struct plumb_pull *pull, const char *start, const char *slash, struct plumb_slice *text)
{
	const char *close = slash;
	while (close < pull->end && *close == '\\')
		close = close + 2 < pull->end ? scan_text(close + 2, pull->end) : pull->end;
	if (close >= pull->end) {
		pull->at = pull->end;
		plumb_pull_out_of_bytes(pull);
		return false;
	}
	char *to = plumb_pull_scratch(pull, (size_t)(close - start) +
	                                            8); /* a number of four digits is read whole */
	if (!to)
		return false;
	text->at = to;
	for (const char *at = start; at < close; slash = scan_text(at, close)) {
		memcpy(to, at, (size_t)(slash - at));
		to += slash - at;
		at = slash;
		if (at == close)
			break;
		at++;
		size_t length = read_escape(&at, close, to);
		to += length;
		if (!length) {
			plumb_pull_reject(pull, "an escape sequence that is not JSON");
			return false;
		}
	}
	text->bytes = (size_t)(to - text->at);
	plumb_pull_scratch_used(pull, text->bytes);
	pull->at = close + 1;
	return true;
}

/* Takes the text that begins here with a quotation mark. Texts without escapes are not copied. */
static inline bool
take_text(struct plumb_pull *pull, struct plumb_slice *text)
{
	const char *start = pull->at + 1, *close = scan_text(start, pull->end);
	if (close < pull->end && *close == '"') {
		*text = (struct plumb_slice){ start, (size_t)(close - start) };
		pull->at = close + 1;
		return true;
	}
	return decode_text(pull, start, close, text);
}

static inline bool
take_member(struct plumb_pull *pull, struct plumb_slice *key)
{
	if (!has_another(pull, '}'))
		return false;
	if (*pull->at != '"') {
		plumb_pull_reject(pull, "a member without a name");
		return false;
	}
	if (!take_text(pull, key))
		return false;
	if (peek(pull) != ':') {
		if (*pull->at)
			plumb_pull_reject(pull, "a name without a colon");
		else
			plumb_pull_out_of_bytes(pull);
		return false;
	}
	pull->at++;
	return true;
}

bool
plumb_pull_member(struct plumb_pull *pull, struct plumb_slice *key)
{
	return take_member(pull, key);
}

bool
plumb_pull_text(struct plumb_pull *pull, struct plumb_slice *text)
{
	if (next_of(pull) == '"')
		return take_text(pull, text);
	plumb_pull_skip(pull);
	return false;
}

/* ---- numbers ---- */

/* Takes the characters of a number, or of a literal such as true, NaN or -Infinity. */
static inline bool
take_word(struct plumb_pull *pull, struct plumb_slice *word)
{
	const char *at = pull->at;
	while ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
	       (*at >= 'A' && *at <= 'Z') || *at == '.' || *at == '-' || *at == '+')
		at++;
	if (!*at && at >= pull->end && !pull->ended) {
		pull->at = at;
		plumb_pull_out_of_bytes(pull);
		return false;
	}
	*word = (struct plumb_slice){ pull->at, (size_t)(at - pull->at) };
	if (!word->bytes) {
		plumb_pull_reject(pull, "something that is not a JSON value");
		return false;
	}
	pull->at = at;
	return true;
}

static bool
is_literal(struct plumb_slice word)
{
	static const char *const literals[] = { "true",      "false", "null", "NaN",  "Infinity",
		                                "-Infinity", "nan",   "inf",  "-inf", "-nan" };
	for (size_t i = 0; i < sizeof literals / sizeof *literals; i++)
		if (plumb_slice_is(word, literals[i]))
			return true;
	return false;
}

/* A number as it is written. */
struct decimal {
	bool negative;
	const char *digits[2]; /* before and after the point */
	size_t counts[2];
	long exponent;
};

static bool
parse_decimal(struct plumb_slice text, struct decimal *d)
{
	const char *at = text.at, *end = text.at + text.bytes;
	*d = (struct decimal){ 0 };
	if (at < end && (*at == '-' || *at == '+'))
		d->negative = *at++ == '-';
	for (int part = 0; part < 2; part++) {
		d->digits[part] = at;
		while (at < end && *at >= '0' && *at <= '9')
			at++;
		d->counts[part] = (size_t)(at - d->digits[part]);
		if (part || at == end || *at != '.')
			break;
		at++;
	}
	if (!(d->counts[0] + d->counts[1]))
		return false;
	if (at < end && (*at == 'e' || *at == 'E')) {
		bool negative = ++at < end && *at == '-';
		if (at < end && (*at == '-' || *at == '+'))
			at++;
		const char *first = at;
		for (; at < end && *at >= '0' && *at <= '9'; at++)
			if (d->exponent < 100000)
				d->exponent = d->exponent * 10 + (*at - '0');
		if (at == first)
			return false;
		if (negative)
			d->exponent = -d->exponent;
	}
	return at == end;
}

/* The first FRONT digits of D as a whole number. Missing digits are zeros. ROUND: the digit after
 * them decides if it is rounded up. False: int64_t cannot hold it. */
static bool
digits_of(const struct decimal *d, long front, bool round, int64_t *number)
{
	uint64_t value = 0;
	long all = (long)(d->counts[0] + d->counts[1]);
	if (front < 0) {
		*number = 0;
		return true;
	}
	for (long i = 0; i < front; i++) {
		unsigned digit = 0;
		if (i < (long)d->counts[0])
			digit = (unsigned)(d->digits[0][i] - '0');
		else if (i < all)
			digit = (unsigned)(d->digits[1][i - (long)d->counts[0]] - '0');
		else if (!value)
			break; /* only zeros come, maybe very many */
		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	if (round && front < all) {
		char next = front < (long)d->counts[0] ? d->digits[0][front]
		                                       : d->digits[1][front - (long)d->counts[0]];
		value += next >= '5';
	}
	if (value > INT64_MAX)
		return false;
	*number = d->negative ? -(int64_t)value : (int64_t)value;
	return true;
}

bool
plumb_slice_decimal(struct plumb_slice text, int scale, int64_t *number)
{
	struct decimal d;
	return parse_decimal(text, &d) &&
	       digits_of(&d, (long)d.counts[0] + d.exponent + scale, true, number);
}

/* The usual number: at most 18 characters, no exponent. False: it is something else. */
static inline bool
quick_decimal(struct plumb_slice text, int scale, int64_t *number)
{
	const char *at = text.at, *end = text.at + text.bytes;
	bool negative = at < end && *at == '-';
	int64_t value = 0;
	at += negative;
	if (end - at > 18 || at == end)
		return false;
	for (; at < end && *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (*at - '0');
	if (at < end && *at == '.') {
		if (end - ++at > scale)
			return false;
		for (; at < end && *at >= '0' && *at <= '9'; at++, scale--)
			value = value * 10 + (*at - '0');
	}
	if (at != end)
		return false;
	for (; scale; scale--)
		if (__builtin_mul_overflow(value, (int64_t)10, &value))
			return false;
	*number = negative ? -value : value;
	return true;
}

/* Takes the characters of a number, which may be in a text. */
static bool
number_of(struct plumb_pull *pull, struct plumb_slice *word)
{
	char c = next_of(pull);
	if (c == '"')
		return take_text(pull, word);
	if (!c || c == '{' || c == '[') {
		plumb_pull_skip(pull);
		return false;
	}
	if (!take_word(pull, word))
		return false;
	struct decimal d;
	if ((*word->at >= '0' && *word->at <= '9') || parse_decimal(*word, &d))
		return true;
	if (!is_literal(*word))
		plumb_pull_reject(pull, "something that is not a JSON value");
	return false;
}

bool
plumb_pull_decimal(struct plumb_pull *pull, int scale, int64_t *number)
{
	struct plumb_slice word;
	if (next_of(pull) && plumb_pull_take_number(&pull->at, scale, number))
		return true;
	return number_of(pull, &word) &&
	       (quick_decimal(word, scale, number) || plumb_slice_decimal(word, scale, number));
}

bool
plumb_pull_integer(struct plumb_pull *pull, int64_t *number)
{
	struct plumb_slice word;
	struct decimal d;
	if (next_of(pull) && plumb_pull_take_number(&pull->at, 0, number))
		return true;
	return number_of(pull, &word) &&
	       (quick_decimal(word, 0, number) ||
	        (parse_decimal(word, &d) &&
	         digits_of(&d, (long)d.counts[0] + d.exponent, false, number)));
}

/* ---- skipping ---- */

/* Skips a value that is not an array or object. */
static inline void
skip_simple(struct plumb_pull *pull, char c)
{
	struct plumb_slice text;
	struct decimal d;
	if (c == '"')
		take_text(pull, &text);
	else if (!plumb_pull_skip_number(&pull->at) && take_word(pull, &text) &&
	         !parse_decimal(text, &d) && !is_literal(text))
		plumb_pull_reject(pull, "something that is not a JSON value");
}

void
plumb_pull_skip(struct plumb_pull *pull)
{
	unsigned char kinds[DEPTH_MAX];
	unsigned depth = 0;
	do {
		char c = next_of(pull);
		struct plumb_slice key;
		if (pull->state != PLUMB_PULL_OK)
			return;
		if (!c) {
			plumb_pull_out_of_bytes(pull);
			return;
		}
		if (c == '{' || c == '[') {
			if (depth == DEPTH_MAX) {
				plumb_pull_reject(pull, "values nested deeper than 512,");
				return;
			}
			kinds[depth++] = (unsigned char)c;
			pull->at++;
			pull->first = true;
		} else {
			const char *from = pull->at;
			skip_simple(pull, c);
			if (pull->notes && c != '"' && (!depth || kinds[depth - 1] == '{'))
				plumb_pull_note(pull, from, 0, NULL);
		}
		while (depth && !(kinds[depth - 1] == '{' ? take_member(pull, &key)
		                                          : has_another(pull, ']'))) {
			if (pull->state != PLUMB_PULL_OK)
				return;
			depth--;
		}
	} while (depth);
	pull->first = false;
}

void
plumb_pull_skip_long(struct plumb_pull *pull)
{
	unsigned char kinds[DEPTH_MAX];
	unsigned depth = 0;
	bool more;
	do {
		char c = 0;
		PLUMB_PULL_WHOLE(pull)
		{
			c = next_of(pull);
			if (depth == DEPTH_MAX && (c == '{' || c == '['))
				plumb_pull_reject(pull, "values nested deeper than 512,");
			else if (!c)
				plumb_pull_out_of_bytes(pull);
			else if (c == '{' || c == '[')
				plumb_pull_enter(pull, c);
			else
				skip_simple(pull, c);
		}
		if (plumb_pull_failed(pull))
			return;
		if (c == '{' || c == '[')
			kinds[depth++] = (unsigned char)c;
		for (more = false; depth && !more; depth -= !more) {
			PLUMB_PULL_WHOLE(pull)
			{
				struct plumb_slice key;
				more = kinds[depth - 1] == '{' ? plumb_pull_member(pull, &key)
				                               : plumb_pull_item(pull);
			}
			if (plumb_pull_failed(pull))
				return;
		}
	} while (depth);
}
