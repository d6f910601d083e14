/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The phase of a training step that each context belongs to, told from its path; docs/report.md has
 * the rule in words.
 *
 *	unsigned char *phases = plumb_phases(profile);
 *	if (phases && phases[context] == PLUMB_PHASE_BACKWARD) …
 *	free(phases);
 */
#ifndef PLUMB_ANALYZE_PHASE_H
#define PLUMB_ANALYZE_PHASE_H

#include "model/profile.h"

enum plumb_phase {
	PLUMB_PHASE_DATA, /* loading, and copies of what was loaded to the GPU */
	PLUMB_PHASE_FORWARD,
	PLUMB_PHASE_LOSS,
	PLUMB_PHASE_BACKWARD,  /* with what is computed again for it */
	PLUMB_PHASE_OPTIMIZER, /* with zeroing, clipping and scaling of gradients */
	PLUMB_PHASE_OTHER,
	PLUMB_PHASES
};
extern const char *const plumb_phase_names[PLUMB_PHASES];

/* enum plumb_phase of every context, malloced. NULL: no memory. */
unsigned char *plumb_phases(const struct plumb_profile *profile);

#endif
