/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedstat costs a third of status, but not every kernel has it. A thread that runs changes both
 * counters: one when it begins to run, the other when it stops.
 */
#include "watch/asleep.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* False: there is no such file. */
static bool
read_file(uint32_t pid, uint32_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%u/task/%u/%s", pid, tid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t got = read(fd, text, size - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

bool
plumb_asleep_in_stat(const char *text)
{
	const char *end = strrchr(text, ')'); /* a name may hold anything */
	return end && end[1] == ' ' && (end[2] == 'S' || end[2] == 'D');
}

bool
plumb_asleep_in_schedstat(const char *text, struct plumb_asleep_counts *counts)
{
	unsigned long long on, ready, runs;
	if (sscanf(text, "%llu %llu %llu", &on, &ready, &runs) != 3 || !runs)
		return false;
	*counts = (struct plumb_asleep_counts){ .runs = runs, .awake = on + ready, .timed = true };
	return true;
}

bool
plumb_asleep_in_status(const char *text, struct plumb_asleep_counts *counts)
{
	static const char of_itself[] = "\nvoluntary_ctxt_switches:";
	static const char of_others[] = "\nnonvoluntary_ctxt_switches:";
	const char *a = strstr(text, of_itself), *b = strstr(text, of_others);
	if (!a || !b)
		return false;
	*counts = (struct plumb_asleep_counts){
		.runs = 1 + strtoull(a + sizeof of_itself - 1, NULL, 10) +
		        strtoull(b + sizeof of_others - 1, NULL, 10),
	};
	return true;
}

bool
plumb_asleep(uint32_t pid, uint32_t tid)
{
	char text[512];
	return read_file(pid, tid, "stat", text, sizeof text) && plumb_asleep_in_stat(text);
}

bool
plumb_asleep_count(uint32_t pid, uint32_t tid, struct plumb_asleep_counts *counts)
{
	char text[8192];
	if (read_file(pid, tid, "schedstat", text, sizeof text) &&
	    plumb_asleep_in_schedstat(text, counts))
		return true;
	return read_file(pid, tid, "status", text, sizeof text) &&
	       plumb_asleep_in_status(text, counts);
}
