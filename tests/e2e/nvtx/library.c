/* SPDX-License-Identifier: Apache-2.0 */
/* A library that annotates on its own: NVTX is compiled into it once more. */
#ifdef MINI
#include "mini_nvtx.h"
#else
#include <nvtx3/nvToolsExt.h>
#endif

void library_work(void);

void
library_work(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
	nvtxEventAttributes_t a = { 0 };
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	a.message.registered = nvtxDomainRegisterStringA(domain, "work");
	nvtxDomainRangePushEx(domain, &a);
	nvtxRangePushA("of the library");
	nvtxRangePop();
	nvtxDomainRangePop(domain);
}
