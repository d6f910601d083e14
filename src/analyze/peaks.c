/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense peaks, of one GPU (MI250X: both of its dies), as two public collections have them from the
 * vendors' data sheets; fp16 is as fast as bf16 where a GPU has both. The first row whose words are
 * all in a device's name counts, so that a variant stands before its family. One that differs and
 * is in no source has no numbers, rather than those of its family.
 */
#include "analyze/peaks.h"

#include <stddef.h>
#include <string.h>

#define ML "stas00/ml-engineering, pytorch/torchtitan"
#define XSP "XSP paper"
#define V ML "; fp16 not confirmed"
#define BY ML "; bandwidth not confirmed"

const struct plumb_peak plumb_peaks[] = {
	/* name, { fp32, tf32, fp16, bf16, fp8 }, terabytes */
	{ "H100 PCIe", { 51, 378, 756, 756, 1513 }, 2, ML },
	{ "H100 NVL", { 0, 0, 0, 0, 0 }, 0, NULL },
	{ "H100", { 67, 494, 989, 989, 1979 }, 3.35, ML },
	{ "H200 NVL", { 0, 0, 0, 0, 0 }, 0, NULL },
	{ "H200", { 67, 494, 989, 989, 1979 }, 4.8, ML },
	{ "H20", { 0, 0, 148, 148, 0 }, 4, BY },
	{ "GB200", { 80, 1250, 2500, 2500, 5000 }, 8, ML },
	{ "B200", { 80, 1125, 2250, 2250, 4500 }, 8, ML },
	{ "A100 40GB", { 19.5, 156, 312, 312, 0 }, 0, ML },
	{ "A100", { 19.5, 156, 312, 312, 0 }, 2, ML },
	{ "L40S", { 91.6, 183, 362, 362, 733 }, 0.86, ML },
	{ "V100 PCIE", { 0, 0, 0, 0, 0 }, 0, NULL },
	{ "V100", { 15.7, 0, 125, 0, 0 }, 0.9, V },
	{ "P100", { 9.3, 0, 0, 0, 0 }, 0.732, XSP },
	{ "Tesla P4", { 5.5, 0, 0, 0, 0 }, 0.192, XSP },
	{ "M60", { 4.8, 0, 0, 0, 0 }, 0.16, XSP },
	{ "MI250X", { 47.9, 0, 383, 383, 0 }, 3.28, ML },
	{ "MI300X", { 163, 654, 1307, 1307, 2610 }, 5.3, ML },
	{ "MI325X", { 163, 654, 1300, 1300, 2610 }, 6, ML },
	{ "MI355X", { 157, 0, 2500, 2500, 5000 }, 8, ML },
	{ 0 },
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
	for (const struct plumb_peak *peak = plumb_peaks; name && peak->name; peak++)
		if (has_words(name, peak->name))
			return peak;
	return NULL;
}
