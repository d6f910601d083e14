/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes for the hash map: of bytes, and of numbers put together one by one. Not stable between
 * versions, not for files, not against an attacker.
 */
#ifndef PLUMB_BASE_HASH_H
#define PLUMB_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Mixes VALUE into HASH; start with any number. */
static inline uint64_t
plumb_hash_mix(uint64_t hash, uint64_t value)
{
	unsigned __int128 product =
		(unsigned __int128)(hash ^ value ^ 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t
plumb_hash_bytes(const void *data, size_t bytes)
{
	const unsigned char *at = data;
	uint64_t hash = bytes;
	uint64_t word;
	for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
		memcpy(&word, at, sizeof word);
		hash = plumb_hash_mix(hash, word);
	}
	word = 0;
	memcpy(&word, at, bytes);
	return plumb_hash_mix(plumb_hash_mix(hash, word), 1);
}

#endif
