/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/options.h"

bool
plumb_terminal_is(FILE *out)
{
	int fd = fileno(out);

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
	if (plumb_terminal_is(out) && !ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col)
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
