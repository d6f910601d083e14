/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each frame is looked at once for what it marks. Then one walk in preorder: a context has its
 * parent's phase unless its frame marks another that may follow there. A second walk takes copies
 * to the GPU that lie in no phase, with the operators that made them, for data.
 */
#include "analyze/phase.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/framework/framework.h"

const char *const plumb_phase_names[PLUMB_PHASES] = {
	[PLUMB_PHASE_DATA] = "data",           [PLUMB_PHASE_FORWARD] = "forward",
	[PLUMB_PHASE_LOSS] = "loss",           [PLUMB_PHASE_BACKWARD] = "backward",
	[PLUMB_PHASE_OPTIMIZER] = "optimizer", [PLUMB_PHASE_OTHER] = "other",
};

/* What a frame marks: enum plumb_purpose, or one of these. */
enum {
	LOSS_NAME = PLUMB_PURPOSE_PARAMETERS + 1, /* a function of any file that is called a loss */
	COPY_TO_DEVICE,
};

/* The state of a context beyond its phase. */
enum {
	BY_NAME = 1 << 4, /* loss: only because a function is called so */
	NO_DATA = 1 << 5, /* under PLUMB_PURPOSE_PARAMETERS */
	PHASE_MASK = (1 << 4) - 1,
};

/* ---- frames ---- */

/* Whether "loss" is a word of NAME: loss_fn, compute_loss, MyLoss; not gloss or lossless. */
static bool
says_loss(const char *name)
{
	for (const char *at = name; *at; at++) {
		if ((at[0] != 'l' && at[0] != 'L') || strncmp(at + 1, "oss", 3))
			continue;
		if (at[0] == 'l' && at > name && isalpha((unsigned char)at[-1]))
			continue;
		if (at[4] == 'e' && at[5] == 's')
			at += 2;
		if (!islower((unsigned char)at[4]))
			return true;
	}
	return false;
}

/* The name of a framework's own function, or of an operator without its prefix. */
static bool
is_loss_function(const char *name)
{
	return says_loss(name) || strstr(name, "cross_entropy") || !strncmp(name, "kl_div", 6);
}

static unsigned
mark_of_python(const char *file, const char *name)
{
	const char *dot = strrchr(name, '.'), *function = dot ? dot + 1 : name;
	enum plumb_purpose purpose = plumb_framework_phase(file, name);

	if (purpose == PLUMB_PURPOSE_FUNCTIONS)
		return is_loss_function(function) ? PLUMB_PURPOSE_LOSS : PLUMB_PURPOSE_OTHER;
	return purpose == PLUMB_PURPOSE_NONE && says_loss(function) ? LOSS_NAME : purpose;
}

static unsigned
mark_of(const struct plumb_profile *p, const struct plumb_frame *frame)
{
	const char *name = plumb_text(p, frame->name), *file = plumb_text(p, frame->file), *base;

	if (!name)
		return PLUMB_PURPOSE_NONE;
	switch (frame->kind) {
	case PLUMB_FRAME_PYTHON:
		return mark_of_python(file ? file : "", name);
	case PLUMB_FRAME_MODULE:
		return file && plumb_framework_is_loss_class(file) ? PLUMB_PURPOSE_LOSS
		                                                   : PLUMB_PURPOSE_MODULE;
	case PLUMB_FRAME_OPERATOR:
		base = plumb_framework_operator_base(name);
		return base && is_loss_function(base) ? PLUMB_PURPOSE_LOSS : PLUMB_PURPOSE_NONE;
	case PLUMB_FRAME_RANGE:
		return plumb_framework_range(name, strlen(name));
	case PLUMB_FRAME_COPY:
		return (frame->transfer.from == PLUMB_MEMORY_PAGEABLE ||
		        frame->transfer.from == PLUMB_MEMORY_PINNED) &&
		                       frame->transfer.to == PLUMB_MEMORY_DEVICE
		               ? COPY_TO_DEVICE
		               : PLUMB_PURPOSE_NONE;
	default:
		return PLUMB_PURPOSE_NONE;
	}
}

/* ---- contexts ---- */

/* The state under a frame that marks MARK, where the state around it is STATE. */
static unsigned
next_state(unsigned state, unsigned mark)
{
	unsigned phase = state & PHASE_MASK;
	/* Where nothing is known, or only a name told; an optimizer's closure computes a loss. */
	bool open = phase == PLUMB_PHASE_OTHER || phase == PLUMB_PHASE_OPTIMIZER || state & BY_NAME;

	switch (mark) {
	case PLUMB_PURPOSE_BACKWARD:
		return PLUMB_PHASE_BACKWARD;
	case PLUMB_PURPOSE_OPTIMIZER:
	case PLUMB_PURPOSE_OPTIMIZER_STEP:
		return PLUMB_PHASE_OPTIMIZER;
	case PLUMB_PURPOSE_DATA:
		return open ? PLUMB_PHASE_DATA : state;
	case PLUMB_PURPOSE_MODULE:
		return open ? PLUMB_PHASE_FORWARD : state;
	case PLUMB_PURPOSE_LOSS:
		return open || phase == PLUMB_PHASE_FORWARD ? PLUMB_PHASE_LOSS : state;
	case LOSS_NAME:
		return phase == PLUMB_PHASE_OTHER ? PLUMB_PHASE_LOSS | BY_NAME : state;
	case PLUMB_PURPOSE_PARAMETERS:
		return state | NO_DATA;
	default:
		return state;
	}
}

/* Takes the operators around a copy at CONTEXT for data, as far as they are nothing else. */
static void
mark_copy(const struct plumb_profile *p, unsigned char *states, uint32_t context)
{
	for (uint32_t c = context; c; c = p->contexts[c].parent) {
		uint32_t kind = plumb_context_frame(p, c)->kind;

		if (kind == PLUMB_FRAME_PYTHON || kind == PLUMB_FRAME_RANGE ||
		    states[c] != PLUMB_PHASE_OTHER)
			break;
		states[c] = PLUMB_PHASE_DATA;
	}
}

unsigned char *
plumb_phases(const struct plumb_profile *p)
{
	unsigned char *states = malloc(p->contexts_count + 1u);
	unsigned char *marks = malloc(p->frames_count + 1u);

	for (uint32_t f = 0; states && marks && f < p->frames_count; f++)
		marks[f] = (unsigned char)mark_of(p, &p->frames[f]);
	for (uint32_t c = 0; states && marks && c < p->contexts_count; c++) {
		const struct plumb_context *context = &p->contexts[c];
		unsigned around = c ? states[context->parent] : PLUMB_PHASE_OTHER;

		if (context->flags & (PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION))
			around = PLUMB_PHASE_BACKWARD;
		states[c] = (unsigned char)next_state(around, marks[context->frame]);
	}
	for (uint32_t c = 0; states && marks && c < p->contexts_count; c++)
		if (marks[p->contexts[c].frame] == COPY_TO_DEVICE)
			mark_copy(p, states, c);
	for (uint32_t c = 1; states && marks && c < p->contexts_count; c++) {
		/* What else such an operator does is part of it. */
		if (states[c] == PLUMB_PHASE_OTHER &&
		    states[p->contexts[c].parent] == PLUMB_PHASE_DATA)
			states[c] = PLUMB_PHASE_DATA;
	}
	for (uint32_t c = 0; states && marks && c < p->contexts_count; c++)
		states[c] &= PHASE_MASK;
	if (!marks) {
		free(states);
		states = NULL;
	}
	free(marks);
	return states;
}
