/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of a process that `plumb run` did not start: plumb.profile() loads this library into
 * the running interpreter, sets the variables that `plumb run` would have set, and calls these
 * functions. There may be many recordings, one after the other.
 *
 * The library was not preloaded, so it replaces no functions. It does not see threads' timers,
 * tensor allocations, the program's own use of CUPTI, exits without exit handlers, or the caller of
 * backward().
 */
#include <errno.h>

#include "collect/gpu/gpu.h"
#include "collect/monitor/framework.h"
#include "collect/monitor/nvtx.h"
#include "collect/process.h"

PLUMB_EXPORT int plumb_session_begin(void);
PLUMB_EXPORT int plumb_session_end(void);

static bool begun; /* by us, and not ended; both functions run with the GIL */

/* 0: the process is recorded from now on. Otherwise as plumb_process_session. Also called when a
 * library was loaded meanwhile that may be a framework: then 0 again. */
int
plumb_session_begin(void)
{
	int saved = errno;
	int result = begun ? 0 : plumb_process_session();
	if (!result) {
		begun = true;
		plumb_nvtx_offer();
		plumb_framework_listen(true);
		plumb_framework_offer(NULL);
		plumb_gpu_start(NULL);
	}
	errno = saved;
	return result;
}

/* Ends the recording; the records are complete in their file when it returns. 0: it was
 * recorded. */
int
plumb_session_end(void)
{
	int saved = errno;
	if (!begun)
		return 1;
	begun = false;
	plumb_process_session_end();
	plumb_framework_listen(false);
	errno = saved;
	return 0;
}
