/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracles NAME [GPUS]: programs whose traffic is known from a formula, which run.py has. One thread
 * drives all GPUs. In ring and halo, the kernels of all GPUs wait for each other: a tool that waits
 * for one of them before the next is launched hangs. Each program checks its own result and prints
 * one line of JSON: {"ok": true, "gpus": 2}.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define ELEMENTS 10000 /* not a multiple of 32 */
#define BLOCKS 20
#define THREADS 128

static bool ok = true;

static void
expect(bool is)
{
	ok = ok && is;
}

/* All bytes of MEMORY up to BYTES are VALUE. */
static void
expect_bytes(const char *memory, size_t bytes, char value)
{
	std::vector<char> copy(bytes);
	CHECK(cudaMemcpy(copy.data(), memory, bytes, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < bytes; i++)
		expect(copy[i] == value);
}

/* ---- 1, 2: rings, with kernels that wait for each other ---- */

/* Says to the next GPU that this one is here, and waits for the one before: 4 bytes, one lane. */
__device__ void
meet(int *mine, int *next, int turn)
{
	if (blockIdx.x || threadIdx.x)
		return;
	asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(next), "r"(turn) : "memory");
	int seen = 0;
	while (seen < turn)
		asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
}

template <int width>
__global__ void
ring_store(char *next, size_t n, int *my_flag, int *next_flag, int turn)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		store<width>(next + i * width, 7);
	meet(my_flag, next_flag, turn);
}

template <int width>
__global__ void
ring_load(const char *next, char *mine, size_t n)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		store<width>(mine + i * width, load<width>(next + i * width));
}

struct buffers {
	std::vector<char *> data;
	std::vector<int *> flags;
};

static buffers
make_buffers(size_t bytes)
{
	buffers b;
	for (int i = 0; i < devices; i++) {
		b.data.push_back(allocate(i, bytes));
		b.flags.push_back((int *)allocate(i, 256));
	}
	return b;
}

template <int width>
static void
ring_store_of(const buffers &b, int turn)
{
	for (int i = 0; i < devices; i++) {
		int next = (i + 1) % devices;
		CHECK(cudaSetDevice(i));
		ring_store<width><<<BLOCKS, THREADS>>>(b.data[next], ELEMENTS, b.flags[i],
		                                       b.flags[next], turn);
		CHECK(cudaGetLastError());
	}
	synchronize();
	for (int i = 0; i < devices; i++)
		expect_bytes(b.data[i], ELEMENTS * width, 7);
}

static void
run_ring()
{
	buffers b = make_buffers(ELEMENTS * 16);
	ring_store_of<1>(b, 1);
	ring_store_of<2>(b, 2);
	ring_store_of<4>(b, 3);
	ring_store_of<8>(b, 4);
	ring_store_of<16>(b, 5);
}

template <int width>
static void
ring_load_of(const buffers &b, const buffers &mine)
{
	for (int i = 0; i < devices; i++) {
		CHECK(cudaSetDevice(i));
		ring_load<width><<<BLOCKS, THREADS>>>(b.data[(i + 1) % devices], mine.data[i],
		                                      ELEMENTS);
		CHECK(cudaGetLastError());
	}
	synchronize();
}

static void
run_load()
{
	buffers b = make_buffers(ELEMENTS * 16), mine = make_buffers(ELEMENTS * 16);
	ring_load_of<1>(b, mine);
	ring_load_of<2>(b, mine);
	ring_load_of<4>(b, mine);
	ring_load_of<8>(b, mine);
	ring_load_of<16>(b, mine);
	expect_bytes(mine.data[0], ELEMENTS * 16, 0);
}

/* ---- 3: lanes of a warp reach different GPUs ---- */

struct pointers {
	char *of[8];
};

__global__ void
mixed_store(pointers to, int gpus, size_t n)
{
	size_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		store<4>(to.of[i % 32 % gpus] + i * 4, 9);
}

static void
run_mixed()
{
	buffers b = make_buffers(4096 * 4);
	pointers to = {};
	for (int i = 0; i < devices; i++)
		to.of[i] = b.data[i];
	for (int i = 0; i < devices; i++) {
		CHECK(cudaSetDevice(i));
		mixed_store<<<32, 128>>>(to, devices, 4096);
	}
	synchronize();
}

/* ---- 4: a halo in a periodic ring ---- */

__global__ void
halo_step(const float *old, float *now, float *above, float *below, int nx, int ny)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x;
	if (x < 1 || x >= nx - 1)
		return;
	for (int y = 1; y <= ny; y++) {
		float sum = old[(y - 1) * nx + x] + old[(y + 1) * nx + x] + old[y * nx + x - 1] +
		            old[y * nx + x + 1];
		now[y * nx + x] = 0.25f * sum;
		if (y == 1)
			asm volatile("st.global.f32 [%0], %1;" ::"l"(above + (ny + 1) * nx + x),
			             "f"(0.25f * sum)
			             : "memory");
		if (y == ny)
			asm volatile("st.global.f32 [%0], %1;" ::"l"(below + x), "f"(0.25f * sum)
			             : "memory");
	}
}

static void
run_halo()
{
	const int nx = 1026, ny = 16, steps = 10;
	std::vector<float *> grids[2];
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < devices; i++)
			grids[k].push_back((float *)allocate(i, nx * (ny + 2) * sizeof(float)));
	for (int step = 0; step < steps; step++) {
		for (int i = 0; i < devices; i++) {
			std::vector<float *> &now = grids[(step + 1) % 2];
			CHECK(cudaSetDevice(i));
			halo_step<<<(nx + 127) / 128, 128>>>(grids[step % 2][i], now[i],
			                                     now[(i + devices - 1) % devices],
			                                     now[(i + 1) % devices], nx, ny);
		}
		synchronize();
	}
}

/* ---- 5: a transpose, all to all ---- */

__global__ void
transpose_part(const char *mine, char *to, size_t n)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		store<8>(to + i * 8, load<8>(mine + i * 8));
}

static void
run_transpose()
{
	size_t part = 8192; /* elements of 8 bytes */
	buffers from = make_buffers(part * 8 * devices), to = make_buffers(part * 8 * devices);
	for (int i = 0; i < devices; i++)
		for (int k = 0; k < devices; k++) {
			CHECK(cudaSetDevice(i));
			transpose_part<<<BLOCKS, THREADS>>>(from.data[i] + k * part * 8,
			                                    to.data[k] + i * part * 8, part);
		}
	synchronize();
}

/* ---- 6: an array of pointers on the wrong GPU ---- */

__global__ void
update_flags(int **flags, int next, int updates)
{
	for (int t = 1; t <= updates; t++) {
		int *flag;
		asm volatile("ld.global.u64 %0, [%1];" : "=l"(flag) : "l"(flags + next) : "memory");
		asm volatile("st.global.u32 [%0], %1;" ::"l"(flag), "r"(t) : "memory");
	}
}

static void
run_pointers(bool fixed)
{
	const int updates = 1000;
	std::vector<int *> flags;
	std::vector<int **> arrays;
	for (int i = 0; i < devices; i++)
		flags.push_back((int *)allocate(i, 1024));
	for (int i = 0; i < devices; i++) {
		arrays.push_back(fixed || !i ? (int **)allocate(fixed ? i : devices - 1, 4096)
		                             : arrays[0]);
		CHECK(cudaMemcpy(arrays[i], flags.data(), devices * sizeof(int *),
		                 cudaMemcpyHostToDevice));
	}
	for (int i = 0; i < devices; i++) {
		CHECK(cudaSetDevice(i));
		update_flags<<<1, 1>>>(arrays[i], (i + 1) % devices, updates);
	}
	synchronize();
	for (int i = 0; i < devices; i++) {
		int value = 0;
		CHECK(cudaMemcpy(&value, flags[i], 4, cudaMemcpyDeviceToHost));
		expect(value == updates);
	}
}

/* ---- 7: atomics ---- */

__global__ void
add_remote(int *next, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned old;
	if (i >= n)
		return;
	asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(next + i) : "memory");
	asm volatile("red.global.add.u32 [%0], 1;" ::"l"(next + i) : "memory");
	asm volatile("atom.sys.global.add.u32 %0, [%1], 1;"
	             : "=r"(old)
	             : "l"(next + i)
	             : "memory");
	(void)old;
}

static void
run_atomics()
{
	buffers b = make_buffers(4096 * 4);
	for (int i = 0; i < devices; i++) {
		CHECK(cudaSetDevice(i));
		add_remote<<<32, 128>>>((int *)b.data[(i + 1) % devices], 4096);
	}
	synchronize();
	int value = 0;
	CHECK(cudaMemcpy(&value, b.data[0], 4, cudaMemcpyDeviceToHost));
	expect(value == 3);
}

/* ---- 8: an address belongs to one GPU, and then to another ---- */

template <int width>
__global__ void
fill(char *at, size_t n)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		store<width>(at + i * width, 5);
}

static void
run_reuse()
{
	size_t bytes = 2 << 20;
	CUdeviceptr at = 0;
	CHECK(cuMemAddressReserve(&at, bytes, 0, 0, 0));
	for (int owner = 0; owner < devices; owner++) {
		CUmemAllocationProp prop = {};
		CUmemGenericAllocationHandle handle;
		std::vector<CUmemAccessDesc> access(devices);
		prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
		prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		prop.location.id = owner;
		CHECK(cuMemCreate(&handle, bytes, &prop, 0));
		CHECK(cuMemMap(at, bytes, 0, handle, 0));
		for (int i = 0; i < devices; i++) {
			access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
			access[i].location.id = i;
			access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		}
		CHECK(cuMemSetAccess(at, bytes, access.data(), devices));
		for (int i = 0; i < devices; i++) {
			CHECK(cudaSetDevice(i));
			fill<4><<<BLOCKS, THREADS>>>((char *)at, 1000 * (owner + 1));
		}
		synchronize();
		CHECK(cuMemUnmap(at, bytes));
		CHECK(cuMemRelease(handle));
	}
}

/* ---- 9: what one call path allocates is one object ---- */

static __attribute__((noinline)) char *
deep(int levels, int device)
{
	return levels ? deep(levels - 1, device) : allocate(device, 12288);
}

static void
run_objects()
{
	std::vector<char *> all;
	for (int k = 0; k < 5; k++)
		all.push_back(allocate(1, 4096));
	all.push_back(allocate(1, 8192));
	all.push_back(deep(20, 1));
	CHECK(cudaSetDevice(0));
	for (char *memory : all)
		fill<1><<<1, 32>>>(memory, 32);
	synchronize();
}

/* ---- 10: copies that the host calls ---- */

static void
run_copies()
{
	size_t row = 1000, rows = 50, pitch = 1024, bytes = pitch * rows;
	char *a = allocate(0, bytes), *b = allocate(1, bytes);
	cudaStream_t stream;
	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMemcpyPeer(b, 1, a, 0, 1111));
	CHECK(cudaMemcpyPeerAsync(b, 1, a, 0, 2222, stream));
	CHECK(cudaMemcpyAsync(b, a, 3333, cudaMemcpyDefault, stream));
	CHECK(cudaMemcpy2DAsync(b, pitch, a, pitch, row, rows, cudaMemcpyDefault, stream));
	cudaMemcpy3DPeerParms p = {};
	p.srcDevice = 0;
	p.dstDevice = 1;
	p.srcPtr = make_cudaPitchedPtr(a, pitch, row, rows);
	p.dstPtr = make_cudaPitchedPtr(b, pitch, row, rows);
	p.extent = make_cudaExtent(row, rows, 1);
	CHECK(cudaMemcpy3DPeerAsync(&p, stream));
	cudaGraph_t graph;
	cudaGraphExec_t executable;
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaMemcpyAsync(b, a, 4444, cudaMemcpyDefault, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&executable, graph, 0));
	for (int k = 0; k < 3; k++)
		CHECK(cudaGraphLaunch(executable, stream));
	synchronize();
}

/* ---- 11: copies of the kernel: by threads and in bulk ---- */

__global__ void
copy_in(const char *from, char *to)
{
#if __CUDA_ARCH__ >= 900
	__shared__ alignas(128) char shared[4096];
	__shared__ alignas(8) uint64_t barrier;
	uint32_t at = (uint32_t)__cvta_generic_to_shared(shared),
	         bar = (uint32_t)__cvta_generic_to_shared(&barrier), done = 0;
	/* Each thread: 16 bytes. */
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + threadIdx.x * 16),
	             "l"(from + threadIdx.x * 16)
	             : "memory");
	asm volatile("cp.async.wait_all;" ::: "memory");
	__syncthreads();
	if (threadIdx.x)
		return;
	asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar) : "memory");
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 2048;" ::"r"(bar) : "memory");
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
	             "2048, [%2];" ::"r"(at),
	             "l"(from), "r"(bar)
	             : "memory");
	while (!done)
		asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; "
		             "selp.u32 %0, 1, 0, p; }"
		             : "=r"(done)
		             : "r"(bar)
		             : "memory");
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(to),
	             "r"(at)
	             : "memory");
	asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], "
	             "512;" ::"l"(to + 2048),
	             "r"(at)
	             : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#else
	(void)from;
	(void)to;
#endif
}

static void
run_bulk()
{
	buffers b = make_buffers(4096), to = make_buffers(8192);
	for (int i = 0; i < devices; i++) {
		int next = (i + 1) % devices;
		CHECK(cudaSetDevice(i));
		copy_in<<<1, 128>>>(b.data[next], to.data[next]);
		CHECK(cudaGetLastError());
	}
	synchronize();
}

/* ---- 12: two processes ---- */

/* The other process owns the memory on GPU 1; this one stores from GPU 0. */
static void
run_ipc()
{
	int to_child[2], to_parent[2];
	cudaIpcMemHandle_t handle;
	expect(!pipe(to_child) && !pipe(to_parent));
	pid_t child = fork(); /* before CUDA is there */
	if (!child) {
		char *memory = allocate(1, 65536), byte = 0;
		CHECK(cudaIpcGetMemHandle(&handle, memory));
		expect(write(to_parent[1], &handle, sizeof handle) == sizeof handle);
		expect(read(to_child[0], &byte, 1) == 1);
		expect_bytes(memory, ELEMENTS * 4, 5);
		exit(ok ? 0 : 1);
	}
	int status = 0;
	void *memory;
	expect(read(to_parent[0], &handle, sizeof handle) == sizeof handle);
	devices = 2;
	CHECK(cudaSetDevice(0));
	CHECK(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
	fill<4><<<BLOCKS, THREADS>>>((char *)memory, ELEMENTS);
	CHECK(cudaDeviceSynchronize());
	expect(write(to_child[1], "x", 1) == 1);
	waitpid(child, &status, 0);
	expect(status == 0);
	CHECK(cudaIpcCloseMemHandle(memory));
}

/* Sends the file FD over the socket TO. */
static void
send_file(int to, int fd)
{
	char byte = 'x', room[CMSG_SPACE(sizeof fd)] = {};
	struct iovec part = { &byte, 1 };
	struct msghdr message = {};
	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = room;
	message.msg_controllen = sizeof room;
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(head), &fd, sizeof fd);
	expect(sendmsg(to, &message, 0) == 1);
}

static int
receive_file(int from)
{
	int fd = -1;
	char byte, room[CMSG_SPACE(sizeof fd)];
	struct iovec part = { &byte, 1 };
	struct msghdr message = {};
	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = room;
	message.msg_controllen = sizeof room;
	expect(recvmsg(from, &message, 0) == 1);
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	if (head)
		memcpy(&fd, CMSG_DATA(head), sizeof fd);
	return fd;
}

/* Maps the memory of HANDLE, which GPU reaches. */
static char *
map_for(CUmemGenericAllocationHandle handle, size_t bytes, int gpu)
{
	CUdeviceptr at = 0;
	CUmemAccessDesc access = {};
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location.id = gpu;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CHECK(cuMemAddressReserve(&at, bytes, 0, 0, 0));
	CHECK(cuMemMap(at, bytes, 0, handle, 0));
	CHECK(cuMemSetAccess(at, bytes, &access, 1));
	return (char *)at;
}

/* As ipc, with memory of a handle that is passed on as a file. Says what kind of file it is: by that
 * it depends whether others can tell it apart. */
static void
run_file()
{
	const size_t bytes = 2 << 20;
	int sockets[2], status = 0, fd = -1;
	CUmemGenericAllocationHandle handle;
	char byte = 0;
	expect(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid_t child = fork(); /* before CUDA is there */
	if (!child) {
		CUmemAllocationProp prop = {};
		prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
		prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
		prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		prop.location.id = 1;
		CHECK(cudaSetDevice(1));
		CHECK(cudaFree(nullptr));
		CHECK(cuMemCreate(&handle, bytes, &prop, 0));
		char *memory = map_for(handle, bytes, 1);
		CHECK(cudaMemset(memory, 0, bytes));
		CHECK(cudaDeviceSynchronize());
		CHECK(cuMemExportToShareableHandle(&fd, handle,
		                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		send_file(sockets[1], fd);
		expect(read(sockets[1], &byte, 1) == 1);
		expect_bytes(memory, ELEMENTS * 4, 5);
		exit(ok ? 0 : 1);
	}
	devices = 2;
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(nullptr));
	fd = receive_file(sockets[0]);
	struct stat file = {};
	char path[64], name[256] = "";
	fstat(fd, &file);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	expect(readlink(path, name, sizeof name - 1) > 0);
	fprintf(stderr, "the handle is the file %s, mode %o, device %lx, inode %lu\n", name,
	        file.st_mode, (unsigned long)file.st_dev, (unsigned long)file.st_ino);
	CHECK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
	                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	fill<4><<<BLOCKS, THREADS>>>(map_for(handle, bytes, 0), ELEMENTS);
	CHECK(cudaDeviceSynchronize());
	expect(write(sockets[0], "x", 1) == 1);
	waitpid(child, &status, 0);
	expect(status == 0);
}

/* ---- 15: a graph that is launched again and again ---- */

static void
run_graph()
{
	buffers b = make_buffers(ELEMENTS * 4);
	for (int i = 0; i < devices; i++) {
		cudaStream_t stream;
		cudaGraph_t graph;
		cudaGraphExec_t executable;
		CHECK(cudaSetDevice(i));
		CHECK(cudaStreamCreate(&stream));
		CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
		fill<4><<<BLOCKS, THREADS, 0, stream>>>(b.data[(i + 1) % devices], ELEMENTS);
		CHECK(cudaStreamEndCapture(stream, &graph));
		CHECK(cudaGraphInstantiate(&executable, graph, 0));
		for (int k = 0; k < 7; k++)
			CHECK(cudaGraphLaunch(executable, stream));
	}
	synchronize();
}

/* Launches of very different size, for --traffic=sampled. */
static void
run_unequal()
{
	buffers b = make_buffers(1 << 20);
	for (int k = 0; k < 4000; k++)
		for (int i = 0; i < devices; i++) {
			CHECK(cudaSetDevice(i));
			fill<4><<<BLOCKS, THREADS>>>(b.data[(i + 1) % devices], 32u << k % 8);
		}
	synchronize();
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int most = argc > 2 ? atoi(argv[2]) : 0;
	static const struct {
		const char *name;
		void (*run)();
	} programs[] = {
		{ "ring", run_ring },
		{ "load", run_load },
		{ "mixed", run_mixed },
		{ "halo", run_halo },
		{ "transpose", run_transpose },
		{ "pointers", [] { run_pointers(false); } },
		{ "pointers-fixed", [] { run_pointers(true); } },
		{ "atomics", run_atomics },
		{ "reuse", run_reuse },
		{ "objects", run_objects },
		{ "copies", run_copies },
		{ "bulk", run_bulk },
		{ "ipc", run_ipc },
		{ "file", run_file },
		{ "graph", run_graph },
		{ "unequal", run_unequal },
	};
	for (auto &program : programs) {
		if (strcmp(program.name, name))
			continue;
		if (strcmp(name, "ipc") && strcmp(name, "file")) /* which fork first */
			all_devices(most);
		program.run();
		printf("{\"ok\": %s, \"gpus\": %d}\n", ok ? "true" : "false", devices);
		return ok ? 0 : 1;
	}
	fprintf(stderr, "usage: oracles NAME [GPUS]; names:");
	for (auto &program : programs)
		fprintf(stderr, " %s", program.name);
	fprintf(stderr, "\n");
	return 2;
}
