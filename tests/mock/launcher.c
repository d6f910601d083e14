/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of the stand-in driver's kernels for Python programs: loaded with ctypes, needs neither
 * PyTorch's nor Python's headers. A call leaves no Python frame of its own, so that a launch stands
 * under the very line that made it. libcuda.so.1 is the one that the process finds.
 *
 * To launch from C++ inside PyTorch's own operators, launcher_on_free() makes a DLPack tensor (for
 * torch.utils.dlpack.from_dlpack) that launches when its memory is given back, which happens where
 * PyTorch lets go of it: in aten::set_, in the engine after a backward node, in AccumulateGrad, …
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock.h"

#define EXPORT __attribute__((visibility("default")))
#define ELEMENTS 4 /* of a tensor; floats */

static __typeof__(&mock_launch_ex) launch_ex;
static __typeof__(&mock_copy) copy;

/* 0, or 1: there is no stand-in driver; says why on stderr. */
EXPORT int
launcher_open(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (driver) {
		launch_ex = (__typeof__(launch_ex))dlsym(driver, "mock_launch_ex");
		copy = (__typeof__(copy))dlsym(driver, "mock_copy");
	}
	if (launch_ex && copy)
		return 0;
	const char *why = dlerror();
	fprintf(stderr, "launcher: no stand-in driver: %s\n", why ? why : "another libcuda");
	return 1;
}

/* The driver keeps names; these never go away and are few. */
static const char *
keep(const char *name)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const char *names[256];
	const char *found = NULL;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; !found && i < sizeof names / sizeof *names; i++) {
		if (!names[i])
			names[i] = strdup(name);
		if (!strcmp(names[i], name))
			found = names[i];
	}
	pthread_mutex_unlock(&lock);
	if (!found)
		abort();
	return found;
}

EXPORT int
launcher_launch(const char *name, uint64_t ns, uint32_t stream, uint32_t device)
{
	return launch_ex(&(struct mock_launch){
		.name = keep(name), .duration_ns = ns, .stream = stream, .device = device });
}

/* Preloaded, this stands in front of PyTorch's allocation of memory on the CPU. With
 * $MOCK_ALLOCATIONS, or after launcher_open(), each tensor that an operator makes there launches a
 * kernel of as many ns as it has bytes. So PyTorch's operators on the CPU start work, as they do on
 * a GPU. */
EXPORT void *allocate(size_t bytes) __asm__("_ZN3c109alloc_cpuEm");
void *
allocate(size_t bytes)
{
	static int opened;
	void *memory = NULL;
	if (!__atomic_exchange_n(&opened, 1, __ATOMIC_RELAXED) && getenv("MOCK_ALLOCATIONS") &&
	    launcher_open())
		abort();
	if (!bytes || posix_memalign(&memory, 64, bytes))
		return NULL;
	if (launch_ex)
		launcher_launch("tensor", bytes, 0, 0);
	return memory;
}

/* A kernel of one-dimensional grid and block; shared memory in bytes. */
EXPORT int
launcher_kernel(const char *name, uint64_t ns, uint32_t grid, uint32_t block, uint32_t registers,
                uint32_t static_shared, uint32_t dynamic_shared)
{
	return launch_ex(&(struct mock_launch){
		.name = keep(name),
		.duration_ns = ns,
		.grid = { grid, 1, 1 },
		.block = { block, 1, 1 },
		.registers = registers,
		.static_shared = static_shared,
		.dynamic_shared = dynamic_shared,
	});
}

/* FROM and TO: enum mock_place; see struct mock_copy. */
EXPORT int
launcher_copy(uint32_t from, uint32_t to, uint64_t bytes, uint64_t ns, uint64_t host_ns,
              int blocking, int to_peer)
{
	return copy(&(struct mock_copy){
		.from = from,
		.to = to,
		.bytes = bytes,
		.duration_ns = ns,
		.host_ns = host_ns,
		.blocking = blocking,
		.to_peer = to_peer,
	});
}

/* ---- from threads that no Python knows ---- */

struct batch {
	const char *name;
	uint64_t ns, times;
};

static void *
launch_batch(void *data)
{
	const struct batch *batch = data;
	for (uint64_t i = 0; i < batch->times; i++)
		launcher_launch(batch->name, batch->ns, 0, 0);
	return NULL;
}

/* TIMES launches on a thread of its own; waits for them. */
EXPORT int
launcher_native_thread(const char *name, uint64_t ns, uint64_t times)
{
	struct batch batch = { name, ns, times };
	pthread_t thread;
	int result = pthread_create(&thread, NULL, launch_batch, &batch);
	return result ? result : pthread_join(thread, NULL);
}

/* ---- from inside operators ---- */

/* DLPack's DLManagedTensor, from its public ABI. */
struct managed {
	void *data;
	int32_t device_type, device; /* 1: the CPU */
	int32_t dimensions;
	uint8_t type_code, type_bits; /* 2: float */
	uint16_t lanes;
	int64_t *shape, *strides;
	uint64_t offset;
	void *context;
	void (*deleter)(struct managed *);
};

struct tensor {
	struct managed managed;
	struct batch batch;
	int64_t shape[1], strides[1];
	_Alignas(64) float elements[ELEMENTS];
};

static void
launch_and_free(struct managed *managed)
{
	struct tensor *tensor = managed->context;
	launch_batch(&tensor->batch);
	free(tensor);
}

/* A DLManagedTensor of four ones, for a PyCapsule named "dltensor". */
EXPORT void *
launcher_on_free(const char *name, uint64_t ns)
{
	struct tensor *tensor = aligned_alloc(64, sizeof *tensor);
	if (!tensor)
		abort();
	*tensor = (struct tensor){
		.managed = {
			.device_type = 1,
			.dimensions = 1,
			.type_code = 2,
			.type_bits = 32,
			.lanes = 1,
			.deleter = launch_and_free,
		},
		.batch = { keep(name), ns, 1 },
		.shape = { ELEMENTS },
		.strides = { 1 },
	};
	for (int i = 0; i < ELEMENTS; i++)
		tensor->elements[i] = 1;
	tensor->managed.data = tensor->elements;
	tensor->managed.shape = tensor->shape;
	tensor->managed.strides = tensor->strides;
	tensor->managed.context = tensor;
	return &tensor->managed;
}
