/* SPDX-License-Identifier: Apache-2.0 */
#include "store/blob.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define LEVEL 3

void *
plumb_blob_pack(const struct plumb_blob *blob, size_t *length)
{
	size_t room = blob->bytes ? blob->bytes - 1 : 0; /* as much as is worth it */
	void *packed = room ? malloc(room) : NULL;
	if (!packed)
		return NULL;
	*length = ZSTD_compress(packed, room, blob->data, blob->bytes, LEVEL);
	if (!ZSTD_isError(*length))
		return packed;
	free(packed);
	return NULL;
}

bool
plumb_blob_unpack(void *data, size_t bytes, const void *stored, size_t length)
{
	if (length != bytes)
		return ZSTD_decompress(data, bytes, stored, length) == bytes;
	if (bytes)
		memcpy(data, stored, bytes);
	return true;
}
