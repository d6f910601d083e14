/* SPDX-License-Identifier: Apache-2.0 */
/* What the sanitizer tells, on the program's threads. */
#include "collect/gpu/sanitizer/runtime.h"

_Thread_local bool plumb_sanitizer_inside;

static void
context_created(const struct sanitizer_context_data *data)
{
	pthread_mutex_lock(&plumb_sanitizer_lock);
	struct plumb_sanitizer_context *context =
		plumb_sanitizer_context_of(data->context, UINT32_MAX);
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	if (context && plumb_sanitizer_settings.early)
		plumb_sanitizer_prepare(context, false);
	plumb_sanitizer_wake();
}

static void
context_destroyed(const struct sanitizer_context_data *data)
{
	pthread_mutex_lock(&plumb_sanitizer_lock);
	struct plumb_sanitizer_context *context = plumb_sanitizer_live_context(data->context);
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	if (!context)
		return;
	plumb_sanitizer_read(context, NULL, true, true);
	pthread_mutex_lock(&plumb_sanitizer_lock);
	context->live = context->ready = false; /* its memory goes with it */
	pthread_mutex_unlock(&plumb_sanitizer_lock);
}

static void
resource_event(uint32_t id, const void *data)
{
	switch (id) {
	case SANITIZER_CONTEXT_CREATED:
		context_created(data);
		break;
	case SANITIZER_CONTEXT_DESTROYING:
		context_destroyed(data);
		break;
	case SANITIZER_MODULE_LOADED:
		plumb_sanitizer_module_loaded(data);
		break;
	case SANITIZER_MODULE_UNLOADING:
		plumb_sanitizer_module_unloading(data);
		break;
	case SANITIZER_MEMORY_ALLOCATED:
	case SANITIZER_ASYNC_ALLOCATED:
	case SANITIZER_POOL_IMPORTED:
		plumb_sanitizer_allocated(data, false, id != SANITIZER_MEMORY_ALLOCATED);
		break;
	case SANITIZER_HOST_ALLOCATED:
		plumb_sanitizer_allocated(data, true, false);
		break;
	case SANITIZER_POOL_PEER:
		plumb_sanitizer_pool_reached(data);
		break;
	case SANITIZER_MEMORY_FREED:
	case SANITIZER_ASYNC_FREED:
	case SANITIZER_HOST_FREED:
		plumb_sanitizer_freed(data, id == SANITIZER_HOST_FREED);
		break;
	default:
		break;
	}
}

static void
synchronized(uint32_t id, const struct sanitizer_synchronize_data *data)
{
	pthread_mutex_lock(&plumb_sanitizer_lock);
	struct plumb_sanitizer_context *context = plumb_sanitizer_live_context(data->context);
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	plumb_sanitizer_read(context, data->stream_handle, id == SANITIZER_CONTEXT_DONE, false);
}

static void
graph_event(uint32_t id, const void *data)
{
	const struct sanitizer_executable_data *executable = data;
	switch (id) {
	case SANITIZER_GRAPH_CREATED:
		if (executable->is_device_launch || executable->launches_from_device)
			plumb_sanitizer_unseen(PLUMB_UNSEEN_DEVICE_GRAPHS, 1);
		break;
	case SANITIZER_NODE_BEGIN:
		plumb_sanitizer_node(data);
		break;
	case SANITIZER_GRAPH_BEGIN:
		plumb_sanitizer_graph_begins(data);
		break;
	case SANITIZER_GRAPH_END:
		plumb_sanitizer_graph_ends(data);
		break;
	default:
		break;
	}
}

void
plumb_sanitizer_told(void *user, int domain, uint32_t id, const void *data)
{
	(void)user;
	if (plumb_sanitizer_inside || !data ||
	    !atomic_load_explicit(&plumb_sanitizer_live, memory_order_relaxed))
		return;
	switch (domain) {
	case SANITIZER_RESOURCE:
		resource_event(id, data);
		break;
	case SANITIZER_LAUNCH:
		if (id == SANITIZER_LAUNCH_BEGIN)
			plumb_sanitizer_launching(data);
		else if (id == SANITIZER_LAUNCH_END)
			plumb_sanitizer_launched(data);
		break;
	case SANITIZER_SYNCHRONIZE:
		if (id == SANITIZER_STREAM_DONE || id == SANITIZER_CONTEXT_DONE)
			synchronized(id, data);
		break;
	case SANITIZER_MEMCPY:
		/* A copy of a graph is told as its node, too. */
		if (id == SANITIZER_MEMCPY_STARTING && !plumb_sanitizer_in_graph())
			plumb_sanitizer_copied(data);
		break;
	case SANITIZER_GRAPHS:
		graph_event(id, data);
		break;
	case SANITIZER_DRIVER:
		plumb_sanitizer_call(id, data);
		break;
	default:
		break;
	}
}
