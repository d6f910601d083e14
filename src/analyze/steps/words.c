/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/words.h"

#include <stdio.h>
#include <string.h>

#include "analyze/study.h"

#define BY_SAMPLES " (CPU samples)"
#define GAP_SHARE 0.05 /* from here on a gap is told by itself */

/* "train.py:41" of a Python frame, the short name of another. Returns TEXT of SIZE bytes. */
static char *
print_frame(const struct plumb_profile *profile, uint32_t frame, char *text, size_t size)
{
	const struct plumb_study study = { .profile = profile };

	if (frame >= profile->frames_count)
		snprintf(text, size, "?");
	else if (profile->frames[frame].kind == PLUMB_FRAME_PYTHON &&
	         plumb_text(profile, profile->frames[frame].file))
		plumb_study_line(&study, frame, text, size);
	else if (profile->frames[frame].kind == PLUMB_FRAME_KERNEL)
		plumb_study_short(&study, frame, text, size);
	else
		snprintf(text, size, "%s", plumb_frame_label(profile, frame));
	return text;
}

/* The same of a place, which may be what divides a line: "encoder.layer.*, 12 layers". */
static char *
print_place(const struct plumb_moments *line, uint32_t frame, char *text, size_t size)
{
	const struct plumb_profile *p = line->profile;

	if (frame < p->frames_count && plumb_division_is_part(line->division, frame) &&
	    (p->frames[frame].kind == PLUMB_FRAME_MODULE ||
	     p->frames[frame].kind == PLUMB_FRAME_PYTHON))
		return plumb_division_text(p, line->division, frame, false, text, size);
	return print_frame(p, frame, text, size);
}

static char *
name_gap(const struct plumb_moments *line, const struct plumb_step_key *key, char *text,
         size_t size)
{
	char before[420], after[420], range[200];
	int used = snprintf(text, size, "nothing recorded");

	if (key->frame != PLUMB_NONE)
		used += snprintf(text + used, size - (size_t)used, " within %s",
		                 print_frame(line->profile, key->frame, range, sizeof range));
	if (used < 0 || (size_t)used >= size)
		return text;
	print_place(line, key->before, before, sizeof before);
	print_place(line, key->after, after, sizeof after);
	if (key->before != PLUMB_NONE && key->before == key->after)
		snprintf(text + used, size - (size_t)used, ", at %s", before);
	else if (key->before != PLUMB_NONE && key->after != PLUMB_NONE)
		snprintf(text + used, size - (size_t)used, ", between %s and %s", before, after);
	else if (key->before != PLUMB_NONE)
		snprintf(text + used, size - (size_t)used, ", after %s", before);
	else if (key->after != PLUMB_NONE)
		snprintf(text + used, size - (size_t)used, ", before %s", after);
	return text;
}

uint32_t
plumb_step_line(const struct plumb_step_key *key)
{
	return key->line == PLUMB_NONE && key->sort == PLUMB_STEP_SAMPLE ? key->frame : key->line;
}

/* The function that a sample met. */
static const char *
sampled_name(const struct plumb_profile *p, uint32_t frame, char *text, size_t size)
{
	return p->frames[frame].kind == PLUMB_FRAME_PYTHON ? plumb_frame_label(p, frame)
	                                                   : print_frame(p, frame, text, size);
}

/* "gemm at gemm.c:12" */
static char *
name_native(const struct plumb_profile *p, const struct plumb_frame *frame, const char *name,
            char *text, size_t size)
{
	const char *file = plumb_text(p, frame->source_file), *slash = strrchr(file, '/');

	file = slash ? slash + 1 : file;
	if (frame->source_line)
		snprintf(text, size, "%s at %s:%u", name, file, frame->source_line);
	else
		snprintf(text, size, "%s at %s", name, file);
	return text;
}

char *
plumb_step_name(const struct plumb_moments *line, const struct plumb_step_key *key, char *text,
                size_t size)
{
	const struct plumb_profile *p = line->profile;
	char name[200], where[420];

	if (key->sort == PLUMB_STEP_GAP)
		return name_gap(line, key, text, size);
	if (key->sort == PLUMB_STEP_IDLE)
		snprintf(text, size, "no work on the device");
	else if (key->sort == PLUMB_STEP_SAMPLE && key->line != PLUMB_NONE)
		snprintf(text, size, "%s at %s", sampled_name(p, key->frame, name, sizeof name),
		         print_place(line, key->line, where, sizeof where));
	else if (key->line != PLUMB_NONE && key->line != key->frame)
		snprintf(text, size, "%s at %s", print_frame(p, key->frame, name, sizeof name),
		         print_place(line, key->line, where, sizeof where));
	else if (p->frames[key->frame].kind == PLUMB_FRAME_PYTHON)
		snprintf(text, size, "%s at %s", plumb_frame_label(p, key->frame),
		         key->line == key->frame
		                 ? print_place(line, key->frame, where, sizeof where)
		                 : print_frame(p, key->frame, where, sizeof where));
	else if (key->sort == PLUMB_STEP_SAMPLE && plumb_text(p, p->frames[key->frame].source_file))
		name_native(p, &p->frames[key->frame],
		            print_frame(p, key->frame, name, sizeof name), text, size);
	else if (key->before != PLUMB_NONE)
		snprintf(text, size, "%s in %s", print_frame(p, key->frame, name, sizeof name),
		         print_frame(p, key->before, where, sizeof where));
	else
		print_frame(p, key->frame, text, size);
	if (key->sort == PLUMB_STEP_SAMPLE && strlen(text) + sizeof BY_SAMPLES <= size)
		strcat(text, BY_SAMPLES);
	return text;
}

char *
plumb_step_about(const struct plumb_moments *line, const struct plumb_step_key *key, char *text,
                 size_t size)
{
	struct plumb_moments undivided = *line;

	undivided.division = NULL;
	return plumb_step_name(&undivided, key, text, size);
}

uint32_t
plumb_step_rows_show(const struct plumb_moments *line, const struct plumb_step_rows *rows,
                     uint32_t most, struct plumb_step_shown shown[PLUMB_STEP_SHOWN])
{
	struct plumb_step_shown gaps = { PLUMB_SHOWN_GAPS, PLUMB_NONE, 0, 0 };
	struct plumb_step_shown others = { PLUMB_SHOWN_OTHERS, PLUMB_NONE, 0, 0 };
	uint32_t count = 0;
	double all = 0;

	for (uint32_t r = 0; r < rows->count; r++)
		all += (double)rows->items[r].ns;
	for (uint32_t r = 0; r < rows->count; r++) {
		const struct plumb_step_row *row = &rows->items[r];
		bool gap = line->keys.items[row->key].sort == PLUMB_STEP_GAP;

		if (gap && (count == most || (double)row->ns < GAP_SHARE * all))
			gaps.ns += row->ns;
		else if (count == most)
			others.ns += row->ns;
		else if (row->ns > 0)
			shown[count++] = (struct plumb_step_shown){ PLUMB_SHOWN_KEY, row->key,
				                                    row->ns, row->count };
	}
	if (gaps.ns > 0)
		shown[count++] = gaps;
	if (others.ns > 0)
		shown[count++] = others;
	return count;
}
