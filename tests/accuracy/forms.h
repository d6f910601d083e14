/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of the instructions of programs, with examples of each, for decode.py. */
#ifndef PLUMB_ACCURACY_FORMS_H
#define PLUMB_ACCURACY_FORMS_H

#include <stddef.h>

/* Prints, of the modules of COUNT files:
 *
 *	header N ARCHITECTURE HEX	the ELF header of a module, once for each architecture
 *	form N LOW HIGH SEEN		an example of a form of the header N, at most MOST for each
 *					form; SEEN: how many instructions have this form
 *	total INSTRUCTIONS FORMS
 */
int forms_print(unsigned most, char **files, int count);

#endif
