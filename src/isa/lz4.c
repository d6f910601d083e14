/* SPDX-License-Identifier: Apache-2.0 */
#include "isa/lz4.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { SHORTEST_COPY = 4, LONG = 15 };

struct reader {
	const uint8_t *at, *end;
};

/* A length of four bits goes on in further bytes if all of its bits are set. False: cut off. */
static bool
read_length(struct reader *in, size_t *length)
{
	if (*length != LONG)
		return true;
	for (uint8_t more = UINT8_MAX; more == UINT8_MAX; *length += more) {
		if (in->at == in->end)
			return false;
		more = *in->at++;
	}
	return true;
}

/* Copies LENGTH bytes from BACK bytes before TO. Where both overlap, bytes repeat. */
static void
copy_back(uint8_t *to, size_t back, size_t length)
{
	const uint8_t *from = to - back;

	if (back >= length)
		memcpy(to, from, length);
	else
		for (size_t i = 0; i < length; i++)
			to[i] = from[i];
}

size_t
plumb_lz4_unpack(const void *block, size_t size, void *to, size_t room)
{
	struct reader in = { .at = block, .end = (const uint8_t *)block + size };
	uint8_t *out = to;
	size_t done = 0;

	while (in.at < in.end) {
		size_t literals = *in.at >> 4, copied = *in.at & LONG, back;

		in.at++;
		if (!read_length(&in, &literals) || literals > (size_t)(in.end - in.at) ||
		    literals > room - done)
			return 0;
		memcpy(out + done, in.at, literals);
		in.at += literals;
		done += literals;
		if (in.at == in.end)
			return done; /* the last sequence has literals only */
		if (in.end - in.at < 2)
			return 0;
		back = in.at[0] | in.at[1] << 8;
		in.at += 2;
		if (!read_length(&in, &copied))
			return 0;
		copied += SHORTEST_COPY;
		if (!back || back > done || copied > room - done)
			return 0;
		copy_back(out + done, back, copied);
		done += copied;
	}
	return 0; /* a block ends with literals */
}
