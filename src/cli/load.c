/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/load.h"

#include <string.h>

#include "cli/demangle.h"
#include "import/import.h"
#include "store/store.h"

int
plumb_load(struct plumb_profile *profile, const char *path, enum plumb_load_part part,
           struct plumb_error *error)
{
	const struct plumb_import_options how = { PLUMB_PARENTS_LAUNCH, plumb_demangle };
	if (!strcmp(path, "-") || !plumb_store_is_ours(path))
		return plumb_import(&path, 1, &how, profile, error);
	return part == PLUMB_LOAD_ALL       ? plumb_store_read(profile, path, error)
	       : part == PLUMB_LOAD_STREAMS ? plumb_store_read_streams(profile, path, error)
	                                    : plumb_store_read_totals(profile, path, error);
}
