/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of plumb's own that serves a GPU runtime. No signal reaches it. Stopping leaves the
 * last work to it, and waits no longer than asked: a vendor's library that hangs cannot hold up the
 * exit.
 *
 *	while (!plumb_service_is_stopping(&service)) {
 *		uint32_t seen = plumb_service_wakes(&service);
 *		… work …
 *		plumb_service_sleep(&service, seen, TICK_NS);
 *	}
 *	… the last work …
 *	plumb_service_ended(&service);
 */
#ifndef PLUMB_COLLECT_GPU_SERVICE_H
#define PLUMB_COLLECT_GPU_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Zero it to start. Private but for the functions below. */
struct plumb_service {
	pid_t process;          /* whose it is; 0: nobody's */
	_Atomic uint32_t wakes; /* changes when there is something to do */
	_Atomic uint32_t ends;  /* changes when the thread has ended */
	_Atomic bool stopping, ended;
	bool serving; /* the thread was started */
};

/* It belongs to the calling process from now on, or, in a forked child, to nobody. */
void plumb_service_adopt(struct plumb_service *service);
void plumb_service_forked(struct plumb_service *service);
/* Does it belong to the calling process? */
bool plumb_service_is_own(const struct plumb_service *service);

/* Runs SERVE in the thread. WHAT is not done if it cannot start, as the error's text says. */
int plumb_service_start(struct plumb_service *service, void *(*serve)(void *data), const char *what,
                        struct plumb_error *error) PLUMB_MUST_CHECK;
/* There is something to do. It keeps errno. */
void plumb_service_wake(struct plumb_service *service);
/* Waits at most LIMIT_NS for the end of the thread. False: it was stopped before, or belongs to
 * another process. */
bool plumb_service_stop(struct plumb_service *service, uint64_t limit_ns);
/* The next start may come. False: the thread has not ended yet. */
bool plumb_service_renew(struct plumb_service *service);

/* For the thread. */
bool plumb_service_is_stopping(const struct plumb_service *service);
uint32_t plumb_service_wakes(const struct plumb_service *service);
/* Sleeps until a wake after SEEN, or NS, unless it is to stop. */
void plumb_service_sleep(struct plumb_service *service, uint32_t seen, uint64_t ns);
void plumb_service_ended(struct plumb_service *service);

#endif
