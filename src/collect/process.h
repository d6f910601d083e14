/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's part of the collector: options, the region, its beginning, end and forks. Private
 * to src/collect.
 *
 *   off ──begin──► recording ──end──► over          (a forked child begins at "off")
 *    └────begin──► refused: not followed, or no region could be made
 */
#ifndef PLUMB_COLLECT_PROCESS_H
#define PLUMB_COLLECT_PROCESS_H

#include "collect/collector.h"
#include "region/control.h"

/* What a callback looks at first: the control's word, or NULL while this process does not
 * record. */
struct plumb_process_gate {
	const _Atomic uint64_t *_Atomic word;
	_Atomic int state;
};
#if defined(__x86_64__)
#define PLUMB_PAGE 4096
#else
#define PLUMB_PAGE 65536
#endif
struct plumb_process_gate_page {
	_Alignas(PLUMB_PAGE) struct plumb_process_gate gate;
};
extern struct plumb_process_gate_page plumb_process_gate_page;

/* The control's word; 0 while this process does not record. Its bit 0: recording is on. */
static inline uint64_t
plumb_process_gate_word(void)
{
	const _Atomic uint64_t *word =
		atomic_load_explicit(&plumb_process_gate_page.gate.word, memory_order_relaxed);
	return plumb_likely(word) ? atomic_load_explicit(word, memory_order_relaxed) : 0;
}

/* Counts forks and recordings: what another generation made is a parent's or an earlier
 * recording's. */
extern uint32_t plumb_generation;

/* Makes the region when this process may record and has none yet. True: it records. Counts a
 * process that is not followed. */
bool plumb_process_begin(void);

/* Whether a signal handler may call it: not where it interrupted just that. */
bool plumb_process_may_begin(void);
/* May this process record: was a folder named, or did another tool begin
 * (plumb_process_monitor)? */
bool plumb_process_wanted(void);

/* Begins recording into memory for another tool, with OPTIONS (limit 0: the default), unless a
 * folder was named or a tool began already, whose options hold. Not 0: recording is over. */
int plumb_process_monitor(const struct plumb_collector_options *options);

/*
 * Begins recording as the environment's options say, in a process that `plumb run` did not start.
 * Also after the end of an earlier recording: then everything that belonged to it is forgotten.
 * Returns 0; 1: the process is recorded already; 2: it cannot be (a part of the last recording
 * still runs, or no region could be made, see the refusal in the folder).
 */
int plumb_process_session(void);
/* Ends the recording; the process is wanted no more. */
void plumb_process_session_end(void);

/* Counts one unit of SOURCE that found no arena to count it; 0: nothing is lost. FATE 0: the
 * reason is that of the call before. Any thread. */
void plumb_process_lost(enum plumb_source source, enum plumb_fate fate);

/* Fills in the calibrated costs of empty callbacks. */
void plumb_process_empty_costs(struct plumb_record_overhead *overhead);
void plumb_process_set_empty_cost(enum plumb_callback_kind kind, uint64_t ns_x1000);

/* Reads at most SIZE - 1 bytes of a small file and terminates them. Returns how many, 0 on
 * error. */
size_t plumb_read_file(const char *path, char *buffer, size_t size);

#endif
