/* SPDX-License-Identifier: Apache-2.0 */
/* plumb_python_line as a library, for test_line_tables.py. */
#include "../../src/watch/python_lines.c"
