/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large binary content in a file: one zstd frame if that is shorter than the content, else the
 * content itself. The length of the content is in the column beside it, so a reader knows which it
 * is. Private to store/.
 */
#ifndef PLUMB_STORE_BLOB_H
#define PLUMB_STORE_BLOB_H

#include "model/profile.h"

/* What to store instead of BLOB, malloced; NULL: the content itself. */
void *plumb_blob_pack(const struct plumb_blob *blob, size_t *length);

/* Unpacks STORED into DATA, which has room for BYTES. False: its length is not BYTES. */
bool plumb_blob_unpack(void *data, size_t bytes, const void *stored, size_t length);

#endif
