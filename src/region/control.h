/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control file of a run folder: one page that `plumb run` and every process of the run map
 * shared. It says whether recording is on (one word, so that a callback needs one load), for how
 * long it was, and counts processes that make no region of their own to be counted in.
 *
 * Anybody may turn recording on and off at any time: `plumb run` by the clock or by a signal, the
 * program by plumb.start() and plumb.stop(). It holds for all processes of the run on this host.
 */
#ifndef PLUMB_REGION_CONTROL_H
#define PLUMB_REGION_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define PLUMB_CONTROL_NAME "control"
#define PLUMB_CONTROL_MAGIC "PLUMBCT\n"
#define PLUMB_CONTROL_VERSION 1u
#define PLUMB_CONTROL_SIZE 4096u

/* Bit 0 of the word: recording is on. The others: when that began (CLOCK_MONOTONIC ns), so that no
 * two periods of recording have the same word. */
#define PLUMB_CONTROL_ON UINT64_C(1)

struct plumb_control {
	char magic[8];
	uint32_t version;
	uint32_t size;
	_Atomic uint64_t word;
	_Atomic uint64_t recorded_ns;  /* of all periods that have ended */
	_Atomic uint32_t flips;        /* times it was turned on or off */
	_Atomic uint32_t began_paused; /* 1: the run began with recording off */
	_Atomic uint32_t not_followed; /* processes that would have recorded, see --follow */
	_Atomic uint32_t
		forked; /* children forked in the middle of our own work: they cannot record */
	_Atomic int32_t program; /* pid of the program that `plumb run` started; 0 not yet */
	/* Programs that followed processes executed, and that could not get the collector: */
	_Atomic uint32_t unloadable; /* static, set-user-ID, musl, another machine */
	_Atomic uint32_t
		unreachable;   /* their user may not use the run folder or the collector, … */
	_Atomic uint32_t user; /* … the newest such user */
};
_Static_assert(sizeof(struct plumb_control) <= PLUMB_CONTROL_SIZE, "one page");

/* Fills in a control that nobody uses yet. */
void plumb_control_init(struct plumb_control *control, bool paused, uint64_t now);

/* Makes the file PATH, which must not exist, and maps it. Errors: PLUMB_ESYSTEM. */
int plumb_control_create(struct plumb_control **control, const char *path, bool paused,
                         struct plumb_error *error) PLUMB_MUST_CHECK;
/* The program is about to be started, and nobody has the file yet: recording that is on counts from
 * now, which is returned (CLOCK_MONOTONIC ns). */
uint64_t plumb_control_begin(struct plumb_control *control);
/* Maps the file PATH. NULL if there is no such file or it is not a control file. SHARED: writes
 * reach the other processes; else the map is a private copy. No descriptor stays open. */
struct plumb_control *plumb_control_map(const char *path, bool shared);
void plumb_control_unmap(struct plumb_control *control);

/* Turns recording on or off at the time NOW. False: it was so already. Any thread of any
 * process. */
bool plumb_control_start(struct plumb_control *control, uint64_t now);
bool plumb_control_stop(struct plumb_control *control, uint64_t now);

static inline bool
plumb_control_is_on(const struct plumb_control *control)
{
	return atomic_load_explicit(&control->word, memory_order_relaxed) & PLUMB_CONTROL_ON;
}

/* When the period of recording that goes on began; 0: recording is off. */
static inline uint64_t
plumb_control_since(const struct plumb_control *control)
{
	uint64_t word = atomic_load_explicit(&control->word, memory_order_relaxed);
	return word & PLUMB_CONTROL_ON ? word & ~PLUMB_CONTROL_ON : 0;
}

/* Was recording off at any time? */
static inline bool
plumb_control_was_off(const struct plumb_control *control)
{
	return atomic_load_explicit(&control->began_paused, memory_order_relaxed) ||
	       atomic_load_explicit(&control->flips, memory_order_relaxed);
}

/* How long recording was on until NOW. */
uint64_t plumb_control_recorded(const struct plumb_control *control, uint64_t now);

#endif
