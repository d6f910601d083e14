/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line tables of CPython's code objects: co_lnotab (3.9), co_linetable of PEP 626 (3.10) and of PEP
 * 657 (3.11 and newer), as PyCode_Addr2Line reads them.
 */
#ifndef PLUMB_WATCH_PYTHON_LINES_H
#define PLUMB_WATCH_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

/*
 * The line of the instruction LASTI (bytes from the first one) in code that begins at FIRST_LINE
 * and has the TABLE of BYTES bytes. MINOR is 11 for 3.11. 0: it has no line. TABLE may hold
 * anything.
 */
uint32_t plumb_python_line(int minor, const unsigned char *table, size_t bytes, int32_t first_line,
                           int32_t lasti);

#endif
