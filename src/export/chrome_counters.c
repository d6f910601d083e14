/* SPDX-License-Identifier: Apache-2.0 */
/* Curves of a Chrome trace: events of the phase C, whose value holds until the next one. */
#include "export/chrome_private.h"
#include "export/names.h"

static void
begin(struct chrome *c, const char *name, int64_t pid, uint32_t process, int64_t time)
{
	plumb_chrome_begin(c, "C");
	plumb_json_key_text(c->json, "name", name);
	plumb_json_key_quantity(c->json, "pid", pid);
	plumb_chrome_time(c, "ts", plumb_timeline_time(&c->timeline, process, time) - c->base);
	plumb_json_key(c->json, "args");
	plumb_json_object(c->json);
}

static void
end(struct chrome *c)
{
	plumb_json_end(c->json);
	plumb_json_end(c->json);
}

static void
put_bytes(struct chrome *c, uint32_t track, const char *what, int64_t time, int64_t bytes)
{
	char name[200];

	if (bytes == PLUMB_UNKNOWN)
		return;
	plumb_export_memory(c->profile, track, what, name, sizeof name);
	begin(c, name, plumb_chrome_pid(c, track), c->profile->tracks[track].process, time);
	plumb_json_key_quantity(c->json, "bytes", bytes);
	end(c);
}

/* The max of each bin, so that no peak is lost, and at the end what was there last. */
static void
put_memory(struct chrome *c)
{
	const struct plumb_memory_series_bin *bins = c->profile->memory_series;
	uint32_t count = c->profile->memory_series_count;

	for (uint32_t i = 0; i < count && !ferror(c->out); i++) {
		const struct plumb_memory_series_bin *bin = &bins[i];
		int64_t until;

		put_bytes(c, bin->track, "allocated", bin->start_ns, bin->max_bytes);
		put_bytes(c, bin->track, "reserved", bin->start_ns, bin->max_reserved_bytes);
		if ((i + 1 < count && bins[i + 1].track == bin->track) ||
		    __builtin_add_overflow(bin->start_ns, bin->width_ns, &until))
			continue;
		put_bytes(c, bin->track, "allocated", until, bin->last_bytes);
		put_bytes(c, bin->track, "reserved", until, bin->last_reserved_bytes);
	}
}

/* The mean of each bin, shares as percentages. */
static void
put_series(struct chrome *c, const struct plumb_counter_series *series, const char *unit,
           double divisor)
{
	int64_t pid = plumb_chrome_gpu(c, series->process, series->device);

	for (uint32_t i = 0; i < series->count && !ferror(c->out); i++) {
		begin(c, series->name, pid, series->process, series->bins[i].start_ns);
		plumb_json_key_number(c->json, unit, series->bins[i].mean / divisor);
		end(c);
	}
}

void
plumb_chrome_counters(struct chrome *c)
{
	struct plumb_counter_series series;
	const char *unit;
	double divisor;

	put_memory(c);
	for (uint32_t at = 0; plumb_export_counter_next(c->profile, &at, &series, &unit, &divisor);)
		put_series(c, &series, unit ? unit : "value", divisor);
}
