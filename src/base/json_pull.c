/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The window is read with nothing but pointers; where it ends stand zeros, which end every scan.
 * Whoever meets them sets SHORT, everything up to the end of the body then gives nothing, and
 * plumb_pull_again moves what was read since the mark to the front, reads on behind it, and has the
 * body run again.
 */
#include "base/json_pull.h"

#include <stdlib.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/utf8.h"

#define WINDOW_BYTES ((size_t)1 << 20)
#define PADDING 64 /* a scan reads so far beyond the end */
#define DEPTH_MAX 512

/* ---- the window ---- */

static int
open_window(struct plumb_pull *pull, size_t room, struct plumb_error *error)
{
	*pull = (struct plumb_pull){ .room = room };
	pull->window = malloc(room + PADDING);
	if (!pull->window)
		return plumb_fail_memory(error, NULL);
	memset(pull->window, 0, PADDING);
	pull->at = pull->end = pull->mark = pull->window;
	return 0;
}

int
plumb_pull_open(struct plumb_pull *pull, struct plumb_input *input, struct plumb_error *error)
{
	int code = open_window(pull, WINDOW_BYTES, error);
	pull->input = input;
	/* A mark of the order of bytes is no JSON, but editors leave it. */
	if (!code)
		PLUMB_PULL_WHOLE(pull)
		{
			if (pull->end - pull->at < 3 && !pull->ended)
				pull->state = PLUMB_PULL_SHORT;
			else if (pull->end - pull->at >= 3 && !memcmp(pull->at, "\xef\xbb\xbf", 3))
				pull->at += 3;
		}
	return code;
}

int
plumb_pull_open_text(struct plumb_pull *pull, const char *text, size_t bytes,
                     struct plumb_error *error)
{
	int code = open_window(pull, bytes, error);
	if (code)
		return code;
	memcpy(pull->window, text, bytes);
	memset(pull->window + bytes, 0, PADDING);
	pull->end += bytes;
	pull->ended = true;
	return 0;
}

void
plumb_pull_reject(struct plumb_pull *pull, const char *why)
{
	if (pull->state != PLUMB_PULL_OK)
		return;
	pull->state = PLUMB_PULL_BAD;
	pull->why = why;
	pull->why_at = pull->offset + (uint64_t)(pull->at - pull->window);
}

/* The zeros behind the window, or a zero in the file. */
static void
out_of_bytes(struct plumb_pull *pull)
{
	if (pull->at < pull->end)
		plumb_pull_reject(pull, "a zero byte, which is not JSON");
	else if (pull->state == PLUMB_PULL_OK)
		pull->state = PLUMB_PULL_SHORT;
}

int
plumb_pull_error(const struct plumb_pull *pull, const char *path, struct plumb_error *error)
{
	if (pull->error.code)
		return plumb_fail(error, pull->error.code, "%s", pull->error.message);
	const char *packing = pull->input ? plumb_input_packing(pull->input) : NULL;
	return plumb_fail(error, PLUMB_EINPUT, "%s: %s at byte %llu%s",
	                  path ? path : plumb_input_path(pull->input),
	                  pull->why ? pull->why : "it cannot be read",
	                  (unsigned long long)pull->why_at, packing ? " of the unpacked text" : "");
}

/* The newest of these has room; what was handed out stays where it is. */
struct plumb_pull_scratch {
	struct plumb_pull_scratch *next;
	size_t room, used;
	char bytes[];
};

static void
reset_scratch(struct plumb_pull *pull)
{
	struct plumb_pull_scratch *newest = pull->scratch;
	if (!newest)
		return;
	newest->used = 0;
	while (newest->next) {
		struct plumb_pull_scratch *next = newest->next;
		newest->next = next->next;
		free(next);
	}
}

void
plumb_pull_close(struct plumb_pull *pull)
{
	free(pull->window);
	while (pull->scratch) {
		struct plumb_pull_scratch *next = pull->scratch->next;
		free(pull->scratch);
		pull->scratch = next;
	}
	*pull = (struct plumb_pull){ .state = PLUMB_PULL_BAD };
}

/* Room for BYTES more; NULL: memory is out. */
static char *
scratch_of(struct plumb_pull *pull, size_t bytes)
{
	struct plumb_pull_scratch *newest = pull->scratch;
	if (!newest || newest->room - newest->used < bytes) {
		size_t room = bytes * 2 + 4096;
		struct plumb_pull_scratch *more = malloc(sizeof *more + room);
		if (!more)
			return NULL;
		*more = (struct plumb_pull_scratch){ newest, room, 0 };
		pull->scratch = newest = more;
	}
	return newest->bytes + newest->used;
}

void
plumb_pull_mark(struct plumb_pull *pull)
{
	pull->mark = pull->at;
	pull->mark_first = pull->first;
	reset_scratch(pull);
}

/* Reads more of the file. What comes after the mark is kept. */
static bool
refill_window(struct plumb_pull *pull)
{
	size_t kept = (size_t)(pull->end - pull->mark);
	pull->offset += (uint64_t)(pull->mark - pull->window);
	memmove(pull->window, pull->mark, kept);
	if (kept > pull->room / 2) {
		char *grown = kept < PLUMB_PULL_ITEM_MAX
		                      ? realloc(pull->window, pull->room * 2 + PADDING)
		                      : NULL;
		if (grown) {
			pull->window = grown;
			pull->room *= 2;
		}
		if (!grown || kept >= PLUMB_PULL_ITEM_MAX) {
			pull->at = pull->mark = pull->window;
			pull->end = pull->window + kept;
			pull->state = PLUMB_PULL_OK;
			plumb_pull_reject(pull, "an item of more than 256 MB, or not enough memory "
			                        "for it,");
			return false;
		}
	}
	ssize_t got =
		plumb_input_read(pull->input, pull->window + kept, pull->room - kept, &pull->error);
	size_t more = got > 0 ? (size_t)got : 0;
	pull->ended = kept + more < pull->room;
	pull->end = pull->window + kept + more;
	memset(pull->window + kept + more, 0, PADDING);
	pull->at = pull->mark = pull->window;
	if (got < 0) {
		pull->state = PLUMB_PULL_BAD;
		return false;
	}
	return true;
}

bool
plumb_pull_again(struct plumb_pull *pull)
{
	if (pull->state != PLUMB_PULL_SHORT)
		return false;
	if (pull->ended) {
		pull->state = PLUMB_PULL_OK;
		pull->at = pull->end;
		plumb_pull_reject(pull, "the file is cut off: it ends in the middle,");
		return false;
	}
	if (!refill_window(pull))
		return false;
	pull->state = PLUMB_PULL_OK;
	pull->first = pull->mark_first;
	reset_scratch(pull);
	return true;
}

/* ---- values ---- */

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
		out_of_bytes(pull);
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

/* Is there another one before CLOSE? */
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
		out_of_bytes(pull);
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
		out_of_bytes(pull);
	pull->at = at;
	return over;
}

/* ---- texts ---- */

/* From behind the quotation mark to the next one or a backslash. */
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

/* What stands at *AT, behind a backslash, goes to TO as UTF-8, which is never longer than the
 * escape; *AT moves behind it. Half a pair, or a zero that would end the text, becomes U+FFFD.
 * Returns the length, 0: there is no such escape before END. */
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

/* The text whose first backslash stands at SLASH. */
static bool
decode_text(struct plumb_pull *pull, const char *start, const char *slash, struct plumb_slice *text)
{
	const char *close = slash;
	while (close < pull->end && *close == '\\')
		close = close + 2 < pull->end ? scan_text(close + 2, pull->end) : pull->end;
	if (close >= pull->end) {
		pull->at = pull->end;
		out_of_bytes(pull);
		return false;
	}
	char *to = scratch_of(pull, (size_t)(close - start) + 8); /* as many are read at once */
	if (!to) {
		plumb_pull_reject(pull, "not enough memory for a text");
		return false;
	}
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
	pull->scratch->used += text->bytes;
	pull->at = close + 1;
	return true;
}

/* At a quotation mark. */
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
			out_of_bytes(pull);
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

/* The characters of a number, or of a literal such as true, NaN or -Infinity. */
static inline bool
take_word(struct plumb_pull *pull, struct plumb_slice *word)
{
	const char *at = pull->at;
	while ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
	       (*at >= 'A' && *at <= 'Z') || *at == '.' || *at == '-' || *at == '+')
		at++;
	if (!*at && at >= pull->end && !pull->ended) {
		pull->at = at;
		out_of_bytes(pull);
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

/* Digits, point and exponent of a number; false: it is none. */
struct decimal {
	bool negative;
	const char *digits[2]; /* before and behind the point */
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

/* The first FRONT digits of D as a whole number, where the digits end zeros; ROUND: by the one
 * behind. */
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
			break; /* zeros behind zeros, however many */
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

/* The usual case: up to 18 digits in all, no exponent. */
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

static inline bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Can C, which is not of it, stand behind a number? Not the zero at the end of the window: more of
 * the number may come. */
static inline bool
ends_number(char c)
{
	return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The usual number, in one look: as quick_decimal. False: it is something else, and nothing is
 * read. */
static inline bool
take_number(struct plumb_pull *pull, int scale, int64_t *number)
{
	const char *at = pull->at, *first;
	bool negative = *at == '-';
	uint64_t value = 0;
	at += negative;
	for (first = at; is_digit(*at); at++)
		value = value * 10 + (uint64_t)(*at - '0');
	if (at == first)
		return false;
	if (*at == '.')
		for (at++; is_digit(*at) && scale; at++, scale--)
			value = value * 10 + (uint64_t)(*at - '0');
	if (at - first > 18 || !ends_number(*at))
		return false;
	int64_t scaled = (int64_t)value;
	for (; scale; scale--)
		if (__builtin_mul_overflow(scaled, (int64_t)10, &scaled))
			return false;
	*number = negative ? -scaled : scaled;
	pull->at = at;
	return true;
}

/* Goes over a usual number. False: it is something else, and nothing is read. */
static inline bool
skip_number(struct plumb_pull *pull)
{
	const char *at = pull->at + (*pull->at == '-'), *first = at;
	while (is_digit(*at))
		at++;
	if (at == first)
		return false;
	if (*at == '.')
		for (at++; is_digit(*at);)
			at++;
	if (!ends_number(*at))
		return false;
	pull->at = at;
	return true;
}

/* A number's characters: as they stand, or in a text. */
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
	if (next_of(pull) && take_number(pull, scale, number))
		return true;
	return number_of(pull, &word) &&
	       (quick_decimal(word, scale, number) || plumb_slice_decimal(word, scale, number));
}

bool
plumb_pull_integer(struct plumb_pull *pull, int64_t *number)
{
	struct plumb_slice word;
	struct decimal d;
	if (next_of(pull) && take_number(pull, 0, number))
		return true;
	return number_of(pull, &word) &&
	       (quick_decimal(word, 0, number) ||
	        (parse_decimal(word, &d) &&
	         digits_of(&d, (long)d.counts[0] + d.exponent, false, number)));
}

/* ---- whatever it is ---- */

/* A value that is no array or object. */
static inline void
skip_simple(struct plumb_pull *pull, char c)
{
	struct plumb_slice text;
	struct decimal d;
	if (c == '"')
		take_text(pull, &text);
	else if (!skip_number(pull) && take_word(pull, &text) && !parse_decimal(text, &d) &&
	         !is_literal(text))
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
			out_of_bytes(pull);
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
			skip_simple(pull, c);
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
				out_of_bytes(pull);
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
