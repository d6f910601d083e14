/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches: each is given user data, or none. User data says where to count: with --traffic=full
 * all launches of a context count in the same slots, and user data differs by kernel and call path
 * only. With sampled, each unit that is drawn has slots of its own, a bank, so that its sum is
 * known.
 *
 * The kernels of a graph keep the user data that their function had when the graph was made. So
 * this is one place for each function, whose content is written before the graph is launched.
 */
#include <string.h>

#include "collect/gpu/sanitizer/runtime.h"
#include "collect/table.h"

#define UNIT_NS 200000u /* of switching patches, for each launch of a unit */
#define UNIT_MOST 4096u

struct plumb_sanitizer_site plumb_sanitizer_sites[PLUMB_SITES];
static uint32_t sites_count; /* the first is of launches that found no other */
static struct plumb_id_table site_index;

/* A graph that this thread launches. */
static _Thread_local struct {
	sanitizer_context context;
	sanitizer_stream stream;
	plumb_id node;
	bool inside; /* of the launch */
	bool counted;
	int bank;
} graph __attribute__((tls_model("initial-exec")));

static struct plumb_sanitizer_site *
site_of(struct plumb_sanitizer_function *function, plumb_id node)
{
	uint64_t mixed = plumb_mix((uintptr_t)function, node);
	uint32_t hash = (uint32_t)(mixed ^ mixed >> 32), at = hash, id;
	while ((id = plumb_id_table_next(&site_index, hash, &at))) {
		struct plumb_sanitizer_site *site = &plumb_sanitizer_sites[id];
		if (site->function == function && site->node == node)
			return site;
	}
	if (!sites_count)
		sites_count = 1;
	if (sites_count == PLUMB_SITES || !plumb_id_table_add(&site_index, hash, sites_count))
		return NULL;
	struct plumb_sanitizer_site *site = &plumb_sanitizer_sites[sites_count++];
	*site = (struct plumb_sanitizer_site){
		.function = function,
		.module = function->module,
		.node = node,
		.launch = UINT64_MAX,
	};
	return site;
}

/* ---- units ---- */

/* A bank for a unit that begins on STREAM: a free one, or one whose units have ended. Units that
 * share a bank are one unit in the error, which is then stated as larger than it is. Their sum
 * stays unbiased. -1: all are in use. */
static int
take_bank(struct plumb_sanitizer_context *context, sanitizer_stream stream)
{
	int shared = -1;
	for (uint32_t i = 0; i < PLUMB_BANKS; i++) {
		uint32_t at = (context->next_bank + i) % PLUMB_BANKS;
		struct plumb_bank *bank = &context->banks[at];
		if (bank->used) {
			if (shared < 0 && bank->closed && !bank->reading)
				shared = (int)at;
			continue;
		}
		*bank = (struct plumb_bank){ .stream = stream, .used = true };
		context->next_bank = at + 1;
		context->banks_used++;
		return (int)at;
	}
	if (shared < 0)
		return -1;
	struct plumb_bank *bank = &context->banks[shared];
	bank->closed = false;
	bank->several |= bank->stream != stream;
	context->next_bank = (uint32_t)shared + 1;
	return shared;
}

static void
close_bank(struct plumb_sanitizer_context *context, int bank)
{
	if (bank >= 0)
		context->banks[bank].closed = true;
}

/* ---- what is on the device ---- */

struct plan {
	struct plumb_push pushes[PLUMB_PUSHES];
	unsigned count;
	const void *data; /* the launch's user data */
	enum plumb_fate fate;
	bool late; /* its code is to be patched for the next launch */
};

static void
plan_push(struct plan *plan, void *to, void *from, size_t bytes)
{
	if (plan->count < PLUMB_PUSHES)
		plan->pushes[plan->count++] = (struct plumb_push){ to, from, bytes };
}

/* The table goes to the device once for each stream: a copy is ordered with its own stream only,
 * and copying the same bytes again does no harm. */
static void
plan_table(struct plumb_sanitizer_context *context, struct plan *plan, sanitizer_stream stream)
{
	const uint32_t most = sizeof context->pushed / sizeof *context->pushed;
	for (uint32_t i = 0; i < context->pushed_count && i < most; i++)
		if (context->pushed[i] == stream)
			return;
	context->pushed[context->pushed_count++ % most] = stream;
	plan_push(plan, PLUMB_RING_AT(&context->tables, device, context->table),
	          PLUMB_RING_AT(&context->tables, mirror, context->table), context->table_bytes);
}

static struct plumb_counting
counting_of(const struct plumb_sanitizer_context *context, uint32_t site, int bank)
{
	struct plumb_counting counting = context->head;
	counting.site = site;
	counting.slots = context->slots;
	counting.slot_mask = PLUMB_SLOTS - 1;
	if (bank >= 0) {
		counting.slots += (uint32_t)bank * PLUMB_BANK_SLOTS;
		counting.slot_mask = PLUMB_BANK_SLOTS - 1;
	}
	return counting;
}

/* User data of a launch at SITE. */
static bool
plan_launch(struct plumb_sanitizer_context *context, struct plumb_sanitizer_site *site, int bank,
            sanitizer_stream stream, struct plan *plan)
{
	uint32_t number = (uint32_t)(site - plumb_sanitizer_sites);
	struct plumb_counting counting = counting_of(context, number, bank);
	struct plumb_ring *ring = &context->launches;
	bool same = plumb_ring_holds(ring, site->launch) &&
	            !memcmp(PLUMB_RING_AT(ring, mirror, site->launch), &counting, sizeof counting);
	if (!same) {
		site->launch = plumb_ring_take(ring, sizeof counting);
		if (site->launch == UINT64_MAX)
			return false;
		memcpy(PLUMB_RING_AT(ring, mirror, site->launch), &counting, sizeof counting);
	}
	plan->data = PLUMB_RING_AT(ring, device, site->launch);
	if (!same || site->stream != stream)
		plan_push(plan, (void *)plan->data, PLUMB_RING_AT(ring, mirror, site->launch),
		          sizeof counting);
	site->stream = stream;
	return true;
}

/* ---- single launches ---- */

/* Is this launch counted? With the lock. */
static enum plumb_fate
decide(struct plumb_sanitizer_function *function, sanitizer_stream stream)
{
	struct plumb_sanitizer_module *module = function->module;
	struct plumb_sanitizer_context *context = module->context;
	if (module->draw.left)
		module->draw.left--;
	if (module->rest) {
		module->rest--;
		return PLUMB_FATE_REACHED_NOTHING;
	}
	if (!module->draw.drawn)
		return PLUMB_FATE_NOT_DRAWN;
	if (!function->wanted)
		return PLUMB_FATE_NOT_CHOSEN;
	if (!module->patched || !context->ready)
		return PLUMB_FATE_NOT_PATCHED;
	if (!plumb_sanitizer_table(context))
		return PLUMB_FATE_TABLE_FULL;
	if (!plumb_sanitizer_settings.sampled)
		return PLUMB_FATE_ATTRIBUTED;
	if (module->bank < 0)
		module->bank = take_bank(context, stream);
	if (module->bank < 0)
		return PLUMB_FATE_TABLE_FULL;
	context->banks[module->bank].several |= context->banks[module->bank].stream != stream;
	return PLUMB_FATE_ATTRIBUTED;
}

static struct plan
plan_single(const struct sanitizer_launch_data *data, plumb_id node,
            struct plumb_sanitizer_function **function)
{
	struct plan plan = { .fate = PLUMB_FATE_ATTRIBUTED };
	struct plumb_sanitizer_context *context =
		plumb_sanitizer_context_of(data->context, (uint32_t)data->device);
	if (!context || !context->reaches) {
		/* A context that came later: patching now may not change this launch. */
		bool late = context && plumb_sanitizer_device_reaches((uint32_t)data->device);
		return (struct plan){ .fate = late ? PLUMB_FATE_NOT_PATCHED : PLUMB_FATE_RECEIVED,
			              .late = late };
	}
	*function = plumb_sanitizer_function_of(data);
	if (!*function)
		return (struct plan){ .fate = PLUMB_FATE_NOT_PATCHED };
	plan.fate = decide(*function, data->stream_handle);
	if (plan.fate != PLUMB_FATE_ATTRIBUTED)
		return plan;
	struct plumb_sanitizer_site *site = site_of(*function, node);
	if (!site ||
	    !plan_launch(context, site, (*function)->module->bank, data->stream_handle, &plan)) {
		plan.data = NULL;
		plan.count = 0;
		plan.fate = PLUMB_FATE_TABLE_FULL;
		return plan;
	}
	plan_table(context, &plan, data->stream_handle);
	context->dirty = true;
	(*function)->module->idle++;
	return plan;
}

/* The context of a kernel that is launched now. */
static plumb_id
node_of(struct plumb_thread *thread, const char *call, const char *kernel)
{
	plumb_id node =
		plumb_child_named(thread, plumb_context_current(thread), PLUMB_FRAME_GPU_API, call);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_LAUNCHES, plumb_thread_track(thread), 1);
	return plumb_child_named(thread, node, PLUMB_FRAME_KERNEL, kernel ? kernel : "?");
}

static void
bind(const struct sanitizer_launch_data *data, const void *user_data)
{
	if (!plumb_sanitizer.SetLaunchCallbackData || !data->launch ||
	    SANITIZER(SetLaunchCallbackData(data->launch, data->function, data->stream_handle,
	                                    user_data)))
		SANITIZER(SetCallbackData(data->function, user_data));
}

void
plumb_sanitizer_launching(const struct sanitizer_launch_data *data)
{
	struct plumb_sanitizer_function *function = NULL;
	struct plan plan = { .fate = PLUMB_FATE_RECEIVED };
	bool fresh = false;
	plumb_sanitizer_settle_memory();
	struct plumb_thread *thread = plumb_enter_of(PLUMB_CALLBACK_GPU, PLUMB_SOURCE_LAUNCH);
	if (thread) {
		plumb_id node = node_of(thread, "cuLaunchKernel", data->name);
		pthread_mutex_lock(&plumb_sanitizer_lock);
		uint32_t before = sites_count;
		plan = plan_single(data, node, &function);
		fresh = sites_count != before;
		pthread_mutex_unlock(&plumb_sanitizer_lock);
		if (plan.fate != PLUMB_FATE_RECEIVED) {
			plumb_count(thread, PLUMB_SOURCE_TRAFFIC_LAUNCH, PLUMB_FATE_RECEIVED, 1);
			plumb_count(thread, PLUMB_SOURCE_TRAFFIC_LAUNCH, plan.fate, 1);
		}
		plumb_leave(thread);
		if (fresh && function)
			plumb_sanitizer_locate(function);
	}
	if (plumb_unlikely(plan.late))
		plumb_sanitizer_reaches(data->context);
	if (!thread || plan.fate != PLUMB_FATE_RECEIVED) {
		plumb_sanitizer_push(plan.pushes, plan.count, data->stream_handle);
		bind(data, plan.data);
	}
}

/* The next unit of a module, and whether its code has patches meanwhile. */
void
plumb_sanitizer_launched(const struct sanitizer_launch_data *data)
{
	const struct plumb_sanitizer_settings *settings = &plumb_sanitizer_settings;
	struct plumb_sanitizer_module *module = NULL;
	bool on = true;
	pthread_mutex_lock(&plumb_sanitizer_lock);
	struct plumb_sanitizer_function *function = plumb_sanitizer_function_of(data);
	if (function && function->module->context->reaches) {
		module = function->module;
		if (settings->sampled && !module->draw.left) {
			uint64_t launches = module->patch_ns / UNIT_NS;
			close_bank(module->context, module->bank);
			module->bank = -1;
			plumb_draw_unit(&module->draw, settings->rate,
			                launches < 1           ? 1
			                : launches > UNIT_MOST ? UNIT_MOST
			                                       : (uint32_t)launches);
		}
		on = (module->draw.drawn && !module->rest) || module->in_graph;
	}
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	if (module && settings->unpatch)
		plumb_sanitizer_switch(module, on);
}

/* ---- graphs ---- */

void
plumb_sanitizer_graph_begins(const struct sanitizer_graph_data *data)
{
	plumb_sanitizer_settle_memory();
	struct plumb_thread *thread =
		data->is_upload ? NULL : plumb_enter_of(PLUMB_CALLBACK_GPU, PLUMB_SOURCE_LAUNCH);
	graph.context = data->context;
	graph.stream = data->stream_handle;
	graph.inside = true;
	graph.counted = false;
	graph.bank = -1;
	graph.node = 0;
	if (!thread)
		return;
	graph.node = plumb_child_named(thread, plumb_context_current(thread), PLUMB_FRAME_GPU_API,
	                               "cuGraphLaunch");
	plumb_observe(thread, graph.node, PLUMB_METRIC_GPU_REPLAYS, plumb_thread_track(thread), 1);
	pthread_mutex_lock(&plumb_sanitizer_lock);
	struct plumb_sanitizer_context *context =
		plumb_sanitizer_context_of(data->context, UINT32_MAX);
	if (context && context->reaches) {
		graph.counted = true;
		if (plumb_sanitizer_settings.sampled) {
			if (!context->graph_draw.state)
				context->graph_draw.state =
					plumb_mix(plumb_sanitizer_settings.seed,
				                  (uint64_t)(context - plumb_sanitizer_contexts));
			plumb_draw_unit(&context->graph_draw, plumb_sanitizer_settings.rate, 1);
			graph.counted = context->graph_draw.drawn;
			graph.bank = graph.counted ? take_bank(context, data->stream_handle) : -1;
		}
	}
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	plumb_leave(thread);
}

void
plumb_sanitizer_graph_ends(const struct sanitizer_graph_data *data)
{
	pthread_mutex_lock(&plumb_sanitizer_lock);
	struct plumb_sanitizer_context *context =
		plumb_sanitizer_context_of(data->context, UINT32_MAX);
	if (context)
		close_bank(context, graph.bank);
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	graph.inside = false;
	graph.counted = false;
	graph.bank = -1;
}

bool
plumb_sanitizer_in_graph(void)
{
	return graph.inside;
}

/* User data of a function in graphs: in one place, with new content if it changed. */
static enum plumb_fate
plan_node(struct plumb_sanitizer_context *context, struct plumb_sanitizer_function *function,
          plumb_id node, struct plan *plan)
{
	/* All is the device's own. */
	struct plumb_counting counting = { .windows = { { 0, UINT64_MAX } } };
	enum plumb_fate fate = graph.counted ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_NOT_DRAWN;
	if (function->fixed == UINT32_MAX) {
		if (context->fixed_used == PLUMB_FIXED)
			return PLUMB_FATE_TABLE_FULL;
		function->fixed = context->fixed_used++;
		function->module->in_graph = true;
	}
	if (!function->wanted)
		fate = PLUMB_FATE_NOT_CHOSEN;
	else if (fate == PLUMB_FATE_ATTRIBUTED && !function->module->patched)
		fate = PLUMB_FATE_NOT_PATCHED;
	else if (fate == PLUMB_FATE_ATTRIBUTED &&
	         ((plumb_sanitizer_settings.sampled && graph.bank < 0) ||
	          !plumb_sanitizer_table(context)))
		fate = PLUMB_FATE_TABLE_FULL;
	struct plumb_sanitizer_site *site =
		fate == PLUMB_FATE_ATTRIBUTED ? site_of(function, node) : NULL;
	if (fate == PLUMB_FATE_ATTRIBUTED && !site)
		fate = PLUMB_FATE_TABLE_FULL;
	if (site) {
		counting =
			counting_of(context, (uint32_t)(site - plumb_sanitizer_sites), graph.bank);
		plan_table(context, plan, graph.stream);
		context->dirty = true;
	}
	struct plumb_counting *now = &context->fixed_now[function->fixed];
	plan->data = &context->fixed[function->fixed];
	if (memcmp(now, &counting, sizeof counting)) {
		*now = counting;
		plan_push(plan, (void *)plan->data, now, sizeof counting);
	}
	return fate;
}

void
plumb_sanitizer_node(const struct sanitizer_node_data *data)
{
	struct plumb_sanitizer_function *function = NULL;
	struct plan plan = { .fate = PLUMB_FATE_RECEIVED };
	if (data->type == SANITIZER_NODE_MEMCPY && !data->is_upload)
		plumb_sanitizer_copied(&data->copy);
	if (data->type != SANITIZER_NODE_KERNEL)
		return;
	struct plumb_thread *thread = plumb_enter_of(PLUMB_CALLBACK_GPU, PLUMB_SOURCE_LAUNCH);
	plumb_id node = 0;
	if (thread)
		node = plumb_child_named(thread, graph.node, PLUMB_FRAME_KERNEL,
		                         data->launch.name ? data->launch.name : "?");
	pthread_mutex_lock(&plumb_sanitizer_lock);
	uint32_t before = sites_count;
	struct plumb_sanitizer_context *context =
		plumb_sanitizer_context_of(data->launch.context, (uint32_t)data->launch.device);
	if (context && context->reaches && context->ready)
		function = plumb_sanitizer_function_of(&data->launch);
	if (function) /* without THREAD, nothing counts */
		plan.fate = plan_node(context, function, node, &plan);
	bool fresh = sites_count != before;
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	if (thread) {
		if (function && !data->is_upload) {
			plumb_count(thread, PLUMB_SOURCE_TRAFFIC_LAUNCH, PLUMB_FATE_RECEIVED, 1);
			plumb_count(thread, PLUMB_SOURCE_TRAFFIC_LAUNCH, plan.fate, 1);
		}
		plumb_leave(thread);
	}
	if (!function)
		return;
	if (fresh)
		plumb_sanitizer_locate(function);
	plumb_sanitizer_push(plan.pushes, plan.count,
	                     graph.stream ? graph.stream : data->launch.stream_handle);
	if (plan.data)
		SANITIZER(SetCallbackData(function->handle, plan.data));
}

void
plumb_sanitizer_launches_renew(void)
{
	memset(&graph, 0, sizeof graph);
	for (uint32_t i = 0; i < sites_count; i++)
		plumb_sanitizer_sites[i].launch = UINT64_MAX;
}
