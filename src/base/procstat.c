/* SPDX-License-Identifier: Apache-2.0 */
#include "base/procstat.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { STATE_FIELD = 3, PARENT_FIELD = 4, START_FIELD = 22 }; /* see proc(5) */

/* The number in field NUMBER of the text from the name's last parenthesis on; 0: there is none. By
 * hand: strtoull is a symbol of glibc 2.38 where the headers are that new. */
static uint64_t
number_at(const char *text, int number)
{
	uint64_t value = 0;
	for (int field = STATE_FIELD - 1; text && field < number; field++)
		text = strchr(text + 1, ' ');
	for (text = text ? text + 1 : ""; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return value;
}

bool
plumb_procstat_read(const char *path, struct plumb_procstat *stat)
{
	char text[1024];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t got = read(fd, text, sizeof text - 1);
	close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	/* The name may hold anything: it goes from the first parenthesis to the last one. */
	const char *name = strchr(text, '('), *p = strrchr(text, ')');
	if (!name || !p || p < name || p[1] != ' ' || !p[2])
		return false;
	size_t length = (size_t)(p - ++name);
	if (length >= sizeof stat->name)
		length = sizeof stat->name - 1;
	memcpy(stat->name, name, length);
	stat->name[length] = '\0';
	stat->state = p[2];
	stat->parent = number_at(p, PARENT_FIELD);
	stat->start = number_at(p, START_FIELD);
	return true;
}
