/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells whose events a JSON file of Chrome trace events has. It looks at the events, wherever they
 * are in the file, and reads as far as it must. FILE can then still be read from its beginning.
 */
#ifndef PLUMB_IMPORT_CHROME_KIND_H
#define PLUMB_IMPORT_CHROME_KIND_H

#include "import/import.h"

enum plumb_chrome_kind {
	PLUMB_CHROME_NONE, /* it has no events, or is no JSON */
	PLUMB_CHROME_KINETO,
	PLUMB_CHROME_OTHER,
};

enum plumb_chrome_kind plumb_chrome_kind(const struct plumb_import_file *file);

#endif
