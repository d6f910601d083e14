/* SPDX-License-Identifier: Apache-2.0 */
#include "import_fuzz.h"

extern const struct plumb_format plumb_format_perfetto;
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes);

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes)
{
	return import_fuzz(&plumb_format_perfetto, data, bytes);
}
