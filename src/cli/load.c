/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/load.h"

#include <string.h>

#include "analyze/windows.h"
#include "cli/demangle.h"
#include "store/store.h"

int
plumb_load_traces(const char *const *paths, uint32_t count, const struct plumb_import_options *how,
                  struct plumb_profile *profile, struct plumb_error *error)
{
	int code = plumb_import(paths, count, how, profile, error);

	if (!code)
		code = plumb_windows_label(profile, error);
	if (code)
		plumb_profile_free(profile);
	return code;
}

int
plumb_load(struct plumb_profile *profile, const char *path, enum plumb_load_part part,
           const struct plumb_window_choice *window, struct plumb_error *error)
{
	const struct plumb_import_options how = { PLUMB_PARENTS_LAUNCH, plumb_demangle };
	int code;

	if (!strcmp(path, "-") || !plumb_store_is_ours(path)) {
		code = plumb_load_traces(&path, 1, &how, profile, error);
	} else {
		code = part == PLUMB_LOAD_ALL       ? plumb_store_read(profile, path, error)
		       : part == PLUMB_LOAD_STREAMS ? plumb_store_read_streams(profile, path, error)
		                                    : plumb_store_read_totals(profile, path, error);
	}
	if (code < 0 || !window || plumb_window_narrow(profile, window, error) == PLUMB_OK)
		return code;
	return plumb_fail_in(error, "%s", path);
}

int
plumb_load_window(const struct plumb_invocation *invocation, struct plumb_window_choice *window)
{
	const char *text = plumb_options_text(invocation->options, "window");
	struct plumb_error error;

	*window = (struct plumb_window_choice){ PLUMB_WINDOW_ALL, 0 };
	if (!text || plumb_window_parse(text, window, &error) == PLUMB_OK)
		return 0;
	return plumb_cli_usage(invocation, "%s: --window %s", invocation->verb->name,
	                       error.message);
}
