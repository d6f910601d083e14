/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUPTI functions through which a program takes and leaves CUPTI's slot. A program reaches
 * these by its PLT, as plumb is preloaded before CUPTI, or by a look-up that the dlsym hook
 * answers. Each goes on to the real function, which is looked up once, as the first caller's
 * library sees it: a second CUPTI in a process does not work beside the first, so there is one to
 * find. While plumb has the slot the program has nothing enabled, so that disabling is done already
 * and must not touch what plumb enabled. A CUPTI that is linked in statically is not noticed: its
 * subscribe then fails as it does beside any tool.
 */
#include "collect/gpu/cuda/interpose.h"

#include <dlfcn.h>
#include <string.h>

#include "collect/gpu/cuda/runtime.h"
#include "collect/process.h"

/* X(function): all have the prototypes of CUPTI's headers. */
#define FUNCTIONS(X)                                                                               \
	X(cuptiSubscribe)                                                                          \
	X(cuptiSubscribe_v2)                                                                       \
	X(cuptiUnsubscribe)                                                                        \
	X(cuptiEnableCallback)                                                                     \
	X(cuptiEnableDomain)                                                                       \
	X(cuptiEnableAllDomains)                                                                   \
	X(cuptiActivityRegisterCallbacks)                                                          \
	X(cuptiActivityRegisterTimestampCallback)                                                  \
	X(cuptiActivityEnable)                                                                     \
	X(cuptiActivityDisable)                                                                    \
	X(cuptiActivityFlushAll)                                                                   \
	X(cuptiFinalize)

#define X(name) PLUMB_EXPORT __typeof__(name) name;
FUNCTIONS(X)
#undef X

static const struct {
	const char *name;
	void *function;
} functions[] = {
#define X(name) { #name, (void *)name },
	FUNCTIONS(X)
#undef X
};

void *
plumb_cuda_interpose(const char *symbol)
{
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(symbol, functions[i].name))
			return plumb_process_wanted() ? functions[i].function : NULL;
	return NULL;
}

/* NAME as the library of the code at CALLER sees it, else that of a CUPTI that is loaded. */
static void *
find_real(const char *name, void *own, const void *caller)
{
	char path[4096];
	Dl_info where;
	void *library = NULL, *real = NULL;
	if (dladdr(caller, &where) && where.dli_fname &&
	    (library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD))) {
		real = plumb_real_dlsym(library, name);
		dlclose(library);
	}
	if (real && real != own)
		return real;
	if (plumb_find_library("libcupti.so", path, sizeof path) &&
	    (library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD))) {
		real = plumb_real_dlsym(library, name);
		dlclose(library);
	}
	return real != own ? real : NULL;
}

/* `real` becomes the real FUNCTION; returns from the caller when there is none. */
#define REAL(function)                                                                             \
	static _Atomic(void *) known_;                                                             \
	__typeof__(&function) real = (__typeof__(&function))atomic_load(&known_);                  \
	if (!real) {                                                                               \
		real = (__typeof__(&function))find_real(#function, (void *)function,               \
		                                        __builtin_return_address(0));              \
		if (!real)                                                                         \
			return CUPTI_ERROR_NOT_INITIALIZED;                                        \
		atomic_store(&known_, (void *)real);                                               \
	}

/* The program wants CUPTI: it gets the slot, or a refusal where plumb keeps it. */
#define WANT()                                                                                     \
	if (plumb_slot_program())                                                                  \
	return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED

/* What the real function returns. */
#define CALL(...)                                                                                  \
	(plumb_slot_enter(), result_ = real(__VA_ARGS__), plumb_slot_leave_call(), result_)

CUptiResult CUPTIAPI
cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data)
{
	CUptiResult result_;
	REAL(cuptiSubscribe)
	if (!plumb_slot_watched())
		return real(subscriber, callback, data);
	WANT();
	CUptiResult result = CALL(subscriber, callback, data);
	plumb_slot_subscribed(result == CUPTI_SUCCESS ? *subscriber : NULL, callback, data);
	return result;
}

CUptiResult CUPTIAPI
cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data,
                  CUpti_SubscriberParams *params)
{
	CUptiResult result_;
	REAL(cuptiSubscribe_v2)
	if (!plumb_slot_watched())
		return real(subscriber, callback, data, params);
	WANT();
	CUptiResult result = CALL(subscriber, callback, data, params);
	plumb_slot_subscribed(result == CUPTI_SUCCESS ? *subscriber : NULL, callback, data);
	return result;
}

CUptiResult CUPTIAPI
cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
	CUptiResult result_;
	REAL(cuptiUnsubscribe)
	if (!plumb_slot_watched())
		return real(subscriber);
	if (plumb_slot_ours() && plumb_slot_forget(subscriber))
		return CUPTI_SUCCESS;
	WANT();
	CUptiResult result = CALL(plumb_slot_handle(subscriber));
	if (result == CUPTI_SUCCESS)
		plumb_slot_unsubscribed();
	return result;
}

CUptiResult CUPTIAPI
cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                    CUpti_CallbackId id)
{
	CUptiResult result_;
	REAL(cuptiEnableCallback)
	if (!plumb_slot_watched())
		return real(enable, subscriber, domain, id);
	if (!enable && plumb_slot_ours())
		return CUPTI_SUCCESS;
	WANT();
	CUptiResult result = CALL(enable, plumb_slot_handle(subscriber), domain, id);
	if (result == CUPTI_SUCCESS)
		plumb_slot_callbacks(enable, domain, id);
	return result;
}

CUptiResult CUPTIAPI
cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain)
{
	CUptiResult result_;
	REAL(cuptiEnableDomain)
	if (!plumb_slot_watched())
		return real(enable, subscriber, domain);
	if (!enable && plumb_slot_ours())
		return CUPTI_SUCCESS;
	WANT();
	CUptiResult result = CALL(enable, plumb_slot_handle(subscriber), domain);
	if (result == CUPTI_SUCCESS)
		plumb_slot_callbacks(enable, domain, UINT32_MAX);
	return result;
}

CUptiResult CUPTIAPI
cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber)
{
	CUptiResult result_;
	REAL(cuptiEnableAllDomains)
	if (!plumb_slot_watched())
		return real(enable, subscriber);
	if (!enable && plumb_slot_ours())
		return CUPTI_SUCCESS;
	WANT();
	CUptiResult result = CALL(enable, plumb_slot_handle(subscriber));
	for (uint32_t domain = 1; result == CUPTI_SUCCESS && domain < CUPTI_CB_DOMAIN_SIZE;
	     domain++)
		plumb_slot_callbacks(enable, domain, UINT32_MAX);
	return result;
}

CUptiResult CUPTIAPI
cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                               CUpti_BuffersCallbackCompleteFunc completed)
{
	CUptiResult result_;
	REAL(cuptiActivityRegisterCallbacks)
	if (!plumb_slot_watched())
		return real(requested, completed);
	WANT();
	return CALL(requested, completed);
}

CUptiResult CUPTIAPI
cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock)
{
	CUptiResult result_;
	REAL(cuptiActivityRegisterTimestampCallback)
	bool watched = plumb_slot_watched();
	if (watched) {
		WANT();
	}
	CUptiResult result = watched ? CALL(clock) : real(clock);
	if (result == CUPTI_SUCCESS && !plumb_slot_inside())
		plumb_slot_clock(clock);
	return result;
}

CUptiResult CUPTIAPI
cuptiActivityEnable(CUpti_ActivityKind kind)
{
	CUptiResult result_;
	REAL(cuptiActivityEnable)
	if (!plumb_slot_watched())
		return real(kind);
	WANT();
	CUptiResult result = CALL(kind);
	if (result == CUPTI_SUCCESS)
		plumb_slot_kind(true, kind);
	return result;
}

CUptiResult CUPTIAPI
cuptiActivityDisable(CUpti_ActivityKind kind)
{
	CUptiResult result_;
	REAL(cuptiActivityDisable)
	if (!plumb_slot_watched())
		return real(kind);
	if (plumb_slot_ours())
		return CUPTI_SUCCESS;
	WANT();
	CUptiResult result = CALL(kind);
	plumb_slot_kind(false, kind);
	return result;
}

CUptiResult CUPTIAPI
cuptiActivityFlushAll(uint32_t flag)
{
	CUptiResult result_;
	REAL(cuptiActivityFlushAll)
	if (!plumb_slot_watched())
		return real(flag);
	CUptiResult result = CALL(flag);
	plumb_slot_flushed();
	return result;
}

CUptiResult CUPTIAPI
cuptiFinalize(void)
{
	CUptiResult result_;
	REAL(cuptiFinalize)
	if (!plumb_slot_watched())
		return real();
	WANT();
	CUptiResult result = CALL();
	plumb_slot_unsubscribed();
	return result;
}
