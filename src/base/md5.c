/* SPDX-License-Identifier: Apache-2.0 */
#include "base/md5.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 64

/* The first 32 bits of the fractional part of |sin n|, for n from 1 (in radians). */
static const uint32_t sines[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
	0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
	0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
	0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
	0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
	0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
	0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
	0xeb86d391,
};

static uint32_t
read_word(const unsigned char *at)
{
	return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* The function of a round (0 to 3), and which word of the block step STEP takes. */
static uint32_t
mix(unsigned step, const uint32_t s[4], unsigned *word)
{
	switch (step / 16) {
	case 0:
		*word = step;
		return (s[1] & s[2]) | (~s[1] & s[3]);
	case 1:
		*word = (5 * step + 1) % 16;
		return (s[1] & s[3]) | (s[2] & ~s[3]);
	case 2:
		*word = (3 * step + 5) % 16;
		return s[1] ^ s[2] ^ s[3];
	default:
		*word = 7 * step % 16;
		return s[2] ^ (s[1] | ~s[3]);
	}
}

/* Takes one block of 64 bytes into STATE. */
static void
take_block(uint32_t state[4], const unsigned char *block)
{
	static const unsigned char turns[4][4] = {
		{ 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 }
	};
	uint32_t s[4];

	memcpy(s, state, sizeof s);
	for (unsigned step = 0; step < 64; step++) {
		unsigned word, by = turns[step / 16][step % 4];
		uint32_t sum = s[0] + mix(step, s, &word) + sines[step];

		sum += read_word(block + 4 * (size_t)word);
		s[0] = s[3];
		s[3] = s[2];
		s[2] = s[1];
		s[1] += sum << by | sum >> (32 - by);
	}
	for (int i = 0; i < 4; i++)
		state[i] += s[i];
}

void
plumb_md5(const void *data, size_t bytes, char digits[PLUMB_MD5_DIGITS + 1])
{
	uint32_t state[4] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };
	const unsigned char *at = data;
	unsigned char end[2 * BLOCK] = { 0 };
	size_t left = bytes, padded;

	for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
		take_block(state, at);
	if (left)
		memcpy(end, at, left);
	end[left] = 0x80;
	padded = left + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
	for (int i = 0; i < 8; i++)
		end[padded - 8 + (size_t)i] = (unsigned char)((uint64_t)bytes << 3 >> 8 * i);
	for (size_t i = 0; i < padded; i += BLOCK)
		take_block(state, end + i);
	for (int i = 0; i < 16; i++)
		snprintf(digits + 2 * i, 3, "%02x", (unsigned)(state[i / 4] >> 8 * (i % 4)) & 0xff);
}
