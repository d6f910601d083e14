/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libnvidia-ml.so.1, as far as plumb looks at it: GPUs and their links, as MOCK_NVML
 * says (README.md). Handles are indexes + 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define SUCCESS 0
#define INVALID 2
#define NOT_SUPPORTED 3
#define SWITCHED 18 /* NVLinks of an H100 */
#define PAIRED 4

typedef struct {
	char busIdLegacy[16];
	unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} pci;
typedef struct {
	unsigned fieldId, scopeId;
	long long timestamp, latencyUsec;
	unsigned valueType;
	int nvmlReturn;
	union {
		double d;
		unsigned ui;
		unsigned long long ull;
	} value;
} field;

/* The text of KEY, up to the next comma. */
static void
setting(const char *key, char text[32], const char *otherwise)
{
	const char *at = getenv("MOCK_NVML");
	size_t length = strlen(key);

	snprintf(text, 32, "%s", otherwise);
	for (; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (!strncmp(at, key, length) && at[length] == '=')
			snprintf(text, 32, "%.*s", (int)strcspn(at + length + 1, ","),
			         at + length + 1);
}

static unsigned
number(const char *key, const char *otherwise)
{
	char text[32];

	setting(key, text, otherwise);
	return (unsigned)atoi(text);
}

static int
wired(const char *how)
{
	char text[32];

	setting("wires", text, "switch");
	return !strcmp(text, how);
}

static unsigned
index_of(void *gpu)
{
	return (unsigned)(size_t)gpu - 1;
}

static unsigned
links_of(unsigned gpu)
{
	if (wired("switch") || wired("hidden"))
		return SWITCHED;
	return wired("pairs") && (gpu ^ 1) < number("gpus", "2") ? PAIRED : 0;
}

static void
place(unsigned gpu, pci *info)
{
	memset(info, 0, sizeof *info);
	info->bus = 0x10 + gpu;
	snprintf(info->busId, sizeof info->busId, "%08X:%02X:%02X.0", 0u, info->bus, 0u);
}

API int
nvmlInit_v2(void)
{
	if (number("hang", "0") == 1)
		pause();
	if (number("hang", "0") == 2)
		abort();
	return (int)number("init", "0");
}

API int
nvmlShutdown(void)
{
	return SUCCESS;
}

API int
nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = number("gpus", "2");
	return SUCCESS;
}

API int
nvmlDeviceGetHandleByIndex_v2(unsigned index, void **gpu)
{
	if (index >= number("gpus", "2"))
		return INVALID;
	*gpu = (void *)(size_t)(index + 1);
	return SUCCESS;
}

API int
nvmlDeviceGetUUID(void *gpu, char *uuid, unsigned length)
{
	snprintf(uuid, length, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae%02x", index_of(gpu));
	return SUCCESS;
}

API int
nvmlDeviceGetPciInfo_v3(void *gpu, pci *info)
{
	place(index_of(gpu), info);
	return SUCCESS;
}

API int
nvmlDeviceGetNvLinkState(void *gpu, unsigned link, unsigned *active)
{
	if (!links_of(index_of(gpu)))
		return NOT_SUPPORTED;
	if (link > links_of(index_of(gpu))) /* one more is there, and is off */
		return INVALID;
	*active = link < links_of(index_of(gpu));
	return SUCCESS;
}

API int
nvmlDeviceGetNvLinkRemoteDeviceType(void *gpu, unsigned link, unsigned *type)
{
	(void)link;
	(void)gpu;
	if (wired("hidden"))
		return NOT_SUPPORTED;
	*type = wired("switch") ? 2 : 0;
	return SUCCESS;
}

API int
nvmlDeviceGetNvLinkRemotePciInfo_v2(void *gpu, unsigned link, pci *info)
{
	if (wired("hidden") || link >= links_of(index_of(gpu)))
		return NOT_SUPPORTED;
	if (wired("switch"))
		place(0x50 + link / 5, info);
	else
		place(index_of(gpu) ^ 1, info);
	return SUCCESS;
}

API int
nvmlDeviceGetFieldValues(void *gpu, int count, field *fields)
{
	for (int i = 0; i < count; i++) {
		field *f = &fields[i];

		f->nvmlReturn = SUCCESS;
		f->valueType = 1;
		if (f->fieldId == 164 && f->scopeId < links_of(index_of(gpu)))
			f->value.ui = 26562;
		else if (f->fieldId == 170 && number("c2c", "0"))
			f->value.ui = 11;
		else if (f->fieldId == 171 && number("c2c", "0"))
			f->value.ui = f->scopeId < 10;
		else if (f->fieldId == 172 && number("c2c", "0"))
			f->value.ui = 45000;
		else
			f->nvmlReturn = NOT_SUPPORTED;
	}
	return SUCCESS;
}

API int
nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, unsigned *level)
{
	unsigned a = index_of(one), b = index_of(other);

	*level = a / 2 == b / 2 ? 10 : a / 4 == b / 4 ? 30 : 50;
	return SUCCESS;
}

API int
nvmlDeviceGetP2PStatus(void *one, void *other, unsigned which, unsigned *status)
{
	unsigned a = index_of(one), b = index_of(other);
	int linked = links_of(a) && links_of(b) && (!wired("pairs") || (a ^ 1) == b);

	*status = linked || (which != 2 && number("peer", "1")) ? 0 : 5;
	return SUCCESS;
}

API int
nvmlDeviceGetMaxPcieLinkGeneration(void *gpu, unsigned *generation)
{
	(void)gpu;
	*generation = number("generation", "5");
	return *generation ? SUCCESS : NOT_SUPPORTED;
}

API int
nvmlDeviceGetMaxPcieLinkWidth(void *gpu, unsigned *width)
{
	(void)gpu;
	*width = number("width", "16");
	return *width ? SUCCESS : NOT_SUPPORTED;
}
