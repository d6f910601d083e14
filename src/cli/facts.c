/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rank.h"
#include "base/secret.h"
#include "cli/finish.h"
#include "cli/run/links.h"

#define REGION_SIZE (1u << 20)

/* ---- ranks ---- */

int
plumb_rank(void)
{
	static const char *const names[] = PLUMB_RANK_VARIABLES;
	return plumb_rank_from(names);
}

int
plumb_ranks_count(void)
{
	static const char *const names[] = { "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS",
		                             "PMI_SIZE", NULL };
	return plumb_rank_from(names);
}

/* As plumb_rank, among the processes of this host. */
static int
local_rank_given(void)
{
	static const char *const names[] = PLUMB_LOCAL_RANK_VARIABLES;
	return plumb_rank_from(names);
}

/* ---- the environment ---- */

/* The value after ": " of the first line of FILE that begins with KEY, into TEXT; NULL: none. */
static char *
field_of(const char *file, const char *key, char *text, int size)
{
	char *found = NULL;
	FILE *stream = fopen(file, "re");
	while (stream && !found && fgets(text, size, stream)) {
		char *colon = strchr(text, ':');
		if (strncmp(text, key, strlen(key)) != 0 || !colon)
			continue;
		found = colon + 1 + strspn(colon + 1, " \t");
		found[strcspn(found, "\n")] = '\0';
	}
	if (stream)
		fclose(stream);
	return found;
}

static void
write_number(struct plumb_arena *arena, const char *key, long long number)
{
	char text[32];
	snprintf(text, sizeof(text), "%lld", number);
	plumb_arena_environment(arena, key, text);
}

static void
write_host(struct plumb_arena *arena)
{
	struct utsname host;
	char text[512], clock[64];
	if (uname(&host) == 0) {
		plumb_arena_environment(arena, "host.name", host.nodename);
		plumb_arena_environment(arena, "host.machine", host.machine);
		snprintf(text, sizeof(text), "%s %s", host.sysname, host.release);
		plumb_arena_environment(arena, "host.kernel", text);
	}
	plumb_arena_environment(arena, "host.cpu",
	                        field_of("/proc/cpuinfo", "model name", text, sizeof(text)));
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
	if (cpus > 0)
		write_number(arena, "host.cpus", cpus);
	if (pages > 0)
		write_number(arena, "host.memory_bytes", (long long)pages * sysconf(_SC_PAGESIZE));
	time_t seconds = time(NULL);
	struct tm date;
	if (gmtime_r(&seconds, &date) &&
	    strftime(clock, sizeof(clock), "%Y-%m-%dT%H:%M:%SZ", &date))
		plumb_arena_environment(arena, "run.started", clock);
}

/* Readings of both clocks, so that the program's times have a date. */
static void
write_clock(struct plumb_arena *arena)
{
	struct timespec real;
	struct plumb_record_clock *clock =
		plumb_arena_append(arena, PLUMB_RECORD_CLOCK, sizeof(*clock));
	if (!clock)
		return;
	uint64_t before = plumb_clock_ns();
	clock_gettime(CLOCK_REALTIME, &real);
	uint64_t after = plumb_clock_ns();
	clock->monotonic = before + (after - before) / 2;
	clock->realtime = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
	clock->uncertainty = after - before;
	plumb_arena_commit(arena, clock);
}

/* The command line without what looks like a secret; malloced, NULL: no memory. */
static char *
masked_line(char *const *argv)
{
	struct plumb_secret secret = { 0 };
	char *line = NULL, **words;
	size_t count = 0;

	while (argv[count])
		count++;
	words = calloc(count + 1, sizeof(*words));
	for (size_t i = 0; words && i < count; i++) {
		words[i] = strdup(argv[i]);
		if (!words[i])
			goto out;
		plumb_secret_mask(&secret, words[i]);
	}
	if (words)
		line = plumb_shell_line((const char *const *)words);
out:
	for (size_t i = 0; words && i < count; i++)
		free(words[i]);
	free(words);
	return line;
}

/* ---- the region ---- */

int
plumb_facts_create(struct plumb_facts *facts, const char *path, struct plumb_error *error)
{
	memset(facts, 0, sizeof(*facts));
	int code = plumb_region_create(&facts->region, path, REGION_SIZE, error);
	if (code < 0)
		return code;
	plumb_arena_init(&facts->arena, &facts->region);
	write_clock(&facts->arena);
	return 0;
}

void
plumb_facts_started(struct plumb_facts *facts, const struct plumb_facts_program *program)
{
	struct plumb_arena *arena = &facts->arena;
	struct utsname host;
	char folder[4096];
	char *line = program->no_command ? NULL : masked_line(program->argv);
	/* The process first: it is what settle cannot do without. */
	plumb_id command = line ? plumb_arena_string(arena, line, strlen(line)) : 0;
	plumb_id name = uname(&host) == 0
	                        ? plumb_arena_string(arena, host.nodename, strlen(host.nodename))
	                        : 0;
	plumb_id executable =
		plumb_arena_string(arena, program->executable, strlen(program->executable));
	facts->process = plumb_arena_append(arena, PLUMB_RECORD_PROCESS, sizeof(*facts->process));
	if (facts->process) {
		facts->process->pid = (uint32_t)program->pid;
		facts->process->ppid = (uint32_t)program->ppid;
		facts->process->rank = plumb_rank();
		facts->process->local_rank = local_rank_given();
		facts->process->command = command;
		facts->process->host = name;
		facts->process->executable = executable;
		facts->process->start_monotonic = program->start_monotonic;
		plumb_arena_commit(arena, facts->process);
	}
	plumb_arena_environment(arena, "plumb.version", PLUMB_VERSION);
	plumb_arena_environment(arena, "run.command", line);
	plumb_arena_environment(arena, "run.folder", getcwd(folder, sizeof(folder)));
	plumb_arena_environment(arena, "run.output", program->output);
	plumb_arena_environment(arena, "run.user_code", program->user_code);
	plumb_arena_environment(arena, "run.no_gpu", program->no_gpu ? "--no-gpu" : NULL);
	plumb_arena_environment(arena, "run.torch_trace", program->torch_trace);
	write_host(arena);
	free(line);
}

void
plumb_facts_ended(struct plumb_facts *facts, int exit_code, bool links)
{
	uint64_t end = plumb_clock_ns();
	if (!facts->region.header)
		return;
	if (links)
		plumb_links_write(&facts->arena);
	if (facts->process) {
		facts->process->exit_status = exit_code < 0 ? 0 : exit_code;
		facts->process->end_monotonic = end;
		facts->process->exit_known = exit_code >= 0;
	}
	write_clock(&facts->arena);
	atomic_store(&facts->region.header->end_monotonic, end);
	atomic_store(&facts->region.header->state, PLUMB_REGION_ENDED);
	plumb_region_close(&facts->region);
}
