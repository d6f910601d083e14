/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/load.h"

#include "import/import.h"
#include "store/store.h"

int
plumb_load(struct plumb_profile *profile, const char *path, bool totals, struct plumb_error *error)
{
	if (plumb_store_is_ours(path))
		return totals ? plumb_store_read_totals(profile, path, error)
		              : plumb_store_read(profile, path, error);
	return plumb_import(&path, 1, NULL, profile, error);
}
