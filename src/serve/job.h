/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that takes long, in a thread of its own, so that other questions are answered meanwhile.
 * Private to serve/.
 *
 *	struct plumb_job *job = plumb_job_start(work, lanes, wake);  // NULL: do it here and now
 *	if (plumb_job_is_done(job))
 *		result = plumb_job_end(job);
 *
 * The work may read what nobody changes meanwhile: an open profile, and values made of it.
 */
#ifndef PLUMB_SERVE_JOB_H
#define PLUMB_SERVE_JOB_H

#include <stdbool.h>

struct plumb_job;

/* Begins WORK of DATA. When it is done, WAKE (an eventfd) can be read. NULL: there is no thread. */
struct plumb_job *plumb_job_start(void *(*work)(const void *data), const void *data, int wake);
bool plumb_job_is_done(const struct plumb_job *job);
/* Waits for the result. JOB is gone then. */
void *plumb_job_end(struct plumb_job *job);

#endif
