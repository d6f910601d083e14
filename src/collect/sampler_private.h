/* SPDX-License-Identifier: Apache-2.0 */
/* What the sampler's parts share: sampler.c takes samples, sampler_threads.c has the threads and
 * their timers, shield.c keeps our signal out of the program's sight. */
#ifndef PLUMB_COLLECT_SAMPLER_PRIVATE_H
#define PLUMB_COLLECT_SAMPLER_PRIVATE_H

#include <signal.h>
#include <stdatomic.h>

#include "collect/collector.h"
#include "collect/metric.h"

/* A thread that is sampled. The struct lies at the end of the memory for the thread's signals
 * (handler_stack.h). */
struct plumb_sampler {
	struct plumb_sampler *next, *before; /* of all threads; under the lock */
	void *memory;                        /* for signals */
	void *(*routine)(void *);            /* what the thread was started for */
	void *argument;
	pid_t tid;
	int timer; /* the kernel's number, not glibc's timer_t: timer_create(3) allocates */
	bool has_timer;
	bool at_work;            /* the handler is on its stack */
	_Atomic bool on;         /* a signal may be taken */
	_Atomic int why;         /* enum plumb_fate: why it is not sampled now; 0: it is */
	uint64_t first;          /* CPU time that it had when it was met, ns */
	_Atomic uint64_t last;   /* CPU time that is told, ns */
	_Atomic uint32_t track;  /* of its samples; 0: none was taken yet */
	uint64_t own;            /* CPU time in plumb's own work, not yet told, ns */
	uint64_t missed;         /* samples that fell into it */
	uint64_t short_of_stack; /* samples that there was no stack for */
	long switches;           /* times that it had waited when a tracer was looked for last */
	struct plumb_thread_counters *counters; /* NULL: none */
};

/* The calling thread's; NULL: none. */
extern _Thread_local struct plumb_sampler *plumb_sampler;

/* What our timers' signals carry. */
extern const char plumb_sampler_cookie[1];

/* ---- sampler.c ---- */

void plumb_sampler_handle(int number, siginfo_t *info, void *registers);

/* ---- sampler_threads.c ---- */

/* Begins to sample the calling thread. OWN is its memory, new or from the forked parent. */
void plumb_sampler_thread_begin(struct plumb_sampler *own);
/* New memory for a thread; NULL: there is none. */
struct plumb_sampler *plumb_sampler_new(void);
void plumb_sampler_free(struct plumb_sampler *own);
/* Prepares for threads: makes the key whose destructor ends a thread's sampling. False: it
 * cannot. */
bool plumb_sampler_threads_prepare(void);
/* For a forked child, which has only this thread. */
void plumb_sampler_threads_forked(void);

/* Is another process tracing this thread? */
bool plumb_sampler_is_traced(void);
/* Stops sampling all threads because of WHY. The handler may call it, too. False: another thread is
 * working on the timers, so try again at the next sample. */
bool plumb_sampler_stop(enum plumb_fate why);

/* *NS passed since the last sample of OF; OF and THREAD belong to the calling thread. Records the
 * part that no sample can cover as not sampled, and takes it off *NS. */
void plumb_sampler_tell_late(struct plumb_thread *thread, struct plumb_sampler *of, uint64_t *ns);

/* Is this the process whose threads are sampled? A child of vfork has its memory and is another
 * one. */
bool plumb_sampler_is_own_process(void);

/* Our signal; 0: there is none. */
int plumb_sampler_signal(void);
/* Switches to a signal that nobody handles and that is not in AWAY. False: there is none, and
 * nothing changes. */
bool plumb_sampler_move(const sigset_t *away);
/* No signal is left for us: stops sampling all threads. */
void plumb_sampler_give_up(void);
/* The program changed the calling thread's alternate stack. If there is none now, ours comes back.
 * If it is small, the thread cannot be sampled. */
void plumb_sampler_stack_changed(void);

/* ---- shield.c ---- */

/* Before anything else of the sampler: finds the functions behind ours. */
void plumb_shield_begin(void);
/* For the handler: a signal with our NUMBER came that is not ours. The program gets what it asked
 * for. */
void plumb_shield_foreign(int number);
/* The C library's sigaction. */
int plumb_shield_sigaction(int number, const struct sigaction *action, struct sigaction *old);

#endif
