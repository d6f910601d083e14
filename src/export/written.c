/* SPDX-License-Identifier: Apache-2.0 */
#include "export/written.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD ((size_t)64 << 10)

struct head {
	char *bytes; /* with a '\0' after them */
	size_t size;
	bool whole; /* it is all of the file */
};

static bool
begins_with(const struct head *head, const char *text)
{
	return head->size >= strlen(text) && !memcmp(head->bytes, text, strlen(text));
}

static bool
contains_text(const struct head *head, const char *text)
{
	return memmem(head->bytes, head->size, text, strlen(text)) != NULL;
}

/* Does every line end with a space and a number, and not look like something else? */
static bool
is_folded(const struct head *head)
{
	size_t lines = 0;

	for (const char *line = head->bytes, *end; *line; line = end + 1, lines++) {
		end = strchr(line, '\n');
		if (!end)
			return lines && !head->whole &&
			       strlen(line) == (size_t)(head->bytes + head->size - line);
		const char *digit = end;
		while (digit > line && digit[-1] >= '0' && digit[-1] <= '9')
			digit--;
		if (digit == end || digit < line + 2 || digit[-1] != ' ')
			return false;
	}
	return lines > 0;
}

/* gzip with our comment and no other field in its header. */
static bool
is_pprof(const struct head *head)
{
	const size_t fixed = 10;

	return head->size > fixed + sizeof PLUMB_EXPORT_MARK &&
	       !memcmp(head->bytes, "\x1f\x8b\x08", 3) && head->bytes[3] == 0x10 &&
	       !memcmp(head->bytes + fixed, PLUMB_EXPORT_MARK, sizeof PLUMB_EXPORT_MARK);
}

/* The first packet: of sequence 1, which begins anew. */
static bool
is_perfetto(const struct head *head)
{
	static const char packet[] = "\x50\x01\x68\x03";
	size_t size = head->size < 24 ? head->size : 24;

	return begins_with(head, "\n") && memmem(head->bytes, size, packet, sizeof packet - 1);
}

static bool
is_ours(const struct head *head)
{
	if (begins_with(head, "{\"$schema\":"))
		return contains_text(head, "\"exporter\":\"plumb\"");
	if (begins_with(head, "{\"schemaVersion\":"))
		return contains_text(head, "\"plumb\":{\"version\":");
	if (begins_with(head, "{\"schema\":"))
		return contains_text(head, "\"tool_version\":");
	if (begins_with(head, "{\"resourceSpans\":"))
		return contains_text(head, "\"scope\":{\"name\":\"plumb\"");
	if (begins_with(head, "context,parent,depth,kind,name,"))
		return true;
	return is_perfetto(head) || is_pprof(head) || is_folded(head);
}

bool
plumb_export_wrote(const char *path)
{
	struct head head = { .bytes = malloc(HEAD + 1) };
	struct stat status;
	/* A pipe must not be waited for. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool ours = false;
	ssize_t got = 1;

	if (fd >= 0 && head.bytes && !fstat(fd, &status) && S_ISREG(status.st_mode)) {
		while (got > 0 && head.size < HEAD) {
			got = read(fd, head.bytes + head.size, HEAD - head.size);
			head.size += got > 0 ? (size_t)got : 0;
		}
		head.bytes[head.size] = '\0';
		head.whole = !got;
		ours = is_ours(&head);
	}
	if (fd >= 0)
		close(fd);
	free(head.bytes);
	return ours;
}
