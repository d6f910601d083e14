/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool on plumb/monitor.h that writes every event as one line of JSON into the file RECORDER_OUT,
 * for tests/e2e/test_monitor.py. RECORDER_LAYERS: the layers of the paths; RECORDER_FRAMES: the
 * most frames.
 */
#include <inttypes.h>
#include <plumb/monitor.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t layers = PLUMB_MONITOR_ALL_LAYERS;
static size_t most = 128;

static void
text(const char *key, const char *value)
{
	fprintf(out, ", \"%s\": ", key);
	if (!value) {
		fputs("null", out);
		return;
	}
	fputc('"', out);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			fputc('\\', out);
		fputc(*value, out);
	}
	fputc('"', out);
}

static void
number(const char *key, uint64_t value)
{
	if (value == PLUMB_MONITOR_UNKNOWN)
		fprintf(out, ", \"%s\": null", key);
	else
		fprintf(out, ", \"%s\": %" PRIu64, key, value);
}

static void
on_event(const struct plumb_monitor_event *event, void *data)
{
	struct plumb_monitor_frame frames[128];
	size_t count = plumb_monitor_path(layers, frames, sizeof *frames, most);

	pthread_mutex_lock(&lock);
	fprintf(out, "{\"kind\": %u, \"phase\": %u, \"data\": %d", event->kind, event->phase,
	        *(int *)data);
	text("name", event->name);
	text("kernel", event->kernel);
	text("shapes", event->shapes);
	fprintf(out,
	        ", \"thread\": %u, \"flags\": %u, \"device\": %d, \"sequence\": %" PRId64
	        ", \"result\": %" PRId64 ", \"time\": %" PRIu64 ", \"parameters\": %d",
	        event->thread, event->flags, event->device, event->sequence, event->result,
	        event->time_ns, event->parameters != NULL);
	number("correlation", event->correlation);
	number("address", event->address);
	number("bytes", event->bytes);
	fprintf(out, ", \"frames\": %zu, \"path\": [", count);
	for (size_t i = 0; i < count && i < most; i++) {
		fprintf(out, "%s{\"kind\": %u, \"line\": %u, \"flags\": %u", i ? ", " : "",
		        frames[i].kind, frames[i].line, frames[i].flags);
		text("name", frames[i].name);
		text("file", frames[i].file);
		fputc('}', out);
	}
	fputs("]}\n", out);
	pthread_mutex_unlock(&lock);
}

static __attribute__((constructor)) void
begin(void)
{
	static int seven = 7;
	struct plumb_monitor_options options = { .size = sizeof options };
	const char *path = getenv("RECORDER_OUT"), *value;

	if ((value = getenv("RECORDER_RECORD")))
		options.record = (uint32_t)strtoul(value, NULL, 0);
	if ((value = getenv("RECORDER_LAYERS")))
		layers = (uint32_t)strtoul(value, NULL, 0);
	if ((value = getenv("RECORDER_FRAMES")))
		most = strtoul(value, NULL, 0);
	unsetenv("RECORDER_OUT"); /* not for what the program starts */
	if (!path || !(out = fopen(path, "w")) || plumb_monitor_init(&options) ||
	    plumb_monitor_version() < PLUMB_MONITOR_VERSION ||
	    plumb_monitor_register((1u << PLUMB_MONITOR_KINDS) - 1, on_event, &seven) < 1)
		return;
}

static __attribute__((destructor)) void
end(void)
{
	if (!out)
		return;
	plumb_monitor_finalize();
	fclose(out);
}
