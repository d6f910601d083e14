/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch without operator callbacks (`plumb run --mode lean`). PyTorch calls plumb for backward
 * functions and ranges only. What is missing to join backward work with its forward operators comes
 * from two functions of PyTorch that plumb is preloaded in front of: the one that numbers an
 * autograd node when it is made, and the engine's, which runs one.
 */
#ifndef PLUMB_COLLECT_MONITOR_TORCH_LEAN_H
#define PLUMB_COLLECT_MONITOR_TORCH_LEAN_H

#include <stdbool.h>

#include "collect/monitor/torch_abi.h"

/* From now on the two functions tell (or do not tell) what they do. ABI must stay. */
void torch_lean_listen(const struct torch_abi *abi, bool on);

/* Can the mode work in this process: was plumb there before PyTorch? A library that was loaded into
 * a running program was not. */
bool torch_lean_can(const struct torch_abi *abi);

#endif
