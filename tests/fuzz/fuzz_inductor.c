/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a Python file that Inductor generated, and as PyTorch's structured log. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "settle/inductor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
as_code(const uint8_t *data, size_t size)
{
	struct plumb_inductor_code code;
	char *text = malloc(size + 1);

	if (!text)
		return;
	memcpy(text, data, size);
	if (!plumb_inductor_code_parse(&code, text, size))
		abort();
	for (uint32_t i = 0; i < code.calls.count; i++) {
		const struct plumb_inductor_call *call = &code.calls.items[i];
		const struct plumb_inductor_definition *definition =
			plumb_inductor_definition_of(&code, call->kernel);
		/* What is promised to every caller. */
		if (plumb_inductor_call_at(&code, call->line) != call ||
		    (call->sources.count &&
		     call->sources.from + call->sources.count > code.texts.count) ||
		    (call->operators.count &&
		     call->operators.from + call->operators.count > code.texts.count) ||
		    (definition && definition->nodes.count &&
		     definition->nodes.from + definition->nodes.count > code.texts.count))
			abort();
	}
	plumb_inductor_code_free(&code);
}

static void
as_log(const uint8_t *data, size_t size)
{
	struct plumb_inductor_log log = { 0 };
	const int64_t pid = 10921;
	char path[64];
	int fd = memfd_create("log", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (!plumb_inductor_log_read(&log, path, &pid, 1))
		abort();
	for (uint32_t i = 0; i < log.graphs.count; i++) {
		const struct plumb_inductor_graph *graph = &log.graphs.items[i];
		if (!graph->path ||
		    (uint64_t)graph->before.from + graph->before.count > log.nodes.count ||
		    (uint64_t)graph->after.from + graph->after.count > log.nodes.count ||
		    (uint64_t)graph->kernels.from + graph->kernels.count > log.entries.count ||
		    (uint64_t)graph->stacks.from + graph->stacks.count > log.entries.count)
			abort();
	}
	for (uint32_t i = 0; i < log.entries.count; i++)
		if ((uint64_t)log.entries.items[i].texts.from + log.entries.items[i].texts.count >
		    log.texts.count)
			abort();
	plumb_inductor_log_free(&log);
	close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	as_code(data, size);
	as_log(data, size);
	return 0;
}
