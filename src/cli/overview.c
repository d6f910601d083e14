/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/overview.h"

#include <inttypes.h>
#include <string.h>

#include "base/format.h"
#include "cli/table.h"

#define LABEL "  %-10s"

static void
print_run(const struct plumb_profile *p, FILE *out)
{
	char text[PLUMB_FORMAT_SIZE];
	const char *command = plumb_text(p, p->run.command);

	fprintf(out, LABEL, "command");
	plumb_text_print(out, command ? command : PLUMB_DASH);
	if (p->run.exit_code == PLUMB_UNKNOWN)
		fputs("  (exit code unknown)\n", out);
	else
		fprintf(out, "  (exit code %" PRId64 ")\n", p->run.exit_code);
	fprintf(out, LABEL "%s, ", "wall", plumb_format_time(text, p->run.wall_ns));
	if (p->run.overhead_ns == PLUMB_UNKNOWN) {
		fputs("plumb's own cost unknown", out);
	} else if (p->run.wall_ns > 0) {
		fprintf(out, "plumb's own cost at most %s",
		        plumb_format_share(text, (double)p->run.overhead_ns,
		                           (double)p->run.wall_ns));
		fprintf(out, " (%s on the busiest thread)",
		        plumb_format_time(text, p->run.overhead_ns));
	} else {
		fprintf(out, "plumb's own cost %s", plumb_format_time(text, p->run.overhead_ns));
	}
	if (p->processes_count > 1)
		fprintf(out, "; %" PRIu32 " processes", p->processes_count);
	fputc('\n', out);
}

static void
print_device(const struct plumb_profile *p, const struct plumb_device *d, FILE *out)
{
	char text[PLUMB_FORMAT_SIZE];
	const char *name = plumb_text(p, d->name);
	int64_t span = d->first_ns == PLUMB_UNKNOWN || d->last_ns == PLUMB_UNKNOWN
	                       ? PLUMB_UNKNOWN
	                       : d->last_ns - d->first_ns;
	bool known = d->busy_ns != PLUMB_UNKNOWN && span != PLUMB_UNKNOWN;

	fprintf(out, LABEL, "device");
	plumb_text_print(out, name ? name : "unnamed");
	if (d->ordinal != PLUMB_UNKNOWN)
		fprintf(out, " #%" PRId64, d->ordinal);
	if (d->rank != PLUMB_UNKNOWN)
		fprintf(out, " (rank %" PRId64 ")", d->rank);
	fprintf(out, ": busy %s",
	        known ? plumb_format_share(text, (double)d->busy_ns, (double)span) : PLUMB_DASH);
	fprintf(out, " of %s; kernels ", plumb_format_time(text, span));
	fprintf(out, "%s", plumb_format_count(text, d->kernels));
	fprintf(out, " in %s; copies ", plumb_format_time(text, d->kernel_ns));
	fprintf(out, "%s", plumb_format_count(text, d->copies));
	fprintf(out, " in %s", plumb_format_time(text, d->copy_ns));
	fprintf(out, " (%s)\n", plumb_format_bytes(text, d->copy_bytes));
}

/* What part of the collector was off, or gave way, says so under a key that ends like this. */
static bool
is_note(const char *key)
{
	const char *dot = key ? strrchr(key, '.') : NULL;
	return dot && (!strcmp(dot, ".off") || !strcmp(dot, ".kept") || !strcmp(dot, ".gap"));
}

static void
print_notes(const struct plumb_profile *p, FILE *out)
{
	uint32_t printed[PLUMB_OVERVIEW_NOTES], count = 0;

	for (uint32_t i = 0; i < p->environment_count && count < PLUMB_OVERVIEW_NOTES; i++) {
		const struct plumb_environment_row *row = &p->environment[i];
		bool said = false;

		if (!is_note(plumb_text(p, row->key)) || !plumb_text(p, row->value))
			continue;
		for (uint32_t k = 0; k < count; k++) /* by another process */
			said = said || p->environment[printed[k]].value == row->value;
		if (said)
			continue;
		printed[count++] = i;
		fprintf(out, LABEL, "note");
		plumb_text_print(out, plumb_text(p, row->value));
		fputc('\n', out);
	}
}

void
plumb_overview_print(const struct plumb_profile *profile, FILE *out, int most_devices)
{
	uint32_t most = most_devices > 0 ? (uint32_t)most_devices : 0;

	print_run(profile, out);
	if (!profile->devices_count)
		fprintf(out, LABEL "none was used\n", "device");
	for (uint32_t i = 0; i < profile->devices_count && i < most; i++)
		print_device(profile, &profile->devices[i], out);
	if (profile->devices_count > most)
		fprintf(out, LABEL "and %" PRIu32 " more (plumb report --json)\n", "",
		        profile->devices_count - most);
	print_notes(profile, out);
}
