/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch's own profiler is linked with in libcupti and no test calls: without these names
 * PyTorch cannot be loaded beside the stand-in. The same for every release, so no header declares
 * them here.
 */
#define NOT_SUPPORTED 27 /* CUPTI_ERROR_NOT_SUPPORTED */
#define UNUSED(name)                                                                               \
	__attribute__((visibility("default"))) int name(void);                                     \
	int name(void)                                                                             \
	{                                                                                          \
		return NOT_SUPPORTED;                                                              \
	}

UNUSED(cuptiActivityEnableCudaEventDeviceTimestamps)
UNUSED(cuptiActivityEnableDriverApi)
UNUSED(cuptiActivityEnableRuntimeApi)
UNUSED(cuptiActivityPopExternalCorrelationId)
UNUSED(cuptiActivityPushExternalCorrelationId)
UNUSED(cuptiGetCallbackName)
