/* SPDX-License-Identifier: Apache-2.0 */
#include "model/display.h"

#include <stdlib.h>
#include <string.h>

#include "model/builder.h"

/* Frames that are called by symbols of compiled code. */
static bool
has_symbol(uint32_t kind)
{
	return kind == PLUMB_FRAME_KERNEL || kind == PLUMB_FRAME_NATIVE ||
	       kind == PLUMB_FRAME_INLINE || kind == PLUMB_FRAME_DEVICE_FUNCTION;
}

void
plumb_builder_demangle(struct plumb_builder *builder, char *(*demangle)(const char *name))
{
	uint32_t count = plumb_builder_frame_count(builder);

	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_frame *frame = plumb_builder_get_frame(builder, i);
		const char *name = plumb_builder_get_text(
			builder, frame->display == PLUMB_NONE ? frame->name : frame->display);
		char *text = name && has_symbol(frame->kind) ? demangle(name) : NULL;
		if (text)
			plumb_builder_frame_display(builder, i, plumb_builder_text(builder, text));
		free(text);
	}
}

size_t
plumb_name_without_parameters(const char *name)
{
	size_t length = strlen(name), at;
	int open = 0;

	/* "f(int) const", "f(int) [clone .cold]" */
	for (at = length; at && name[at - 1] != ')'; at--)
		if (name[at - 1] == '>' || name[at - 1] == ':')
			return length;
	/* "main.(*Field).Relax" of Go, "f(int)::{lambda(float)#1}" */
	if (name[at] && name[at] != ' ')
		return length;
	for (; at; at--) {
		open += (name[at - 1] == ')') - (name[at - 1] == '(');
		if (!open)
			break;
	}
	if (at < 2 || name[at - 2] == ' ' || name[at - 2] == ':' ||
	    (at > 8 && !strncmp(name + at - 9, "operator", 8)))
		return length;
	return at - 1;
}
