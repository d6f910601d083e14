/* SPDX-License-Identifier: Apache-2.0 */
#include "base/source.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"

#define FILES_MOST 256
#define BYTES_MOST (8 << 20)

struct source {
	char *file;
	char *text; /* with a 0 for each end of a line; NULL: it cannot be read */
	PLUMB_VEC(const char *) lines;
};

struct plumb_sources {
	PLUMB_VEC(struct source) items;
};

static bool
is_source(const char *file)
{
	static const char *const ends[] = {
		".cu",  ".cuh", ".h",   ".hh",  ".hpp", ".hxx", ".c",
		".cc",  ".cpp", ".cxx", ".inl", ".inc", ".ipp", ".tpp",
		".hip", ".cl",  ".py",  ".ptx", ".f90", ".cuf", ".tcc"
	};
	const char *end = strrchr(file, '.');

	for (size_t i = 0; end && i < sizeof ends / sizeof *ends; i++)
		if (!strcmp(end, ends[i]))
			return true;
	return false;
}

static char *
read_text(const char *file, size_t *bytes)
{
	struct stat about;
	int opened = is_source(file) ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	char *text = NULL;
	ssize_t got = -1;

	if (opened < 0)
		return NULL;
	if (!fstat(opened, &about) && S_ISREG(about.st_mode) && about.st_size <= BYTES_MOST)
		text = malloc((size_t)about.st_size + 1);
	if (text)
		got = read(opened, text, (size_t)about.st_size);
	close(opened);
	if (got < 0 || memchr(text, 0, (size_t)got)) {
		free(text);
		return NULL;
	}
	*bytes = (size_t)got;
	text[got] = '\0';
	return text;
}

static void
cut_lines(struct source *source, size_t bytes)
{
	char *end = source->text + bytes;

	for (char *at = source->text; at < end;) {
		char *line_end = memchr(at, '\n', (size_t)(end - at));
		const char **line = plumb_vec_add(&source->lines);

		if (!line)
			return;
		*line = at;
		if (!line_end)
			return;
		*line_end = '\0';
		if (line_end > at && line_end[-1] == '\r')
			line_end[-1] = '\0';
		at = line_end + 1;
	}
}

struct plumb_sources *
plumb_sources_new(void)
{
	return calloc(1, sizeof(struct plumb_sources));
}

void
plumb_sources_free(struct plumb_sources *sources)
{
	for (uint32_t i = 0; sources && i < sources->items.count; i++) {
		free(sources->items.items[i].file);
		free(sources->items.items[i].text);
		plumb_vec_free(&sources->items.items[i].lines);
	}
	if (sources)
		plumb_vec_free(&sources->items);
	free(sources);
}

static struct source *
source_of(struct plumb_sources *sources, const char *file)
{
	struct source *source;
	size_t bytes = 0;

	for (uint32_t i = 0; i < sources->items.count; i++)
		if (!strcmp(sources->items.items[i].file, file))
			return &sources->items.items[i];
	if (sources->items.count == FILES_MOST)
		return NULL;
	source = plumb_vec_add(&sources->items);
	if (!source)
		return NULL;
	source->file = strdup(file);
	if (!source->file) {
		sources->items.count--;
		return NULL;
	}
	source->text = read_text(file, &bytes);
	if (source->text)
		cut_lines(source, bytes);
	return source;
}

const char *
plumb_source_line(struct plumb_sources *sources, const char *file, uint32_t line)
{
	struct source *source = sources && file ? source_of(sources, file) : NULL;

	return source && line && line <= source->lines.count ? source->lines.items[line - 1] : NULL;
}

uint32_t
plumb_source_count(struct plumb_sources *sources, const char *file)
{
	struct source *source = sources && file ? source_of(sources, file) : NULL;

	return source ? source->lines.count : 0;
}
