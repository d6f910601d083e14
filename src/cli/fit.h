/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes names short that stand below each other, so that they can still be told apart: what many
 * share is cut, and where they differ is kept.
 *
 *	Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x32x512_MI16x16x1_SN_LDSB1_…
 *	Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1_SN_LDSB1_…
 *
 * become in 30 columns
 *
 *	Cijk_Alik…_MT16x32x512_MI16x1…
 *	Cijk_Alik…_MT32x32x256_MI16x1…
 */
#ifndef PLUMB_CLI_FIT_H
#define PLUMB_CLI_FIT_H

#include <stdbool.h>
#include <stddef.h>

#define PLUMB_FIT_LEAST 12 /* columns; a name is not made shorter */

struct plumb_fit_name {
	const char *name;    /* shown if it fits */
	const char *compact; /* what is shortened if it does not; NULL: the name */
	char *shown;         /* the result, malloced */
};

/*
 * Fills in `shown` of COUNT names, each in at most WIDTH columns. Different names are shown
 * differently; if nothing else tells them apart, by a number at the end ("#2"). The same names are
 * shown alike. False: no memory; free what is there.
 */
bool plumb_fit_names(struct plumb_fit_name *names, size_t count, int width);

#endif
