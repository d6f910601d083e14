/* SPDX-License-Identifier: Apache-2.0 */
/* NVML is not linked: the few functions needed are looked up in the child, with declarations of our
 * own. tests/mock/nvml.c is a stand-in. */
#include "cli/run/links.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/probe.h"

#define LIBRARY "libnvidia-ml.so.1"
#define SECONDS 20
#define GPUS_MOST 32
#define NVLINKS_MOST 64 /* of one GPU; today there are 18 */

/* ---- what is needed of NVML ---- */

enum {
	SUCCESS = 0,
	ENABLED = 1, /* an NVLink, or C2C */
	REMOTE_GPU = 0,
	REMOTE_SWITCH = 2,
	P2P_READ = 0,   /* which capability of a pair */
	P2P_NVLINK = 2, /* likewise */
	P2P_OK = 0,
	FIELD_NVLINK_SPEED = 164, /* million bytes per second; the scope is the link */
	FIELD_C2C_COUNT = 170,
	FIELD_C2C_STATUS = 171, /* the scope is the link */
	FIELD_C2C_SPEED = 172,  /* likewise */
	VALUE_UNSIGNED_INT = 1,
	VALUE_UNSIGNED_LONG = 2,
	VALUE_UNSIGNED_LONG_LONG = 3,
};

struct nvml_pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char bus_id[32];
};

struct nvml_field {
	unsigned field, scope;
	long long timestamp, latency_us;
	unsigned type;
	int result;
	union {
		unsigned number;
		unsigned long long large;
	} value;
};

typedef void *gpu;
struct nvml {
	int (*nvmlInit_v2)(void);
	int (*nvmlShutdown)(void);
	int (*nvmlDeviceGetCount_v2)(unsigned *);
	int (*nvmlDeviceGetHandleByIndex_v2)(unsigned, gpu *);
	int (*nvmlDeviceGetUUID)(gpu, char *, unsigned);
	int (*nvmlDeviceGetPciInfo_v3)(gpu, struct nvml_pci *);
	/* Old drivers lack some of the others, and so does plumb then know less. */
	int (*nvmlDeviceGetNvLinkState)(gpu, unsigned, unsigned *);
	int (*nvmlDeviceGetNvLinkRemotePciInfo_v2)(gpu, unsigned, struct nvml_pci *);
	int (*nvmlDeviceGetNvLinkRemoteDeviceType)(gpu, unsigned, unsigned *);
	int (*nvmlDeviceGetFieldValues)(gpu, int, struct nvml_field *);
	int (*nvmlDeviceGetTopologyCommonAncestor)(gpu, gpu, unsigned *);
	int (*nvmlDeviceGetP2PStatus)(gpu, gpu, unsigned, unsigned *);
	int (*nvmlDeviceGetMaxPcieLinkGeneration)(gpu, unsigned *);
	int (*nvmlDeviceGetMaxPcieLinkWidth)(gpu, unsigned *);
};

#define LOAD(name) nvml->name = (__typeof__(nvml->name))dlsym(library, #name)

/* NULL, or why not. */
static const char *
load(struct nvml *nvml)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return dlerror();
	LOAD(nvmlInit_v2);
	LOAD(nvmlShutdown);
	LOAD(nvmlDeviceGetCount_v2);
	LOAD(nvmlDeviceGetHandleByIndex_v2);
	LOAD(nvmlDeviceGetUUID);
	LOAD(nvmlDeviceGetPciInfo_v3);
	LOAD(nvmlDeviceGetNvLinkState);
	LOAD(nvmlDeviceGetNvLinkRemotePciInfo_v2);
	LOAD(nvmlDeviceGetNvLinkRemoteDeviceType);
	LOAD(nvmlDeviceGetFieldValues);
	LOAD(nvmlDeviceGetTopologyCommonAncestor);
	LOAD(nvmlDeviceGetP2PStatus);
	LOAD(nvmlDeviceGetMaxPcieLinkGeneration);
	LOAD(nvmlDeviceGetMaxPcieLinkWidth);
	return nvml->nvmlInit_v2 && nvml->nvmlShutdown && nvml->nvmlDeviceGetCount_v2 &&
	                       nvml->nvmlDeviceGetHandleByIndex_v2 && nvml->nvmlDeviceGetUUID &&
	                       nvml->nvmlDeviceGetPciInfo_v3
	               ? NULL
	               : LIBRARY " lacks functions that plumb needs";
}

/* ---- one GPU ---- */

struct one {
	gpu handle;
	char uuid[96];
	struct nvml_pci pci;
	unsigned active;               /* NVLinks */
	unsigned to_switches;          /* of them */
	unsigned to_gpus[GPUS_MOST];   /* of them, by the other GPU's index */
	unsigned long long link_bytes; /* per second and NVLink; 0: not known */
	unsigned generation, width;    /* of PCIe; 0: not known */
};

/* A field of million bytes per second, or a count; 0: not known. */
static unsigned long long
field_of(const struct nvml *nvml, gpu handle, unsigned number, unsigned scope)
{
	struct nvml_field field = { .field = number, .scope = scope };

	if (!nvml->nvmlDeviceGetFieldValues ||
	    nvml->nvmlDeviceGetFieldValues(handle, 1, &field) != SUCCESS || field.result != SUCCESS)
		return 0;
	if (field.type == VALUE_UNSIGNED_INT)
		return field.value.number;
	return field.type == VALUE_UNSIGNED_LONG || field.type == VALUE_UNSIGNED_LONG_LONG
	               ? field.value.large
	               : 0;
}

static bool
is_at(const struct nvml_pci *a, const struct nvml_pci *b)
{
	return a->domain == b->domain && a->bus == b->bus && a->device == b->device;
}

/* Where the NVLinks of GPUS[I] lead. */
static void
read_nvlinks(const struct nvml *nvml, struct one *gpus, unsigned count, unsigned i)
{
	struct one *own = &gpus[i];

	for (unsigned link = 0; nvml->nvmlDeviceGetNvLinkState && link < NVLINKS_MOST; link++) {
		struct nvml_pci pci = { 0 };
		unsigned state = 0, type = UINT32_MAX;

		if (nvml->nvmlDeviceGetNvLinkState(own->handle, link, &state) != SUCCESS)
			break; /* it has no such link */
		if (state != ENABLED)
			continue;
		own->active++;
		if (!own->link_bytes)
			own->link_bytes =
				field_of(nvml, own->handle, FIELD_NVLINK_SPEED, link) * 1000000;
		if (nvml->nvmlDeviceGetNvLinkRemoteDeviceType)
			nvml->nvmlDeviceGetNvLinkRemoteDeviceType(own->handle, link, &type);
		if (type == REMOTE_SWITCH)
			own->to_switches++;
		/* Drivers that do not tell the type tell the place. */
		if ((type != REMOTE_GPU && type != UINT32_MAX) ||
		    !nvml->nvmlDeviceGetNvLinkRemotePciInfo_v2 ||
		    nvml->nvmlDeviceGetNvLinkRemotePciInfo_v2(own->handle, link, &pci) != SUCCESS)
			continue;
		for (unsigned k = 0; k < count; k++)
			own->to_gpus[k] += k != i && is_at(&pci, &gpus[k].pci);
	}
}

static void
read_pcie(const struct nvml *nvml, struct one *own)
{
	if (nvml->nvmlDeviceGetMaxPcieLinkGeneration)
		nvml->nvmlDeviceGetMaxPcieLinkGeneration(own->handle, &own->generation);
	if (nvml->nvmlDeviceGetMaxPcieLinkWidth)
		nvml->nvmlDeviceGetMaxPcieLinkWidth(own->handle, &own->width);
}

/* What a lane of PCIe moves in one direction, without the code of its symbols; 0: not known. */
static unsigned long long
lane_bytes(unsigned generation)
{
	static const unsigned long long bytes[] = {
		0,
		250000000,
		500000000,
		8000000000 / 8 * 128 / 130,
		16000000000 / 8 * 128 / 130,
		32000000000 / 8 * 128 / 130,
		64000000000 / 8 * 242 / 256,
	};

	return generation < sizeof bytes / sizeof *bytes ? bytes[generation] : 0;
}

/* ---- what is told ---- */

struct told {
	unsigned kind, path;                     /* enum plumb_link_kind, plumb_link_path or 0 */
	unsigned links, generation, peer_access; /* UINT32_MAX: not known; links: 0 */
	unsigned long long bytes;                /* 0: not known */
};

static void
tell(const char *uuid, const char *peer, const struct told *told)
{
	printf("link=%s %s %u %u %u %u %u %llu\n", uuid, peer, told->kind, told->path, told->links,
	       told->generation, told->peer_access, told->bytes);
}

static unsigned
least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static bool
can(const struct nvml *nvml, gpu a, gpu b, unsigned which, bool otherwise)
{
	unsigned status = UINT32_MAX;

	if (!nvml->nvmlDeviceGetP2PStatus ||
	    nvml->nvmlDeviceGetP2PStatus(a, b, which, &status) != SUCCESS)
		return otherwise;
	return status == P2P_OK;
}

/* The NVLinks between A and B, which is GPU number K; none: TOLD has no kind. */
static void
take_nvlinks(const struct nvml *nvml, const struct one *a, const struct one *b, unsigned k,
             struct told *told)
{
	unsigned direct = a->to_gpus[k], switched = least(a->to_switches, b->to_switches);

	told->kind = PLUMB_LINK_NVLINK;
	told->links = direct;
	if (!direct && switched && can(nvml, a->handle, b->handle, P2P_NVLINK, true)) {
		told->kind = PLUMB_LINK_NVSWITCH;
		told->links = switched;
	} else if (!direct && a->active && b->active &&
	           can(nvml, a->handle, b->handle, P2P_NVLINK, false)) {
		told->links = least(a->active, b->active); /* the other ends are not shown here */
	}
	if (!told->links)
		told->kind = 0;
	else if (a->link_bytes && b->link_bytes)
		told->bytes = told->links *
		              (a->link_bytes < b->link_bytes ? a->link_bytes : b->link_bytes);
}

static unsigned
path_of(const struct nvml *nvml, gpu a, gpu b)
{
	unsigned level = UINT32_MAX;

	if (!nvml->nvmlDeviceGetTopologyCommonAncestor ||
	    nvml->nvmlDeviceGetTopologyCommonAncestor(a, b, &level) != SUCCESS)
		return 0;
	switch (level) {
	case 0:
		return PLUMB_LINK_PATH_BOARD;
	case 10:
		return PLUMB_LINK_PATH_SWITCH;
	case 20:
		return PLUMB_LINK_PATH_SWITCHES;
	case 30:
		return PLUMB_LINK_PATH_HOST_BRIDGE;
	case 40:
		return PLUMB_LINK_PATH_NODE;
	case 50:
		return PLUMB_LINK_PATH_SYSTEM;
	default:
		return 0;
	}
}

/* PCIe of A, or between A and B. */
static void
take_pcie(const struct one *a, const struct one *b, struct told *told)
{
	unsigned generation = b ? least(a->generation, b->generation) : a->generation;

	told->kind = PLUMB_LINK_PCIE;
	told->links = b ? least(a->width, b->width) : a->width;
	told->generation = generation ? generation : UINT32_MAX;
	told->bytes = told->links * lane_bytes(generation);
}

static void
tell_pair(const struct nvml *nvml, const struct one *gpus, unsigned i, unsigned k)
{
	const struct one *a = &gpus[i], *b = &gpus[k];
	struct told told = { .generation = UINT32_MAX, .peer_access = UINT32_MAX };

	if (nvml->nvmlDeviceGetP2PStatus)
		told.peer_access = can(nvml, a->handle, b->handle, P2P_READ, false);
	take_nvlinks(nvml, a, b, k, &told);
	if (!told.kind) {
		take_pcie(a, b, &told);
		told.path = path_of(nvml, a->handle, b->handle);
	}
	if (strcmp(a->uuid, b->uuid) < 0)
		tell(a->uuid, b->uuid, &told);
	else
		tell(b->uuid, a->uuid, &told);
}

/* A GPU and its host. */
static void
tell_host(const struct nvml *nvml, const struct one *own)
{
	struct told told = { .generation = UINT32_MAX, .peer_access = UINT32_MAX };
	unsigned long long count = field_of(nvml, own->handle, FIELD_C2C_COUNT, 0);

	for (unsigned link = 0; link < count && link < NVLINKS_MOST; link++)
		if (field_of(nvml, own->handle, FIELD_C2C_STATUS, link) == ENABLED) {
			told.kind = PLUMB_LINK_C2C;
			told.links++;
			told.bytes += field_of(nvml, own->handle, FIELD_C2C_SPEED, link) * 1000000;
		}
	if (!told.kind)
		take_pcie(own, NULL, &told);
	tell(own->uuid, "host", &told);
}

/* In the child. */
static int
ask(void *data)
{
	static struct one gpus[GPUS_MOST];
	struct nvml nvml = { 0 };
	unsigned found = 0, count = 0;
	const char *why = load(&nvml);
	int result = why ? SUCCESS : nvml.nvmlInit_v2();

	(void)data;
	if (why)
		printf("missing=%s\n", why);
	else if (result != SUCCESS)
		printf("missing=NVML does not start (error %d)\n", result);
	if (why || result != SUCCESS)
		return 3;
	if (nvml.nvmlDeviceGetCount_v2(&found) != SUCCESS)
		found = 0;
	for (unsigned i = 0; i < found && count < GPUS_MOST; i++) {
		struct one *own = &gpus[count];

		count += nvml.nvmlDeviceGetHandleByIndex_v2(i, &own->handle) == SUCCESS &&
		         nvml.nvmlDeviceGetUUID(own->handle, own->uuid, sizeof own->uuid) ==
		                 SUCCESS &&
		         nvml.nvmlDeviceGetPciInfo_v3(own->handle, &own->pci) == SUCCESS;
	}
	for (unsigned i = 0; i < count; i++) {
		read_nvlinks(&nvml, gpus, count, i);
		read_pcie(&nvml, &gpus[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		tell_host(&nvml, &gpus[i]);
		for (unsigned k = i + 1; k < count; k++)
			tell_pair(&nvml, gpus, i, k);
	}
	nvml.nvmlShutdown();
	return 0;
}

/* ---- records ---- */

/* The bytes of a UUID such as "GPU-8116de8a-36b6-…". False: the text is no UUID. */
static bool
read_uuid(const char *text, uint8_t uuid[16])
{
	unsigned digits = 0;

	if (strncmp(text, "GPU-", 4))
		return false;
	for (text += 4; *text; text++) {
		static const char hex[] = "0123456789abcdef";
		const char *digit = strchr(hex, *text);

		if (*text == '-')
			continue;
		if (!digit || digits == 32)
			return false;
		uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | (digit - hex));
		digits++;
	}
	return digits == 32;
}

static void
write_link(struct plumb_arena *arena, const char *line)
{
	char own[64], other[64];
	struct told told;
	struct plumb_record_device_link link = { 0 }, *record;

	if (sscanf(line, "link=%63s %63s %u %u %u %u %u %llu", own, other, &told.kind, &told.path,
	           &told.links, &told.generation, &told.peer_access, &told.bytes) != 8 ||
	    !read_uuid(own, link.uuid) || (strcmp(other, "host") && !read_uuid(other, link.peer)))
		return; /* a part of a GPU has another kind of number, which the program has not */
	record = plumb_arena_append(arena, PLUMB_RECORD_DEVICE_LINK, sizeof *record);
	if (!record)
		return;
	memcpy(record->uuid, link.uuid, sizeof link.uuid);
	memcpy(record->peer, link.peer, sizeof link.peer);
	record->kind = (uint16_t)told.kind;
	record->path = (uint16_t)told.path;
	record->links = told.links ? told.links : UINT32_MAX;
	record->generation = told.generation;
	record->peer_access = told.peer_access;
	record->bytes_per_second = told.bytes ? told.bytes : UINT64_MAX;
	plumb_arena_commit(arena, record);
}

void
plumb_links_write(struct plumb_arena *arena)
{
	struct plumb_probe *probe = malloc(sizeof *probe);
	char why[400];

	if (!probe)
		return;
	plumb_probe_call(probe, ask, NULL, SECONDS);
	if (probe->timed_out || probe->status > 128)
		plumb_arena_environment(arena, "traffic.links",
		                        probe->timed_out ? "NVML gave no answer" : "NVML crashed");
	else if (plumb_probe_value(probe->output, "missing", why, sizeof why))
		plumb_arena_environment(arena, "traffic.links", why);
	/* The last line may be cut. */
	for (char *line = probe->output, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		write_link(arena, line);
	}
	free(probe);
}
