/* SPDX-License-Identifier: Apache-2.0 */
/* The words of PyTorch's profiler in Chrome traces. Private to export/. */
#ifndef PLUMB_EXPORT_CHROME_NAMES_H
#define PLUMB_EXPORT_CHROME_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* "copy pinned→device" as PyTorch calls it: "Memcpy HtoD (Pinned -> Device)". */
void plumb_chrome_transfer(const char *name, char *text, size_t size);
/* The category of a frame of KIND: "cpu_op", "kernel", … */
const char *plumb_chrome_category(uint32_t kind, const char *name);

#endif
