/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs forward and backward in the ranges of torch.autograd.profiler.emit_nvtx: "aten::mm, seq =
 * 3, op_id = 7" and "MmBackward0, seq = 3, op_id = 90". The number is the one of the next node
 * that the thread will add to the autograd graph. So the last forward range with this number made
 * the node that the backward range runs.
 */
#ifndef PLUMB_IMPORT_SEQUENCE_H
#define PLUMB_IMPORT_SEQUENCE_H

#include "base/vec.h"
#include "import/trace.h"

struct plumb_sequence {
	int64_t number, start_ns;
	uint32_t process, track;
	bool backward;
};

/* Zero it to start. */
struct plumb_sequences {
	PLUMB_VEC(struct plumb_sequence) items;
};

/* A range with its whole NAME; one without a number is nothing. Negative: memory is out. */
int plumb_sequences_note(struct plumb_sequences *sequences, uint32_t process, uint32_t track,
                         int64_t start_ns, struct plumb_slice name);
/* All ranges are noted: links them, and frees SEQUENCES. */
void plumb_sequences_link(struct plumb_sequences *sequences, struct plumb_trace *trace);

#endif
