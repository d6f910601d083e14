/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/options.h"

#define BLOCK 8192u
#define ESCAPE 12u /* bytes of the longest: two of \u1234 */

struct filter {
	FILE *stream;
	int fd;
	bool raw, data;
	char held[4]; /* the beginning of a character; the rest has not come yet */
	size_t held_bytes;
	char block[BLOCK + ESCAPE];
	size_t used;
};

static struct filter *filters[2];

/* ---- the filter ---- */

bool
plumb_terminal_hides(uint32_t c)
{
	return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) || c == 0xad ||
	       c == 0x61c || c == 0x180e || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

static bool
write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t written = write(fd, text, bytes);
		if (written < 0 && errno != EINTR)
			return false;
		if (written > 0) {
			text += written;
			bytes -= (size_t)written;
		}
	}
	return true;
}

static bool
buffer_text(struct filter *filter, const char *text, size_t bytes)
{
	memcpy(filter->block + filter->used, text, bytes);
	filter->used += bytes;
	if (filter->used < BLOCK)
		return true;
	bool written = write_all(filter->fd, filter->block, filter->used);
	filter->used = 0;
	return written;
}

static bool
put_escape(struct filter *filter, uint32_t c)
{
	char text[ESCAPE + 1];
	if (c < 0x10000)
		snprintf(text, sizeof text, "\\u%04x", c & 0xffff);
	else
		snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10 & 0x7ff),
		         0xdc00 + (c & 0x3ff));
	return buffer_text(filter, text, strlen(text));
}

/* Could TEXT be the beginning of a character that is longer than BYTES? */
static bool
is_beginning(const char *text, size_t bytes)
{
	const unsigned char *t = (const unsigned char *)text;
	size_t length = t[0] < 0xc2 ? 0 : t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : t[0] < 0xf5 ? 4 : 0;
	for (size_t i = 1; i < bytes; i++)
		if ((t[i] & 0xc0) != 0x80)
			return false;
	return bytes < length;
}

static bool
put_text(struct filter *filter, const char *text, size_t bytes)
{
	bool fine = true;
	for (size_t at = 0; at < bytes && fine;) {
		size_t length = plumb_utf8_character(text + at, bytes - at);
		if (!length && is_beginning(text + at, bytes - at)) {
			filter->held_bytes = bytes - at;
			memcpy(filter->held, text + at, filter->held_bytes);
			break;
		}
		if (!length) {
			fine = buffer_text(filter, "\xef\xbf\xbd", 3);
			at++;
			continue;
		}
		uint32_t c = plumb_utf8_code(text + at, length);
		fine = plumb_terminal_hides(c) ? put_escape(filter, c)
		                               : buffer_text(filter, text + at, length);
		at += length;
	}
	return fine;
}

static ssize_t
filter_write(void *cookie, const char *text, size_t bytes)
{
	struct filter *filter = cookie;
	bool fine = true;
	char *joined = NULL;

	if (filter->raw || filter->data) {
		fine = write_all(filter->fd, text, bytes);
	} else if (!filter->held_bytes) {
		fine = put_text(filter, text, bytes);
	} else if ((joined = malloc(filter->held_bytes + bytes))) {
		size_t held = filter->held_bytes;
		memcpy(joined, filter->held, held);
		memcpy(joined + held, text, bytes);
		filter->held_bytes = 0;
		fine = put_text(filter, joined, held + bytes);
		free(joined);
	} else {
		fine = false;
	}
	fine = fine && write_all(filter->fd, filter->block, filter->used);
	filter->used = 0;
	return fine ? (ssize_t)bytes : 0;
}

static struct filter *
filter_of(FILE *out)
{
	for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
		if (filters[i] && filters[i]->stream == out)
			return filters[i];
	return NULL;
}

FILE *
plumb_terminal_filter(FILE *stream)
{
	struct filter **place = &filters[filters[0] != NULL];
	struct filter *filter = *place ? NULL : calloc(1, sizeof *filter);
	if (!filter)
		return stream;
	filter->fd = fileno(stream);
	filter->stream = fopencookie(filter, "w", (cookie_io_functions_t){ .write = filter_write });
	if (!filter->stream) {
		free(filter);
		return stream;
	}
	/* As stdio has them: errors at once, lines for a person, blocks for a file. */
	setvbuf(filter->stream, NULL,
	        filter->fd == STDERR_FILENO || isatty(filter->fd) ? _IOLBF : _IOFBF, BUFSIZ);
	*place = filter;
	return filter->stream;
}

void
plumb_terminal_data(FILE *out)
{
	struct filter *filter = filter_of(out);
	if (filter)
		filter->data = !isatty(filter->fd);
}

void
plumb_terminal_steer(FILE *out, const char *sequence)
{
	struct filter *filter = filter_of(out);
	if (filter) {
		fflush(out);
		filter->raw = true;
	}
	fputs(sequence, out);
	if (filter) {
		fflush(out);
		filter->raw = false;
	}
}

int
plumb_terminal_fd(FILE *out)
{
	const struct filter *filter = filter_of(out);
	return filter ? filter->fd : fileno(out);
}

/* ---- the terminal ---- */

bool
plumb_terminal_is(FILE *out)
{
	int fd = plumb_terminal_fd(out);

	return fd >= 0 && isatty(fd);
}

int
plumb_terminal_width(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	int64_t wanted = columns ? plumb_parse_number(columns) : -1;
	struct winsize size;

	if (wanted > 0)
		return wanted < 10000 ? (int)wanted : 10000;
	if (plumb_terminal_is(out) && !ioctl(plumb_terminal_fd(out), TIOCGWINSZ, &size) &&
	    size.ws_col)
		return size.ws_col;
	return PLUMB_WIDTH_DEFAULT;
}

bool
plumb_terminal_colour(FILE *out)
{
	const char *none = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if ((none && *none) || !term || !strcmp(term, "dumb"))
		return false;
	return plumb_terminal_is(out);
}
