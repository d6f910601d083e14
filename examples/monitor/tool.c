/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool of one's own on plumb's view of a program: counts operators, and prints the call paths
 * that launched the most kernels, when the program ends. See docs/monitor.md.
 *
 *	make examples
 *	plumb run --tool build/examples/monitor.so -- python train.py
 *
 * or, without a profile,
 *
 *	LD_PRELOAD="$PWD/build/libplumb.so $PWD/build/examples/monitor.so" python train.py
 *
 * It links against nothing of plumb's: the functions are found in libplumb.so when it is loaded.
 */
#include <plumb/monitor.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma weak plumb_monitor_init
#pragma weak plumb_monitor_register
#pragma weak plumb_monitor_path
#pragma weak plumb_monitor_finalize

#define FRAMES 64   /* of a path; further ones, the outermost, are left out */
#define PATHS 4096u /* different ones; a power of two */
#define TOP 10

static _Atomic unsigned long operators, backward_operators, launches, copies, lost;

/* Paths with their launches: open addressing, by the text. */
static struct path {
	char *text;
	unsigned long launches;
} paths[PATHS];
static unsigned path_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t pid; /* a forked child has our numbers, and is not us */

/* The path of the event as one line, without Python's own libraries' files. */
static void
describe(char *text, size_t size)
{
	struct plumb_monitor_frame frames[FRAMES];
	size_t count = plumb_monitor_path(PLUMB_MONITOR_ALL_LAYERS, frames, sizeof *frames, FRAMES);
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < count && i < FRAMES && used + 1 < size; i++) {
		const char *slash = frames[i].file ? strrchr(frames[i].file, '/') : NULL;
		const char *file = slash ? slash + 1 : frames[i].file;
		int n;

		if (file)
			n = snprintf(text + used, size - used, "%s%s (%s:%u)", used ? " > " : "",
			             frames[i].name, file, frames[i].line);
		else
			n = snprintf(text + used, size - used, "%s%s%s", used ? " > " : "",
			             frames[i].name,
			             frames[i].flags & PLUMB_MONITOR_BACKWARD ? " [backward]" : "");
		used += n > 0 ? (size_t)n : 0;
	}
}

static void
count_path(const char *text)
{
	unsigned hash = 5381;

	for (const char *c = text; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	pthread_mutex_lock(&lock);
	while (paths[hash % PATHS].text && strcmp(paths[hash % PATHS].text, text))
		hash++;
	if (!paths[hash % PATHS].text && path_count < PATHS / 2 &&
	    (paths[hash % PATHS].text = strdup(text)))
		path_count++;
	if (paths[hash % PATHS].text)
		paths[hash % PATHS].launches++;
	else
		lost++;
	pthread_mutex_unlock(&lock);
}

/* ---- callbacks ---- */

static void
on_operator(const struct plumb_monitor_event *event, void *data)
{
	(void)data;
	if (event->phase != PLUMB_MONITOR_BEGIN)
		return;
	operators++;
	if (event->flags & PLUMB_MONITOR_BACKWARD)
		backward_operators++;
}

static void
on_launch(const struct plumb_monitor_event *event, void *data)
{
	char text[4096];

	(void)data;
	if (event->phase != PLUMB_MONITOR_END || event->result != 0)
		return;
	if (event->kind == PLUMB_MONITOR_COPY) {
		copies++;
		return;
	}
	launches++;
	describe(text, sizeof text);
	count_path(text);
}

/* ---- beginning and end ---- */

static __attribute__((constructor)) void
begin(void)
{
	struct plumb_monitor_options options = { .size = sizeof options };

	pid = getpid();
	if (!plumb_monitor_init) {
		fputs("tool: libplumb.so is not loaded; preload it before this tool\n", stderr);
		return;
	}
	if (plumb_monitor_init(&options)) {
		fputs("tool: plumb cannot watch this process\n", stderr);
		return;
	}
	plumb_monitor_register(1u << PLUMB_MONITOR_OPERATOR, on_operator, NULL);
	plumb_monitor_register(1u << PLUMB_MONITOR_LAUNCH | 1u << PLUMB_MONITOR_COPY, on_launch,
	                       NULL);
}

static int
more_launches(const void *a, const void *b)
{
	const struct path *left = a, *right = b;

	return left->launches < right->launches ? 1 : left->launches > right->launches ? -1 : 0;
}

static __attribute__((destructor)) void
end(void)
{
	if (!plumb_monitor_finalize || pid != getpid() || (!operators && !launches))
		return; /* a shell, say, that the program started */
	plumb_monitor_finalize();
	fprintf(stderr, "tool: %lu operators, %lu of them backward; %lu launches, %lu copies\n",
	        operators, backward_operators, launches, copies);
	qsort(paths, PATHS, sizeof *paths, more_launches);
	for (unsigned i = 0; i < TOP && paths[i].text; i++)
		fprintf(stderr, "tool: %6lu launches: %s\n", paths[i].launches, paths[i].text);
	if (lost)
		fprintf(stderr, "tool: %lu launches on further paths\n", lost);
}
