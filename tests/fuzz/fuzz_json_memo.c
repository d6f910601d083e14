/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a list of events: with memos it says what it says without. */
#include "json_memo_check.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes);

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes)
{
	uint32_t known;
	const char *fault = memo_check((const char *)data, bytes, &known);
	if (fault) {
		fprintf(stderr, "not equal: %s\n", fault);
		abort();
	}
	return 0;
}
