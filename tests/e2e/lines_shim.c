/* SPDX-License-Identifier: Apache-2.0 */
/* plumb_python_line as a library, for test_waiting.py. */
#include "../../src/watch/python_lines.c"
