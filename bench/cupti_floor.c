/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor under every profiler that times GPU kernels by CUPTI: kernel, copy and set records are
 * enabled and thrown away, with no context, no callback and no other work. bench/overhead.py builds
 * it (mode "cupti") and injects it by CUDA_INJECTION64_PATH. With CALLS (mode "cupticalls") each
 * launch also has an empty callback.
 */
#include <cupti.h>
#include <stdlib.h>

enum { BUFFER_BYTES = 1 << 20 };

static CUpti_SubscriberHandle subscriber;

static void CUPTIAPI
ignore(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info)
{
	(void)data, (void)domain, (void)id, (void)info;
}

static void CUPTIAPI
give_buffer(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = aligned_alloc(64, BUFFER_BYTES);
	*size = *buffer ? BUFFER_BYTES : 0;
	*records = 0;
}

static void CUPTIAPI
take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t used)
{
	(void)context, (void)stream, (void)size, (void)used;
	free(buffer);
}

__attribute__((visibility("default"))) int InitializeInjection(void);

int
InitializeInjection(void)
{
	cuptiSubscribe(&subscriber, ignore, NULL);
#if CALLS
	static const CUpti_driver_api_trace_cbid calls[] = {
		CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
		CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
		CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
		CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
	};
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, calls[i]);
#endif
	cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
	cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
	return 1;
}
