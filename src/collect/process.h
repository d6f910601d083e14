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

/* A callback looks here first: at the control's word, or NULL while this process does not
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

/* Counts forks and recordings. What another generation made belongs to a parent or to an earlier
 * recording. */
extern uint32_t plumb_generation;

/* Makes the region if this process may record and has none yet. True: it records. If the process is
 * not followed, it is counted. */
bool plumb_process_begin(void);

/* May a signal handler call plumb_process_begin? Not if the signal interrupted that very call. */
bool plumb_process_may_begin(void);
/* May this process record? Yes, if it has a run folder or another tool began recording
 * (plumb_process_monitor). */
bool plumb_process_wanted(void);

/* Sets plumb_layers: which layers were asked for, and whether a Python interpreter runs here now. A
 * signal handler may call it. */
void plumb_process_choose_layers(void);
/* --mode lean cannot work with the framework of this process. */
void plumb_process_leave_lean(void);

/* Begins recording into memory for another tool, with OPTIONS (limit 0: the default), unless a
 * folder was named or a tool began already, whose options hold. Not 0: recording is over. */
int plumb_process_monitor(const struct plumb_collector_options *options);

/*
 * Begins recording in a process that `plumb run` did not start, with the options of the
 * environment. It also works after the end of an earlier recording, and then forgets all of that.
 * Returns 0; 1: the process records already; 2: it cannot record, because a part of the last
 * recording still runs or there is no region (see the refusal in the folder).
 */
int plumb_process_session(void);
/* Ends the recording; after it the process may not record any more. */
void plumb_process_session_end(void);

/* Counts one lost unit of SOURCE when there is no arena to count it in; 0: nothing is lost. FATE 0:
 * the reason of the previous call. Any thread may call it. */
void plumb_process_lost(enum plumb_source source, enum plumb_fate fate);

/* Fills in the calibrated costs of empty callbacks. */
void plumb_process_empty_costs(struct plumb_record_overhead *overhead);
void plumb_process_set_empty_cost(enum plumb_callback_kind kind, uint64_t ns_x1000);

/* Reads at most SIZE - 1 bytes of a small file and terminates them. Returns how many, 0 on
 * error. */
size_t plumb_read_file(const char *path, char *buffer, size_t size);

#endif
