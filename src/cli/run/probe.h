/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does something doubtful in a child process, with a time limit: a driver that hangs or a program
 * that crashes then costs one answer and not the whole report.
 */
#ifndef PLUMB_CLI_RUN_PROBE_H
#define PLUMB_CLI_RUN_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct plumb_probe {
	char output[65536]; /* what it wrote, cut there; terminated */
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

/* Likewise calls FUNCTION in a child; what it prints on standard output is the output. */
bool plumb_probe_call(struct plumb_probe *probe, int (*function)(void *data), void *data,
                      unsigned seconds);

/* The value of the line "KEY=…" of OUTPUT, into TEXT of SIZE bytes; NULL: there is none. */
const char *plumb_probe_value(const char *output, const char *key, char *text, size_t size);

/* Becomes the program ARGV, which is looked for in the absolute folders of PATH only: an empty or
 * relative entry would start what lies in the current folder. Comes back with errno when that
 * cannot be. */
void plumb_probe_become(const char *const *argv);

#endif
