/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does something that may fail badly in a child process with a time limit. If a driver hangs or a
 * program crashes, one answer is lost and not the whole report.
 */
#ifndef PLUMB_CLI_RUN_PROBE_H
#define PLUMB_CLI_RUN_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct plumb_probe {
	char output[65536]; /* what it wrote, cut if it is longer; terminated */
	int status;         /* exit code, or 128 + signal */
	bool timed_out;     /* it was ended after the time limit */
};

/*
 * Runs ARGV with standard input from /dev/null; its standard output (and standard error too when
 * ERRORS is set) goes to output. LIBRARY (or NULL) is the only thing preloaded into it, and no tool
 * is injected. True: it ended by itself with status 0.
 */
bool plumb_probe_command(struct plumb_probe *probe, const char *const *argv, const char *library,
                         bool errors, unsigned seconds);

/* The same, but calls FUNCTION in the child. `output` is what it prints on standard output. */
bool plumb_probe_call(struct plumb_probe *probe, int (*function)(void *data), void *data,
                      unsigned seconds);

/* The value of the line "KEY=…" of OUTPUT, into TEXT of SIZE bytes; NULL: there is none. */
const char *plumb_probe_value(const char *output, const char *key, char *text, size_t size);

/* Becomes the program ARGV. It is searched only in the absolute folders of PATH, because an empty
 * or relative entry would start a file of the current folder. Returns only if this fails, with
 * errno. */
void plumb_probe_become(const char *const *argv);

#endif
