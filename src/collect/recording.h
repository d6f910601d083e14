/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is recording on? The run's control file says so (region/control.h), or the process's own control
 * if there is no file. Private to src/collect.
 */
#ifndef PLUMB_COLLECT_RECORDING_H
#define PLUMB_COLLECT_RECORDING_H

#include "collect/collector.h"
#include "region/control.h"

extern struct plumb_control *plumb_control; /* never NULL */

/* Maps the control file of the run folder, when the library is loaded. PAUSED: does recording begin
 * paused if there is no file? */
void plumb_control_attach(const char *folder, bool paused);

#endif
