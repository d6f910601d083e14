/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense peaks as stas00/ml-engineering and pytorch/torchtitan collect them from the vendors' data sheets; P100,
 * P4 and M60 from the XSP paper. The first row whose words are all in a device's name counts, so that a
 * variant stands before its family.
 */
#include "analyze/peaks.h"

#include <stddef.h>
#include <string.h>

static const struct plumb_peak peaks[] = {
	{ "H100 PCIe", { 51, 378, 756, 1513 }, 2.0 }, { "H100", { 67, 494, 989, 1979 }, 3.35 },
	{ "H200", { 67, 494, 989, 1979 }, 4.8 },      { "H20", { 0, 0, 148, 0 }, 4.0 },
	{ "GB200", { 80, 1250, 2500, 5000 }, 8.0 },   { "B200", { 80, 1125, 2250, 4500 }, 8.0 },
	{ "A100", { 19.5, 156, 312, 0 }, 2.0 },       { "L40S", { 91.6, 183, 362, 733 }, 0.86 },
	{ "V100", { 15.7, 0, 125, 0 }, 0.90 }, /* 125: fp16 */
	{ "P100", { 9.3, 0, 0, 0 }, 0.732 },          { "Tesla P4", { 5.5, 0, 0, 0 }, 0.192 },
	{ "M60", { 4.8, 0, 0, 0 }, 0.160 },           { "MI250X", { 47.9, 0, 383, 0 }, 3.28 },
	{ "MI300X", { 163, 654, 1307, 2610 }, 5.3 },  { "MI325X", { 163, 654, 1300, 2610 }, 6.0 },
	{ "MI355X", { 157, 0, 2500, 5000 }, 8.0 },
};

/* Is each of WORDS, parted by spaces, a whole word in NAME, up to a hyphen? */
static int
has_words(const char *name, const char *words)
{
	while (*words) {
		size_t length = strcspn(words, " ");
		const char *at = name;
		for (;; at++) {
			while (*at && strncmp(at, words, length) != 0)
				at++;
			if (!*at)
				return 0;
			char before = at > name ? at[-1] : ' ', after = at[length];
			if ((before == ' ' || before == '-') &&
			    (!after || after == ' ' || after == '-'))
				break;
		}
		words += length;
		words += *words == ' ';
	}
	return 1;
}

const struct plumb_peak *
plumb_peak_of(const char *name)
{
	for (size_t i = 0; name && i < sizeof peaks / sizeof *peaks; i++)
		if (has_words(name, peaks[i].name))
			return &peaks[i];
	return NULL;
}
