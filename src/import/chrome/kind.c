/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose Chrome trace events a file has, where its beginning does not say: metadata may fill
 * megabytes before the first event. Events are read until one of them tells.
 *
 * Some categories are PyTorch's alone. Others are words that any tool may use ("Kernel",
 * "Runtime"): those tell by their arguments, or when the file has no other slices.
 */
#include "import/chrome/kind.h"

#include <string.h>

#include "import/chrome/event.h"

#define FOREIGN_MAX 100000 /* slices of other tools: what comes after so many does not count */

struct look {
	struct plumb_chrome chrome;
	int64_t events, vague, foreign;
	bool argued; /* the event has an argument that PyTorch writes */
	bool kineto;
};

static void
begin_event(struct plumb_chrome *chrome)
{
	((struct look *)chrome->own)->argued = false;
}

static bool
is_one_of(struct plumb_slice text, const char *const *words)
{
	for (; *words; words++)
		if (text.at && plumb_slice_is(text, *words))
			return true;
	return false;
}

#define ARGUED PLUMB_PULL_AT(struct look, argued)
static const struct plumb_pull_field argument_fields[] = {
	PLUMB_PULL_FIELD("External id", SEEN, ARGUED),
	PLUMB_PULL_FIELD("external id", SEEN, ARGUED),
	PLUMB_PULL_FIELD("Ev Idx", SEEN, ARGUED),
	PLUMB_PULL_FIELD("correlation", SEEN, ARGUED),
	PLUMB_PULL_FIELD("stream", SEEN, ARGUED),
	PLUMB_PULL_FIELD("device", SEEN, ARGUED),
	PLUMB_PULL_FIELD("Device", SEEN, ARGUED),
	PLUMB_PULL_FIELD("grid", SEEN, ARGUED),
	PLUMB_PULL_FIELD("cbid", SEEN, ARGUED),
	PLUMB_PULL_FIELD("Trace name", SEEN, ARGUED),
	PLUMB_PULL_FIELD("Input Dims", SEEN, ARGUED),
	{ 0 },
};

static bool
is_kineto(struct look *look, const struct plumb_chrome_event *event)
{
	static const char *const own[] = {
		"cpu_op",       "python_function",     "user_annotation",    "gpu_user_annotation",
		"gpu_memcpy",   "gpu_memset",          "cuda_runtime",       "cuda_driver",
		"cuda_sync",    "hip_runtime",         "xpu_runtime",        "xpu_driver",
		"mtia_runtime", "privateuse1_runtime", "privateuse1_driver", NULL,
	};
	static const char *const vague[] = { "kernel", "Kernel", "Operator", "Runtime",
		                             "Memcpy", "Memset", NULL };
	static const char *const silent[] = { "Trace", "overhead", "cpu_instant_event", NULL };
	static const char *const old[] = { "CPU functions", "CUDA functions", NULL };

	if (is_one_of(event->category, own) ||
	    (!event->category.at && is_one_of(event->pid_text, old)))
		return true;
	if (is_one_of(event->category, vague)) {
		look->vague++;
		return look->argued ||
		       (event->tid_text.at && plumb_slice_begins(event->tid_text, "stream "));
	}
	look->foreign += !is_one_of(event->category, silent);
	return false;
}

static void
take_event(struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	struct look *look = chrome->own;

	look->events += event->phase != 0;
	if (!event->phase || !strchr("XBb", event->phase))
		return;
	look->kineto = is_kineto(look, event);
	if (look->kineto || look->foreign >= FOREIGN_MAX)
		plumb_pull_reject(&chrome->pull, "enough was seen");
}

enum plumb_chrome_kind
plumb_chrome_kind(const struct plumb_import_file *file)
{
	static const struct plumb_chrome_dialect dialect = {
		.begin = begin_event,
		.arguments = argument_fields,
		.take = take_event,
		.unclosed = true,
	};
	struct look look = { .chrome = { .dialect = &dialect } };
	struct plumb_import_file again = *file;
	struct plumb_error error = { 0 };
	bool second;

	if (!plumb_chrome_is_json(file))
		return PLUMB_CHROME_NONE;
	/* What cannot be opened again is kept while it is read. */
	second = !plumb_import_again(file, &again.input, &error);
	if (!second) {
		again.input = file->input;
		plumb_input_remember(again.input);
	}
	look.chrome.own = &look;
	/* Damage is told by who reads it all. */
	if (plumb_chrome_read(&look.chrome, &again, &error) < 0)
		error.code = 0;
	plumb_chrome_free(&look.chrome);
	if (second)
		plumb_input_close(again.input);
	else
		plumb_input_rewind(again.input);
	if (look.kineto || (look.vague && !look.foreign))
		return PLUMB_CHROME_KINETO;
	return look.events ? PLUMB_CHROME_OTHER : PLUMB_CHROME_NONE;
}
