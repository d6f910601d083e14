/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin that was there before plumb's: everything is handed on to it, in the newest version of
 * the interface that both have. Events of a newer version are put into an older one as NCCL itself
 * would do it. What it did not ask for, it does not get.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/comm/comm.h"
#include "collect/comm/nccl.h"

#define PLUGIN_VARIABLE "NCCL_PROFILER_PLUGIN"
#define DEFAULT_PLUGIN "libnccl-profiler.so" /* what NCCL loads if nothing is said */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned asked_version;         /* what the library speaks */
static _Atomic unsigned their_version; /* 0: there is no plugin, or none that can be called */
static void *their_table;              /* struct plumb_nccl_profiler_… */
static int their_mask;                 /* the plugin may change it at any time */

/* ---- the variable ---- */

void
plumb_comm_describe_plugin(struct plumb_arena *arena)
{
	char line[4500];
	Dl_info own;
	const char *plugin = getenv(PLUGIN_VARIABLE);
	if (plugin && *plugin && dladdr((void *)&once, &own) && own.dli_fname &&
	    !strcmp(plugin, own.dli_fname))
		return;
	if (plugin && *plugin)
		snprintf(line, sizeof line,
		         "operations of NCCL are not recorded: " PLUGIN_VARIABLE
		         " names %s, which plumb cannot hand events on to; unset it",
		         plugin);
	else
		snprintf(line, sizeof line,
		         "operations of NCCL are not recorded: " PLUGIN_VARIABLE " is not set");
	plumb_arena_environment(arena, "nccl.plugin.off", line);
}

/* ---- loading ---- */

static void *
open_named(const char *name)
{
	char path[4096];
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (library || strchr(name, '/'))
		return library;
	snprintf(path, sizeof path, "libnccl-profiler-%s.so", name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* One line about what became of the plugin. */
static void
say(const char *what)
{
	char line[4500];
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU);
	if (!thread)
		return;
	snprintf(line, sizeof line, "%s: %s", getenv(PLUMB_ENV_CHAIN_NCCL), what);
	plumb_environment(thread, "nccl.plugin", line);
	plumb_leave(thread);
}

static void
load(void)
{
	const char *name = getenv(PLUMB_ENV_CHAIN_NCCL);
	bool named = name && *name;
	Dl_info own, found;
	void *library = open_named(named ? name : DEFAULT_PLUGIN);
	char symbol[32];
	for (unsigned version = asked_version; library && version >= 3; version--) {
		snprintf(symbol, sizeof symbol, "ncclProfiler_v%u", version);
		void *table = plumb_real_dlsym(library, symbol);
		if (!table)
			continue;
		if (dladdr(table, &found) && dladdr((void *)&once, &own) &&
		    found.dli_fbase == own.dli_fbase)
			return; /* it is plumb itself */
		their_table = table;
		atomic_store(&their_version, version);
		if (named)
			say("plumb hands the events of NCCL on to this plugin");
		return;
	}
	if (named)
		say(library ? "not called: the plugin has no version of the interface that plumb "
		              "can hand events on to (3 to 5)"
		            : "not called: the plugin cannot be loaded");
}

bool
plumb_nccl_chain_init(const struct plumb_nccl_init *told, void **theirs, int *mask)
{
	plumb_nccl_result result = 1;
	*theirs = NULL;
	asked_version = told->version;
	pthread_once(&once, load);
	unsigned version = atomic_load(&their_version);
	const struct plumb_nccl_profiler_3 *three = their_table;
	const struct plumb_nccl_profiler_4 *four = their_table;
	const struct plumb_nccl_profiler_5 *five = their_table;
	if (version == 3)
		result = three->init(theirs, &their_mask);
	else if (version == 4)
		result = four->init(theirs, &their_mask, told->name, told->id, told->nodes,
		                    told->ranks, told->rank, told->log);
	else if (version == 5)
		result = five->init(theirs, told->id, &their_mask, told->name, told->nodes,
		                    told->ranks, told->rank, told->log);
	if (result) {
		*theirs = NULL;
		return false;
	}
	*mask |= their_mask;
	return true;
}

int
plumb_nccl_chain_mask(void)
{
	return atomic_load_explicit(&their_version, memory_order_relaxed)
	               ? __atomic_load_n(&their_mask, __ATOMIC_RELAXED)
	               : 0;
}

/* ---- versions ---- */

static void *
handle_of(void *handle)
{
	return plumb_nccl_is_own(handle) ? NULL : handle;
}

static void
four_of(const struct plumb_nccl_event_5 *event, struct plumb_nccl_event_4 *older)
{
	*older = (struct plumb_nccl_event_4){
		.kind = (uint8_t)event->kind,
		.parent = event->parent,
		.rank = event->rank,
	};
	if (event->kind == PLUMB_NCCL_COLLECTIVE) {
		memcpy(&older->collective, &event->collective, sizeof older->collective);
		older->parent = event->collective.group;
	} else if (event->kind == PLUMB_NCCL_P2P) {
		older->p2p.function = event->p2p.function;
		older->p2p.buffer = event->p2p.buffer;
		older->p2p.datatype = event->p2p.datatype;
		older->p2p.count = event->p2p.count;
		older->p2p.peer = event->p2p.peer;
		older->p2p.channels = event->p2p.channels;
		older->parent = event->p2p.group;
	} else {
		memcpy(&older->proxy_op, &event->proxy_op, sizeof older->proxy_op);
	}
}

static void
three_of(const struct plumb_nccl_event_4 *event, struct plumb_nccl_event_3 *older)
{
	*older = (struct plumb_nccl_event_3){
		.kind = event->kind,
		.parent = event->parent,
		.rank = event->rank,
	};
	if (event->kind == PLUMB_NCCL_COLLECTIVE) {
		older->collective.sequence = event->collective.sequence;
		older->collective.function = event->collective.function;
		older->collective.from = event->collective.from;
		older->collective.to = event->collective.to;
		older->collective.count = event->collective.count;
		older->collective.root = event->collective.root;
		older->collective.datatype = event->collective.datatype;
		older->collective.channels = event->collective.channels;
		older->collective.warps = event->collective.warps;
		older->collective.algorithm = event->collective.algorithm;
		older->collective.protocol = event->collective.protocol;
	} else if (event->kind == PLUMB_NCCL_P2P) {
		older->p2p.function = event->p2p.function;
		older->p2p.buffer = event->p2p.buffer;
		older->p2p.datatype = event->p2p.datatype;
		older->p2p.count = event->p2p.count;
		older->p2p.peer = event->p2p.peer;
	} else if (event->kind == PLUMB_NCCL_KERNEL_CHANNEL) {
		older->channel = event->channel.channel;
	} else {
		memcpy(&older->proxy_op, &event->proxy_op, sizeof older->proxy_op);
	}
}

_Static_assert(offsetof(struct plumb_nccl_collective, protocol) ==
                       offsetof(struct plumb_nccl_event_4, collective.protocol) -
                               offsetof(struct plumb_nccl_event_4, collective),
               "a collective of version 4 is the beginning of one of version 5");

/* ---- events ---- */

/* Does a plugin that asks for MASK get an event of KIND from the library? It also gets what the
 * wanted ones are in. */
static bool
is_asked(uint64_t kind, int mask)
{
	enum {
		STEPS = PLUMB_NCCL_PROXY_OP | PLUMB_NCCL_PROXY_STEP | PLUMB_NCCL_KERNEL_CHANNEL |
		        PLUMB_NCCL_NET_PLUGIN,
		OPERATIONS = PLUMB_NCCL_COLLECTIVE | PLUMB_NCCL_P2P | STEPS,
	};
	switch (kind) {
	case PLUMB_NCCL_GROUP:
		return mask & (PLUMB_NCCL_GROUP | OPERATIONS);
	case PLUMB_NCCL_COLLECTIVE:
		return mask & (PLUMB_NCCL_COLLECTIVE | STEPS);
	case PLUMB_NCCL_P2P:
		return mask & (PLUMB_NCCL_P2P | STEPS);
	case PLUMB_NCCL_GROUP_CALL:
		return mask & (PLUMB_NCCL_GROUP | OPERATIONS | PLUMB_NCCL_GROUP_CALL |
		               PLUMB_NCCL_COLLECTIVE_CALL | PLUMB_NCCL_P2P_CALL |
		               PLUMB_NCCL_KERNEL_LAUNCH);
	case PLUMB_NCCL_COLLECTIVE_CALL:
		return mask & (PLUMB_NCCL_COLLECTIVE_CALL | PLUMB_NCCL_COLLECTIVE | STEPS);
	case PLUMB_NCCL_P2P_CALL:
		return mask & (PLUMB_NCCL_P2P_CALL | PLUMB_NCCL_P2P | STEPS);
	default: /* plumb asks for none of these */
		return true;
	}
}

static void
start_five(void *theirs, void **handle, const struct plumb_nccl_event_5 *told)
{
	struct plumb_nccl_event_5 event = *told;
	struct plumb_nccl_event_4 four;
	struct plumb_nccl_event_3 three;
	unsigned version = atomic_load(&their_version);
	/* Another process's parent is not plumb's, whatever it looks like. */
	if (event.kind != PLUMB_NCCL_PROXY_OP || event.proxy_op.pid == getpid())
		event.parent = handle_of(event.parent);
	if (event.kind == PLUMB_NCCL_COLLECTIVE)
		event.collective.group = handle_of(event.collective.group);
	if (event.kind == PLUMB_NCCL_P2P)
		event.p2p.group = handle_of(event.p2p.group);
	if (version == 5) {
		((struct plumb_nccl_profiler_5 *)their_table)->start(theirs, handle, &event);
		return;
	}
	if (event.kind >= PLUMB_NCCL_GROUP_CALL)
		return;
	four_of(&event, &four);
	if (version == 4) {
		((struct plumb_nccl_profiler_4 *)their_table)->start(theirs, handle, &four);
		return;
	}
	three_of(&four, &three);
	((struct plumb_nccl_profiler_3 *)their_table)->start(theirs, handle, &three);
}

void
plumb_nccl_chain_start(unsigned version, void *theirs, void **handle, void *event)
{
	const struct plumb_nccl_event_5 *five = event;
	const uint8_t *kind = event;
	struct plumb_nccl_event_3 three;
	unsigned their = atomic_load_explicit(&their_version, memory_order_relaxed);
	if (!their || !is_asked(version == 5 ? five->kind : *kind, plumb_nccl_chain_mask()))
		return;
	if (version == 5) {
		start_five(theirs, handle, event);
	} else if (version == 4 && their == 4) {
		((struct plumb_nccl_profiler_4 *)their_table)->start(theirs, handle, event);
	} else if (version == 4) {
		three_of(event, &three);
		((struct plumb_nccl_profiler_3 *)their_table)->start(theirs, handle, &three);
	} else {
		((struct plumb_nccl_profiler_3 *)their_table)->start(theirs, handle, event);
	}
}

void
plumb_nccl_chain_stop(void *handle)
{
	/* `stop` is in the same place in all versions. */
	if (atomic_load_explicit(&their_version, memory_order_relaxed) && handle_of(handle))
		((struct plumb_nccl_profiler_5 *)their_table)->stop(handle);
}
_Static_assert(offsetof(struct plumb_nccl_profiler_3, stop) ==
                               offsetof(struct plumb_nccl_profiler_5, stop) &&
                       offsetof(struct plumb_nccl_profiler_4, stop) ==
                               offsetof(struct plumb_nccl_profiler_5, stop) &&
                       offsetof(struct plumb_nccl_profiler_3, finalize) ==
                               offsetof(struct plumb_nccl_profiler_5, finalize) &&
                       offsetof(struct plumb_nccl_profiler_4, finalize) ==
                               offsetof(struct plumb_nccl_profiler_5, finalize),
               "tables of functions");

void
plumb_nccl_chain_state(unsigned version, void *handle, int state, void *arguments)
{
	union plumb_nccl_state_3 three = { { 0, 0 } };
	unsigned their = atomic_load_explicit(&their_version, memory_order_relaxed);
	bool control = state >= PLUMB_NCCL_CONTROL_FIRST && state <= PLUMB_NCCL_CONTROL_LAST;
	if (plumb_likely(!their) || !handle_of(handle))
		return;
	if (version > 3 && their == 3) {
		if (!control && (state < PLUMB_NCCL_STEP_FIRST || state > PLUMB_NCCL_STEP_LAST))
			return;
		if (control && arguments)
			three.appended = ((union plumb_nccl_state_4 *)arguments)->appended;
		arguments = &three;
	} else if (their < 5 && state >= PLUMB_NCCL_GROUP_STATE) {
		return;
	}
	if (their == 3)
		((struct plumb_nccl_profiler_3 *)their_table)->state(handle, state, arguments);
	else /* those of 4 and 5 are alike */
		((struct plumb_nccl_profiler_4 *)their_table)->state(handle, state, arguments);
}

void
plumb_nccl_chain_finalize(void *theirs)
{
	if (atomic_load_explicit(&their_version, memory_order_relaxed) && theirs)
		((struct plumb_nccl_profiler_5 *)their_table)->finalize(theirs);
}
