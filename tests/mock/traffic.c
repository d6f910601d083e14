/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traffic SCENARIO DEVICES [NUMBER…]: plays one program of many GPUs on the stand-in Compute
 * Sanitizer. What each scenario accesses is told where it is played; tests/unit/test_traffic.c has
 * the formulas.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sanitizer.h"

int cuInit(unsigned flags);
/* The stand-in NVSHMEM. */
int nvshmem_my_pe(void);
int nvshmem_n_pes(void);
void *nvshmem_malloc(size_t bytes);
void *nvshmem_calloc(size_t count, size_t bytes);
void nvshmem_free(void *address);
void *nvshmem_ptr(const void *address, int pe);

#define BASE 0x7f0000000000ull
#define APART 0x100000000ull
#define BYTES (1u << 20)
enum { LOAD = 1, STORE = 2, ATOMIC = 3, ATOMIC_SYSTEM = 7 };
enum { GLOBAL = 3, ASYNC_COPY = 14, BULK_LOAD = 30, BULK_STORE = 35, BULK_REDUCTION = 37 };

static int devices, modules[SAN_DEVICES];
static uint64_t numbers[8];
static struct san_access *list;
static uint32_t count, room;

static uint64_t
buffer(int device)
{
	return BASE + APART * (uint64_t)device;
}

static struct san_access *
next(uint32_t patch, uint32_t flags, uint32_t width, uint64_t pc)
{
	if (count == room)
		list = realloc(list, (room = room * 2 + 64) * sizeof *list);
	if (!list)
		exit(2);
	struct san_access *access = &list[count++];
	*access = (struct san_access){ .patch = patch, .flags = flags, .width = width, .pc = pc };
	return access;
}

/* NUMBER elements of WIDTH bytes from ADDRESS on, one by each thread. */
static void
elements(uint32_t flags, uint32_t width, uint64_t pc, uint64_t address, uint64_t number)
{
	for (uint64_t i = 0; i < number; i += 32) {
		struct san_access *access = next(GLOBAL, flags, width, pc);
		for (uint32_t lane = 0; lane < 32 && i + lane < number; lane++) {
			access->active |= 1u << lane;
			access->address[lane] = address + (i + lane) * width;
		}
	}
}

static void
launch(int device, int function, int stream)
{
	san_launch(modules[device], function, stream, list, count);
	count = 0;
}

/* How a scenario begins. */
enum { EARLY, LATE, ALONE };

static void
set_up(int late)
{
	cuInit(0);
	for (int i = 0; i < devices; i++) {
		san_context(i);
		if (late != LATE)
			modules[i] = san_module(i, "kernel");
	}
	/* The order of these events is not documented: with LATE, a peer's comes first. ALONE: no
	 * device reaches another one. */
	for (int i = 0; late != ALONE && i < devices; i++) {
		if (!late)
			san_allocate(i, buffer(i), BYTES, 0);
		for (int k = 0; k < devices; k++)
			if (i != k)
				san_peer(i, k, buffer(i), BYTES);
		if (late)
			san_allocate(i, buffer(i), BYTES, 0);
	}
	for (int i = 0; late == LATE && i < devices; i++)
		modules[i] = san_module(i, "kernel");
}

static void
synchronize(void)
{
	for (int i = 0; i < devices; i++)
		san_synchronize(i, -1);
}

/* Each device stores (or loads, or adds to) N elements of S bytes to the next one's buffer, and
 * reads its own. FLAGS as numbers[2]. */
static void
ring(void)
{
	for (int i = 0; i < devices; i++) {
		elements(LOAD, (uint32_t)numbers[1], 0x10, buffer(i), numbers[0]);
		elements((uint32_t)numbers[2], (uint32_t)numbers[1], 0x20,
		         buffer((i + 1) % devices), numbers[0]);
		launch(i, 1, 0);
	}
	synchronize();
}

/* Lane l stores to device l mod DEVICES. */
static void
mixed(void)
{
	for (int i = 0; i < devices; i++) {
		for (uint64_t k = 0; k < numbers[0]; k += 32) {
			struct san_access *access = next(GLOBAL, STORE, 4, 0x30);
			access->active = UINT32_MAX;
			for (int lane = 0; lane < 32; lane++)
				access->address[lane] =
					buffer(lane % devices) + (k + (uint64_t)lane) * 4;
		}
		launch(i, 2, 1);
	}
	synchronize();
}

/* One address is mapped to the memory of one device after the other. The sanitizer of CUDA 13.0
 * tells the allocation only, and not who reaches it. */
static void
mapped(void)
{
	uint64_t address = BASE + APART * 41;
	for (int owner = 0; owner < devices; owner++) {
		san_allocate(owner, address, 4096, 0);
		san_access(owner, address, 4096);
		for (int i = 0; i < devices; i++) {
			elements(STORE, 4, 0x90, address, 64 * (uint64_t)(owner + 1));
			launch(i, 5, 0);
		}
		synchronize();
		san_free(owner, address, 4096, 0);
	}
}

/* Each iteration writes nx - 2 floats to the neighbours on both sides. */
static void
halo(void)
{
	uint64_t inner = numbers[1] - 2;
	for (uint64_t k = 0; k < numbers[0]; k++)
		for (int i = 0; i < devices; i++) {
			elements(LOAD, 4, 0x10, buffer(i), inner);
			elements(STORE, 4, 0x40, buffer((i + 1) % devices), inner);
			elements(STORE, 4, 0x50, buffer((i + devices - 1) % devices) + 65536,
			         inner);
			launch(i, 3, 0);
			if (k % 3 == 2)
				san_synchronize(i, 0);
		}
	synchronize();
}

/* A matrix of numbers[0] bytes is transposed: each device stores a part to each. */
static void
transpose(void)
{
	uint64_t part = numbers[0] / (uint64_t)(devices * devices) / 8;
	for (int i = 0; i < devices; i++) {
		for (int k = 0; k < devices; k++)
			elements(STORE, 8, 0x60, buffer(k) + (uint64_t)i * part * 8, part);
		launch(i, 0, 2);
	}
	synchronize();
}

/* An array of pointers lies on the last device: each device reads it T times with one lane, and
 * then stores a flag of 4 bytes to the next. */
static void
pointers(void)
{
	uint64_t array = BASE + APART * 32;
	san_allocate(devices - 1, array, 512, 0);
	for (int k = 0; k < devices - 1; k++)
		san_peer(devices - 1, k, array, 512);
	for (int i = 0; i < devices; i++) {
		for (uint64_t t = 0; t < numbers[0]; t++) {
			elements(LOAD, 8, 0x70, array + (uint64_t)i * 8, 1);
			elements(STORE, 4, 0x80, buffer((i + 1) % devices), 1);
		}
		launch(i, 4, 0);
	}
	synchronize();
}

/* An address belongs to one device, and after that to another one, while nobody waits. */
static void
reuse(void)
{
	uint64_t address = BASE + APART * 40;
	for (int owner = 0; owner < devices; owner++) {
		san_allocate(owner, address, 4096, 0);
		for (int k = 0; k < devices; k++)
			if (k != owner)
				san_peer(owner, k, address, 4096);
		for (int i = 0; i < devices; i++) {
			elements(STORE, 4, 0x90, address, 64 * (uint64_t)(owner + 1));
			launch(i, 5, owner % 2);
		}
		for (int k = 0; k < devices; k++)
			if (k != owner)
				san_free(k, address, 4096, 16);
		san_free(owner, address, 4096, 0);
	}
	synchronize();
}

/* This process is one PE of NVSHMEM, with a heap on the device of its number. It stores N elements
 * of 4 bytes into the next PE's second allocation, and one to NVSHMEM's own memory there. Then
 * the allocations are freed. */
static void
symmetric(void)
{
	const uint64_t heap = 0x7f8000000000ull, bytes = 0x100000;
	int me = nvshmem_my_pe(), all = nvshmem_n_pes(), next = (me + 1) % all;
	san_allocate(me, heap, bytes, 0);
	for (int k = 1; k < all; k++)
		san_peer((me + k) % all, me, heap + (uint64_t)k * bytes, bytes);
	san_free(me, BASE + APART * 80, 4096, 0); /* what is not known by now is of others */
	void *first = nvshmem_malloc(4096), *second = nvshmem_calloc(1024, 8);
	elements(STORE, 4, 0x20, (uintptr_t)nvshmem_ptr(second, next), numbers[0]);
	elements(STORE, 4, 0x20, heap + bytes + bytes / 2, 1);
	launch(me, 1, 0);
	san_synchronize(me, -1);
	nvshmem_free(first);
	nvshmem_free(second);
	elements(STORE, 4, 0x20, (uintptr_t)nvshmem_ptr(second, next), 1); /* to nothing */
	launch(me, 1, 0);
	synchronize();
}

/* The call of a handle's memory at ADDRESS. */
static void
map(int device, uint64_t handle, uint64_t address, size_t bytes)
{
	const struct {
		uint64_t address;
		size_t bytes, offset;
		uint64_t handle, flags;
	} parameters = { address, bytes, 0, handle, 0 };
	san_call(device, 551, "cuMemMap", &parameters);
}

/* Two processes, by STANDIN_PE: PE 0 makes memory of two handles on device 0, and exports them by
 * the file SHARED_FILE: the first one; with numbers[1] also the second one, which is larger if that
 * is 1. PE 1 imports the first one and
 * stores N elements of 4 bytes there, from device 1. numbers[2]: when the sanitizer tells of that
 * memory: 0 not but as a peer's, 1 after the mapping, 2 before it. */
static void
handles(void)
{
	const uint64_t at = BASE + APART * 85;
	const char *path = getenv("SHARED_FILE");
	int me = nvshmem_my_pe(), file = path ? open(path, O_RDONLY) : -1;
	uint64_t handle = 7;
	for (uint64_t i = 0; !me && i < 2; i++) {
		const struct {
			const void *share;
			uint64_t handle;
			int type;
		} export = { &file, handle + i, 1 };
		const struct {
			const uint64_t *handle;
		} create = { &export.handle };
		size_t bytes = 65536u << (i && numbers[1] == 1);
		san_call(0, 549, "cuMemCreate", &create);
		if (!i) /* either order */
			san_call(0, 554, "cuMemExportToShareableHandle", &export);
		san_allocate(0, at + i * APART, bytes, 0);
		map(0, handle + i, at + i * APART, bytes);
		if (i && numbers[1])
			san_call(0, 554, "cuMemExportToShareableHandle", &export);
	}
	if (!me)
		return;
	const struct {
		uint64_t *handle;
		const void *share;
		int type;
	} import = { &handle, (void *)(intptr_t)file, 1 };
	san_call(1, 555, "cuMemImportFromShareableHandle", &import);
	if (numbers[2] == 2)
		san_allocate(0, at, 65536, 0);
	map(1, handle, at, 65536);
	if (numbers[2] == 1)
		san_allocate(0, at, 65536, 0);
	san_peer(0, 1, at, 65536);
	elements(STORE, 4, 0x20, at, numbers[0]);
	launch(1, 1, 0);
	synchronize();
}

/* Each device copies N elements of 4 bytes from the next one's buffer into a ghost of its own, 10
 * times (with numbers[2]: the other one stores them there), and reads M of them. */
static void
ghost(void)
{
	for (int i = 0; i < devices; i++) {
		uint64_t at = BASE + APART * (uint64_t)(70 + i);
		san_allocate(i, at, BYTES, 0);
		for (int k = 0; k < devices; k++)
			if (k != i)
				san_peer(i, k, at, BYTES);
	}
	for (int turn = 0; turn < 10; turn++)
		for (int i = 0; i < devices; i++) {
			int next = (i + 1) % devices;
			if (numbers[2]) {
				elements(STORE, 4, 0x10, BASE + APART * (uint64_t)(70 + next),
				         numbers[0]);
			} else {
				elements(LOAD, 4, 0x10, buffer(next), numbers[0]);
				elements(STORE, 4, 0x20, BASE + APART * (uint64_t)(70 + i),
				         numbers[0]);
			}
			launch(i, 1, 0);
			elements(LOAD, 4, 0x10, BASE + APART * (uint64_t)(70 + i), numbers[1]);
			launch(i, 2, 0);
		}
	synchronize();
}

/* Copies: of a thread (N times 4 bytes), and in bulk (N times 64 bytes, and a reduction). */
static void
copies(void)
{
	for (int i = 0; i < devices; i++) {
		uint64_t to = buffer((i + 1) % devices);
		for (uint64_t k = 0; k < numbers[0]; k++) {
			struct san_access *access = next(ASYNC_COPY, 0, 4, 0xa0);
			access->active = 1;
			access->address[0] = to + k * 4;
			access = next(BULK_LOAD, 4, 0, 0xb0);
			access->address[0] = to + k * 64;
			access = next(BULK_STORE, 4 | 0xff0000, 0, 0xc0);
			access->address[0] = to + k * 64;
			access = next(BULK_REDUCTION, 4, 0, 0xd0);
			access->address[0] = to + k * 64;
		}
		launch(i, 6, 0);
	}
	synchronize();
}

/* Kernels of two devices wait for each other: nothing is done before all are launched. Then two
 * thirds of them are known to have ended. */
static void
spin(void)
{
	for (int k = 0; k < 6; k++)
		for (int i = 0; i < devices; i++) {
			elements(STORE, 4, 0x20, buffer((i + 1) % devices), 32);
			launch(i, 1, k % 3);
		}
	san_synchronize(0, 1);
	san_allocate(0, BASE + APART * 50, 4096, 0);
	san_synchronize(0, 2);
	synchronize();
}

/* A graph of one kernel is launched R times. */
static void
replays(void)
{
	for (uint64_t r = 0; r < numbers[1]; r++)
		for (int i = 0; i < devices; i++) {
			elements(STORE, 4, 0x20, buffer((i + 1) % devices), numbers[0]);
			san_replay(modules[i], 1, 0, list, count);
			count = 0;
		}
	synchronize();
}

/* Launches of very different sizes: 1, 2, 4 … 128 warps, in turn. The program waits after each 50,
 * or after each numbers[1]. */
static void
unequal(void)
{
	uint64_t each = numbers[1] ? numbers[1] : 50;
	for (uint64_t k = 0; k < numbers[0]; k++) {
		elements(STORE, 4, 0x20, buffer(1), 32ull << k % 8);
		launch(0, 1, 0);
		if (k % each == each - 1)
			san_synchronize(0, k % (2 * each) == 2 * each - 1 ? -1 : 0);
	}
	synchronize();
}

/* A kernel that reaches nothing for long, and then does. */
static void
idle(void)
{
	for (uint64_t k = 0; k < numbers[0]; k++) {
		elements(STORE, 4, 0x20, k + 1 == numbers[0] ? buffer(1) : buffer(0), 32);
		launch(0, 1, 0);
		san_synchronize(0, -1);
		usleep(k % 16 ? 0 : 210000);
	}
	printf("switches %llu\n", (unsigned long long)san_switches());
}

/* Copies that the host calls. */
static void
host(void)
{
	uint64_t from[] = { buffer(0), buffer(0) + 4096 }, to[] = { buffer(1), buffer(1) + 4096 },
		 bytes[] = { 100, 200 };
	san_host(BASE - APART, 4096);
	san_copy(0, buffer(0), 1, buffer(1), 12345);
	san_copy(-1, BASE - APART, 0, buffer(0), 4096);
	san_copy(1, buffer(1), -1, 0x7000, 128); /* the host's, which nobody allocated by CUDA */
	san_batch(0, from, to, bytes, 2);
	san_replay_copy(0, buffer(0), 1, buffer(1), 7000);
	elements(STORE, 8, 0x20, BASE - APART, 64); /* and a kernel that writes the host's */
	launch(0, 1, 0);
	synchronize();
}

/* Memory of another process, on device 1. */
static void
import(void)
{
	uint64_t address = BASE + APART * 60;
	san_peer(1, 0, address, 8192);
	san_ipc(0, 1, address, 7);
	san_ipc(0, 0, buffer(0), 9);
	elements(LOAD, 16, 0x20, address, 100);
	launch(0, 1, 0);
	synchronize();
}

/* A module goes while its counts were not read, and another one takes its place. */
static void
unload(void)
{
	elements(STORE, 4, 0x20, buffer(1), 32);
	launch(0, 1, 0);
	san_run(0, 0);
	san_module_unload(modules[0]);
	modules[0] = san_module(0, "other");
	elements(STORE, 8, 0x30, buffer(1), 32);
	launch(0, 2, 0);
	synchronize();
}

/* To addresses that nothing is known of. */
static void
unknown(void)
{
	elements(STORE, 4, 0x20, BASE + APART * 90, 32);
	launch(0, 1, 0);
	synchronize();
}

static const struct {
	const char *name;
	void (*play)(void);
	int late; /* modules are loaded after peers can be reached */
} scenarios[] = {
	{ "ring", ring, 0 },           { "late", ring, LATE },        { "mixed", mixed, 0 },
	{ "halo", halo, 0 },           { "transpose", transpose, 0 }, { "pointers", pointers, 0 },
	{ "reuse", reuse, 0 },         { "copies", copies, 0 },       { "spin", spin, 0 },
	{ "replays", replays, 0 },     { "unequal", unequal, 0 },     { "idle", idle, 0 },
	{ "host", host, 0 },           { "import", import, 0 },       { "unload", unload, 0 },
	{ "unknown", unknown, 0 },     { "mapped", mapped, ALONE },   { "ghost", ghost, 0 },
	{ "symmetric", symmetric, 0 }, { "handles", handles, 0 },
};

int
main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	devices = atoi(argv[2]);
	for (int i = 3; i < argc && i < 11; i++)
		numbers[i - 3] = strtoull(argv[i], NULL, 0);
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		if (!strcmp(argv[1], scenarios[i].name)) {
			set_up(scenarios[i].late);
			scenarios[i].play();
			free(list);
			return 0;
		}
	return 2;
}
