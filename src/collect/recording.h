/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether recording is on, as this process sees it: the run's control file (region/control.h), or
 * where there is none a control of the process's own. Private to src/collect.
 */
#ifndef PLUMB_COLLECT_RECORDING_H
#define PLUMB_COLLECT_RECORDING_H

#include "collect/collector.h"
#include "region/control.h"

extern struct plumb_control *plumb_control; /* never NULL */

/* At load: maps the control file of the run folder. PAUSED: how recording begins without one. */
void plumb_control_attach(const char *folder, bool paused);

#endif
