/* SPDX-License-Identifier: Apache-2.0 */
/* Private to chrome_samples.c. */
#ifndef PLUMB_IMPORT_CHROME_V8_H
#define PLUMB_IMPORT_CHROME_V8_H

#include "import/chrome/samples.h"

/* All is read: V8's samples are handed over. */
void plumb_chrome_v8_end(struct plumb_chrome_samples *samples);

#endif
