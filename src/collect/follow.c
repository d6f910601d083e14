/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line is looked at once, when the library is loaded: a forked child has its parent's,
 * and a program may write over its own later. The expression is matched with the words of the
 * command line, a space between two, and with the path of the executable.
 */
#include "collect/follow.h"

#include <limits.h>
#include <regex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/process.h"
#include "collect/recording.h"

static bool
	others; /* are processes that the program starts profiled? (this one and its children) */

static bool
command_matches(const regex_t *expression)
{
	static char line[32768];
	char executable[PATH_MAX + 1];
	size_t bytes = plumb_read_file("/proc/self/cmdline", line, sizeof line);
	for (size_t i = 0; i + 1 < bytes; i++)
		if (!line[i])
			line[i] = ' ';
	if (!regexec(expression, line, 0, NULL, 0))
		return true;
	ssize_t length = readlink("/proc/self/exe", executable, PATH_MAX);
	if (length <= 0)
		return false;
	executable[length] = '\0';
	return !regexec(expression, executable, 0, NULL, 0);
}

static bool none; /* are processes that the program starts left out, all of them? */

void
plumb_follow_load(const char *which)
{
	regex_t expression;
	none = !strcmp(which, "none");
	others = !*which || !strcmp(which, "all");
	if (others || !strcmp(which, "none") ||
	    regcomp(&expression, which, REG_EXTENDED | REG_NOSUB))
		return;
	others = command_matches(&expression);
	regfree(&expression);
}

bool
plumb_follow_process(void)
{
	return others || atomic_load(&plumb_control->program) == (int32_t)syscall(SYS_getpid);
}

bool
plumb_follow_others(void)
{
	return !none;
}
