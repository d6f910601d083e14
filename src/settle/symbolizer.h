/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads code objects in a child process, so that a file that makes libelf or libdw crash, hang or
 * eat memory costs its own names and nothing else, and so that all that they hold is gone at the
 * end. The child is started with the first question and again after it was lost.
 *
 *	struct plumb_symbolizer *symbolizer = plumb_symbolizer_new();
 *	uint32_t object = plumb_symbolizer_object(symbolizer, &wanted);
 *	state = plumb_symbolizer_look(symbolizer, object, address, &place);
 *
 * The program must not have threads when a question is asked.
 */
#ifndef PLUMB_SETTLE_SYMBOLIZER_H
#define PLUMB_SETTLE_SYMBOLIZER_H

#include "settle/code.h"

struct plumb_symbolizer;

/* NULL: no memory. */
struct plumb_symbolizer *plumb_symbolizer_new(void);
void plumb_symbolizer_free(struct plumb_symbolizer *symbolizer);

/* A number for the object, whose texts are copied; UINT32_MAX: no memory. */
uint32_t plumb_symbolizer_object(struct plumb_symbolizer *symbolizer,
                                 const struct plumb_code_wanted *wanted);

/* What is at ADDRESS of the object. PLACE is filled (empty unless the state is PLUMB_CODE_FINE);
 * its texts hold until the next question. */
enum plumb_code_state plumb_symbolizer_look(struct plumb_symbolizer *symbolizer, uint32_t object,
                                            uint64_t address, struct plumb_code_place *place);

/* The same, and which of a framework's operators the function there runs. */
enum plumb_code_state
plumb_symbolizer_operator(struct plumb_symbolizer *symbolizer, uint32_t object, uint64_t address,
                          struct plumb_code_place *place);

/* What is known about an object after a question: its size (0: unknown), and whether its debug
 * information came from debuginfod. */
uint64_t plumb_symbolizer_bytes(const struct plumb_symbolizer *symbolizer, uint32_t object);
bool plumb_symbolizer_fetched(const struct plumb_symbolizer *symbolizer, uint32_t object);

#endif
