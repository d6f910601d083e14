/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/job.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>

struct plumb_job {
	pthread_t thread;
	void *(*work)(const void *data);
	const void *data;
	void *result;
	int wake;
	atomic_bool done;
};

static void *
run(void *data)
{
	struct plumb_job *job = data;

	job->result = job->work(job->data);
	atomic_store(&job->done, true);
	eventfd_write(job->wake, 1);
	return NULL;
}

struct plumb_job *
plumb_job_start(void *(*work)(const void *data), const void *data, int wake)
{
	struct plumb_job *job = calloc(1, sizeof *job);
	sigset_t all, before;
	int code;

	if (!job)
		return NULL;
	*job = (struct plumb_job){ .work = work, .data = data, .wake = wake };
	/* Signals are for the thread that serves. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&job->thread, NULL, run, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!code)
		return job;
	free(job);
	return NULL;
}

bool
plumb_job_is_done(const struct plumb_job *job)
{
	return atomic_load(&job->done);
}

void *
plumb_job_end(struct plumb_job *job)
{
	void *result;

	pthread_join(job->thread, NULL);
	result = job->result;
	free(job);
	return result;
}
