/* SPDX-License-Identifier: Apache-2.0 */
/* What `plumb run` itself writes into the run folder: the program's process and the environment. */
#ifndef PLUMB_CLI_FACTS_H
#define PLUMB_CLI_FACTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "region/writer.h"

struct plumb_facts {
	struct plumb_region region;
	struct plumb_arena arena;
	struct plumb_record_process *process; /* NULL: not started yet, or no room */
};

struct plumb_facts_program {
	uint64_t start_monotonic; /* ns, just before it was started */
	pid_t pid, ppid;
	char *const *argv;
	const char *executable;
	const char *output;
	const char *user_code;   /* or NULL */
	bool no_command;         /* the command line is not to be stored */
	bool no_gpu;             /* GPU work is not to be recorded */
	const char *torch_trace; /* folder of the compiler's logs that the user named, or NULL */
};

/* Creates the region PATH. Errors: PLUMB_ESYSTEM. */
int plumb_facts_create(struct plumb_facts *facts, const char *path,
                       struct plumb_error *error) PLUMB_MUST_CHECK;
/* The program was started. */
void plumb_facts_started(struct plumb_facts *facts, const struct plumb_facts_program *program);
/* The program has ended with EXIT_CODE. -1: it goes on, and only the recording has ended. LINKS:
 * how GPUs are linked is written too. Also closes the region. */
void plumb_facts_ended(struct plumb_facts *facts, int exit_code, bool links);

/* The rank that a launcher gave us: the first of RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID and
 * PMI_RANK that is a number; -1: none. */
int plumb_rank(void);
/* How many ranks the job has; -1: the launcher does not say. */
int plumb_ranks_count(void);

#endif
