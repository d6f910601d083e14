/* SPDX-License-Identifier: Apache-2.0 */
/* Every path that the memo knows is walked all the same, and has to be the same. See memoed.c. */
#ifndef MEMOED_H
#define MEMOED_H

#include <stdint.h>

struct plumb_stack_registers;
struct plumb_stack_bounds;

#ifdef __cplusplus
extern "C" {
#endif
/* The numbers of paths that were known, and of those among them that were wrong. */
extern unsigned long memoed_known, memoed_wrong;
/* For whoever took FROM, while its frame is there: with several stops. */
void
memoed_check(const struct plumb_stack_registers *from, const struct plumb_stack_bounds *bounds);
#ifdef __cplusplus
}
#endif

#endif
