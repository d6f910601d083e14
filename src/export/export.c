/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

#include <string.h>

const struct plumb_export_format *const plumb_export_formats[] = {
	&plumb_export_folded, &plumb_export_speedscope, &plumb_export_perfetto,
	&plumb_export_pprof,  &plumb_export_chrome,     &plumb_export_otlp,
	&plumb_export_csv,    &plumb_export_json,       NULL,
};

const struct plumb_export_format *
plumb_export_find(const char *name)
{
	for (const struct plumb_export_format *const *f = plumb_export_formats; *f; f++)
		if (!strcmp((*f)->name, name))
			return *f;
	return NULL;
}
