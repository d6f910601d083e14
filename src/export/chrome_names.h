/* SPDX-License-Identifier: Apache-2.0 */
/* The words of PyTorch's profiler in Chrome traces. Private to export/. */
#ifndef PLUMB_EXPORT_CHROME_NAMES_H
#define PLUMB_EXPORT_CHROME_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/words.h"

/* A copy or set as PyTorch calls it: "Memcpy HtoD (Pinned -> Device)"; NAME where TRANSFER says
 * nothing. */
void
plumb_chrome_transfer(struct plumb_transfer transfer, const char *name, char *text, size_t size);
/* The category of a frame of KIND: "cpu_op", "kernel", … */
const char *plumb_chrome_category(uint32_t kind, const char *name);

#endif
