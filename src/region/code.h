/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules of GPU code in a run folder: a file for each, beside the regions, once for all processes
 * and whatever loaded it. The name is the hash of the content:
 *
 *   0123456789abcdef.cubin
 *
 * A file is complete or not there: it is written under another name and renamed. Used inside other
 * people's programs, as writer.h.
 */
#ifndef PLUMB_REGION_CODE_H
#define PLUMB_REGION_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/words.h"

#define PLUMB_CODE_SUFFIX ".cubin"
#define PLUMB_CODE_NAME 32                /* bytes of a name, its zero counted */
#define PLUMB_CODE_MOST ((size_t)1 << 30) /* bytes of one module */

/* The hash of SIZE bytes. It tells modules of one run folder apart, and is no proof of content. */
uint64_t plumb_code_hash(const void *image, size_t size);
/* The file's name into NAME. Returns NAME. */
const char *plumb_code_name(uint64_t hash, char name[PLUMB_CODE_NAME]);
/* Is there a file of HASH in FOLDER? */
bool plumb_code_has(const char *folder, uint64_t hash);
/*
 * Writes the image of HASH into FOLDER. ATTRIBUTED: it is there (*MADE: this call made it);
 * NO_SPACE, or CODE_NOT_WRITTEN: it could not be. No signal is raised, also where the size of
 * files is limited.
 */
enum plumb_fate
plumb_code_write(const char *folder, uint64_t hash, const void *image, size_t size, bool *made);

#endif
