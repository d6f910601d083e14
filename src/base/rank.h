/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank of a job the launcher made this process: the launchers' variables. */
#ifndef PLUMB_BASE_RANK_H
#define PLUMB_BASE_RANK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PLUMB_RANK_VARIABLES { "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK", NULL }
#define PLUMB_LOCAL_RANK_VARIABLES                                                                 \
	{ "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID", NULL }

/* The first of NAMES (ends with NULL) that is set to a number; -1: none. */
static inline int32_t
plumb_rank_from(const char *const *names)
{
	for (; *names; names++) {
		const char *text = getenv(*names);
		if (text && *text && strspn(text, "0123456789") == strlen(text) &&
		    strlen(text) < 10)
			return atoi(text);
	}
	return -1;
}

#endif
