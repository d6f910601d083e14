/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers for libevent. Built on a system with glibc 2.36 or later, libevent calls glibc's
 * arc4random, which older systems lack. libevent calls these instead, so plumb runs there, too.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void);
void arc4random_buf(void *buffer, size_t size);

void
arc4random_buf(void *buffer, size_t size)
{
	unsigned char *at = buffer;

	while (size) {
		ssize_t got = getrandom(at, size, 0);

		if (got < 0 && errno != EINTR)
			abort(); /* a number that can be guessed is worse than none */
		if (got > 0) {
			at += got;
			size -= (size_t)got;
		}
	}
}

uint32_t
arc4random(void)
{
	uint32_t number;

	arc4random_buf(&number, sizeof number);
	return number;
}
