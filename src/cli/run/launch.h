/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a program with its environment, terminal, process group, signal dispositions and mask as
 * they came to us, and waits for it. Signals that stop the program stop it, not us.
 *
 *	plumb_program_prepare(&program);               // from here on no signal hurts us
 *	if (plumb_program_start(&program, argv, environment, &error))
 *		return program.exit_code;              // 125, 126 or 127
 *	plumb_program_wait(&program, &care);
 *	plumb_program_patience(&program, …);           // Ctrl-C now means us
 */
#ifndef PLUMB_CLI_RUN_LAUNCH_H
#define PLUMB_CLI_RUN_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/words.h"

/* Exit codes of `plumb run` itself, as env(1) and timeout(1) have them. */
enum {
	PLUMB_RUN_FAILED = 125,
	PLUMB_RUN_CANNOT_EXECUTE = 126,
	PLUMB_RUN_NOT_FOUND = 127,
};

struct plumb_program {
	pid_t pid;
	int exit_code; /* 0…255, or 128 + signal */
	int signal;    /* that ended it, or 0 */
	bool dumped;   /* it left a core */
	/* Where the child writes its pid before it becomes the program; NULL: nowhere. Shared
	 * memory. */
	_Atomic int32_t *announce;
	int toggle;       /* a signal that is for us and not for the program, 0: none */
	bool is_silent;   /* the program reads `input` (-1: nothing), and what it prints is lost */
	int input;        /* a descriptor */
	bool interrupted; /* a signal that ends programs came while we waited */
	/* private: what came to us */
	sigset_t mask;
	struct sigaction pipe, child, size;
};

/* Takes care of standard descriptors that are closed, of SIGPIPE, SIGXFSZ and SIGCHLD, and of the
 * signals that a terminal or a supervisor sends. Call it before the first line is printed. */
void plumb_program_prepare(struct plumb_program *program);

/* As plumb_program_prepare, for another program after the FIRST one, which has ended. It is
 * `interrupted` if a signal that ends programs came when no program ran. */
void plumb_program_again(struct plumb_program *program, const struct plumb_program *first);

/* Starts ARGV with ENVIRONMENT. Negative: it cannot be executed. ERROR then says why, and exit_code
 * is 126 or 127, or 125 if there is no process for it. */
int plumb_program_start(struct plumb_program *program, char *const *argv, char *const *environment,
                        struct plumb_error *error) PLUMB_MUST_CHECK;

/* The signal NUMBER is for us: it is blocked here, and plumb_program_wait reports it. Call this
 * before the start. */
void plumb_program_toggle(struct plumb_program *program, int number);

/* What is done while the program runs. */
struct plumb_program_care {
	void (*flush)(void *data);   /* before a signal that ends the program */
	void (*toggled)(void *data); /* program.toggle came; may be NULL without one */
	/* Does what is due; returns how many ms to wait at most, -1: no limit. Or NULL. */
	int (*turn)(void *data);
	void *data;
};

/*
 * Waits until the program has ended. A signal that ends programs (SIGINT, SIGTERM, SIGHUP, SIGQUIT)
 * first makes a call of flush; then it is sent on, unless the terminal sent it, which reaches the
 * program by itself, or the program itself did. SIGUSR1 and SIGUSR2 are sent on.
 */
void plumb_program_wait(struct plumb_program *program, const struct plumb_program_care *care);

/* For use in `flush`: waits up to MILLISECONDS. False: a child of ours changed its state. */
bool plumb_program_pause(unsigned milliseconds);

/* For the time after the program's end. The first SIGINT prints FIRST. The second one prints SECOND
 * and exits as the program did. The texts are whole lines and must stay valid. */
void plumb_program_patience(struct plumb_program *program, const char *first, const char *second);

/* Ends us by the signal NUMBER that ended the program, without a core of our own. Our parent then
 * sees what it would see of the program: a shell ends its loop at Ctrl-C. Returns only if that
 * signal cannot end us (process 1 of a container). */
void plumb_program_die(int number);

/* ---- environment ---- */

struct plumb_environment_settings {
	const char *library, *folder;
	const char *preload_first; /* what must come first in LD_PRELOAD; NULL or empty: nothing */
	const char *tools;         /* further libraries to preload, separated by ":"; or NULL */
	long long limit, flush_ms; /* flush_ms -1: the collector's default */
	enum plumb_gpu_mode gpu;
	bool keep_cupti;
	bool traffic; /* NCCL's operations are recorded */
	const char *const
		*variables;  /* further ones of the collector's, "NAME=VALUE", ends with NULL */
	const char *counter; /* the counter (count/), or NULL */
	const char *const *counter_variables; /* those of the counter, or NULL */
};

/*
 * A copy of ENVIRONMENT (for plumb_environment_free) in which the program meets the collector. What
 * LD_PRELOAD, CUDA_INJECTION64_PATH, NVTX_INJECTION64_PATH and NCCL_PROFILER_PLUGIN hold is kept:
 * the first before ours, the others handed to the collector. NULL: no memory.
 */
char **
plumb_environment_new(char *const *environment, const struct plumb_environment_settings *settings);
/* The plugin of NCCL in ENVIRONMENT, if the collector cannot take its place and hand events on to
 * it: it is of a version that plumb does not speak. Else NULL. */
const char *plumb_environment_nccl_kept(char *const *environment);
/* Does PyTorch write the log of its compiler into the run's folder? False: TORCH_TRACE names
 * another folder, or none. */
bool plumb_environment_own_trace(char *const *environment);
/* The same for a program without the collector, with the counter of SETTINGS alone. */
char **plumb_environment_plain(char *const *environment,
                               const struct plumb_environment_settings *settings);
void plumb_environment_free(char **environment);

#endif
