/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for NCCL, as far as a profiler plugin sees it: libnccl-standin.so. It loads the plugin
 * that NCCL_PROFILER_PLUGIN names, and tells it of operations in the order in which NCCL does: the
 * calls (version 5), then the launch of the kernel, on the mock driver, then the group and its
 * operations. Its declarations of the interface are its own, so that it checks plumb's.
 *
 *	comm = standin_comm(0xabc, "pg", 1, 2, rank);
 *	standin_collective(comm, "AllReduce", 1024, "ncclFloat32", 0);
 *	standin_launch(comm, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 5000, 1, 0);
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include "mock.h"

#define STANDIN __attribute__((visibility("default")))

/* ---- the interface: version 3 ---- */

typedef struct {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t commHash;
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			uint8_t nMaxChannels;
			uint8_t nWarps;
			const char *algo;
			const char *proto;
		} coll;
		struct {
			const char *name;
			uint64_t commHash;
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
		} p2p;
		uint64_t room[16];
	};
} event3;

/* ---- version 4 ---- */

typedef struct {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			uint8_t nChannels;
			uint8_t nWarps;
			const char *algo;
			const char *proto;
		} coll;
		struct {
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t nChannels;
		} p2p;
		struct {
			pid_t pid;
			uint8_t channelId;
			int peer;
			int nSteps;
			int chunkSize;
			int isSend;
		} proxyOp;
		uint64_t room[16];
	};
} event4;

/* ---- version 5 ---- */

typedef struct {
	uint64_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			bool graphCaptured;
			int groupDepth;
		} groupApi;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool graphCaptured;
		} collApi;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			void *stream;
			bool graphCaptured;
		} p2pApi;
		struct {
			void *stream;
		} kernelLaunch;
		struct {
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			uint8_t nChannels;
			uint8_t nWarps;
			const char *algo;
			const char *proto;
			void *parentGroup;
		} coll;
		struct {
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t nChannels;
			void *parentGroup;
		} p2p;
		struct {
			pid_t pid;
			uint8_t channelId;
			int peer;
			int nSteps;
			int chunkSize;
			int isSend;
		} proxyOp;
		uint64_t room[16];
	};
} event5;

enum { GROUP = 1, COLL = 2, P2P = 4, PROXY_OP = 8, KERNEL_CH = 64, COLL_API = 512, P2P_API = 1024 };

typedef void (*logger)(int, unsigned long, const char *, int, const char *, ...);
typedef struct {
	const char *name;
	int (*init)(void **, int *);
	int (*startEvent)(void *, void **, event3 *);
	int (*stopEvent)(void *);
	int (*recordEventState)(void *, int, void *);
	int (*finalize)(void *);
} profiler3;
typedef struct {
	const char *name;
	int (*init)(void **, int *, const char *, uint64_t, int, int, int, logger);
	int (*startEvent)(void *, void **, event4 *);
	int (*stopEvent)(void *);
	int (*recordEventState)(void *, int, void *);
	int (*finalize)(void *);
} profiler4;
typedef struct {
	const char *name;
	int (*init)(void **, uint64_t, int *, const char *, int, int, int, logger);
	int (*startEvent)(void *, void **, event5 *);
	int (*stopEvent)(void *);
	int (*recordEventState)(void *, int, void *);
	int (*finalize)(void *);
} profiler5;

/* ---- state ---- */

static int version; /* of the plugin; 0: there is none */
static profiler3 *three;
static profiler4 *four;
static profiler5 *five;
static int mask; /* one for all communicators, as in NCCL */
static int groups_told = 1;

#define OPERATIONS 65536
#define FUNCTIONS 16
struct operation {
	char func[64], datatype[64], called[64]; /* CALLED: the type that the call names */
	size_t count;
	int root, channels;
	bool p2p, captured;
	const char *algo, *proto;
	void *from, *to;
	void *call, *handle;
};
struct comm {
	void *context;
	uint64_t id;
	char name[64];
	int ranks, rank;
	struct {
		char func[64];
		uint64_t next;
	} sequences[FUNCTIONS];
	struct operation *waiting;
	int count;
	const char *algo, *proto;
	void *from, *to;
	bool captured;
};

static void
log_nothing(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
	(void)level, (void)flags, (void)file, (void)line, (void)format;
}

/* ---- loading ---- */

static void *
open_plugin(void)
{
	char path[256];
	const char *name = getenv("NCCL_PROFILER_PLUGIN");
	if (name && !strcasecmp(name, "none"))
		return NULL;
	snprintf(path, sizeof path - 1, "%s", name ? name : "libnccl-profiler.so");
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library || !name || strchr(name, '/'))
		return library;
	snprintf(path, sizeof path - 1, "libnccl-profiler-%s.so", name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Loads the plugin for a library that speaks versions up to NEWEST. Returns the one that they
 * agree on; 0: none. */
STANDIN int
standin_open(int newest)
{
	void *library = open_plugin();
	version = 0;
	if (library && newest >= 5 && (five = dlsym(library, "ncclProfiler_v5")))
		return version = 5;
	if (library && newest >= 4 && (four = dlsym(library, "ncclProfiler_v4")))
		return version = 4;
	if (library && newest >= 3 && (three = dlsym(library, "ncclProfiler_v3")))
		return version = 3;
	return 0;
}

STANDIN int
standin_mask(void)
{
	return mask;
}

/* 0: a library that does not report groups. */
STANDIN void
standin_groups(int told)
{
	groups_told = told;
}

/* ---- communicators ---- */

STANDIN struct comm *
standin_comm(uint64_t id, const char *name, int nodes, int ranks, int rank)
{
	struct comm *comm = calloc(1, sizeof *comm);
	comm->waiting = calloc(OPERATIONS, sizeof *comm->waiting);
	comm->id = id;
	comm->ranks = ranks;
	comm->rank = rank;
	comm->algo = "RING";
	comm->proto = "SIMPLE";
	if (name)
		snprintf(comm->name, sizeof comm->name, "%s", name);
	if (version == 3)
		three->init(&comm->context, &mask);
	else if (version == 4)
		four->init(&comm->context, &mask, name, id, nodes, ranks, rank, log_nothing);
	else if (version == 5)
		five->init(&comm->context, id, &mask, name, nodes, ranks, rank, log_nothing);
	return comm;
}

STANDIN void
standin_end(struct comm *comm)
{
	if (version && comm->context)
		(version == 3   ? three->finalize
		 : version == 4 ? four->finalize
		                : five->finalize)(comm->context);
	/* What a test holds may be used once more. */
}

STANDIN void
standin_choose(struct comm *comm, const char *algo, const char *proto)
{
	comm->algo = algo ? strdup(algo) : NULL;
	comm->proto = proto ? strdup(proto) : NULL;
}

/* Where the data of the next operations is: a send or receive has FROM or TO alone. */
STANDIN void
standin_buffers(struct comm *comm, uint64_t from, uint64_t to)
{
	comm->from = (void *)(uintptr_t)from;
	comm->to = (void *)(uintptr_t)to;
}

STANDIN void
standin_capture(struct comm *comm, int on)
{
	comm->captured = on;
}

/* ---- calls ---- */

static void
stop(void *handle)
{
	if (handle)
		(version == 3   ? three->stopEvent
		 : version == 4 ? four->stopEvent
		                : five->stopEvent)(handle);
}

static struct operation *
add(struct comm *comm, const char *func, size_t count, const char *datatype, int root, bool p2p)
{
	struct operation *o = &comm->waiting[comm->count++];
	*o = (struct operation){ .count = count,
		                 .root = root,
		                 .p2p = p2p,
		                 .captured = comm->captured,
		                 .channels = 2,
		                 .algo = comm->algo,
		                 .proto = comm->proto,
		                 .from = comm->from,
		                 .to = comm->to };
	snprintf(o->func, sizeof o->func, "%s", func);
	snprintf(o->datatype, sizeof o->datatype, "%s", datatype);
	snprintf(o->called, sizeof o->called, "%s", datatype);
	return o;
}

STANDIN void
standin_collective(struct comm *comm, const char *func, size_t count, const char *datatype,
                   int root)
{
	struct operation *o = add(comm, func, count, datatype, root, false);
	if (version == 5 && mask & (COLL_API | COLL)) {
		event5 event = { .type = COLL_API, .rank = comm->rank };
		event.collApi.func = o->func;
		event.collApi.count = count;
		event.collApi.datatype = o->called;
		event.collApi.root = root;
		event.collApi.graphCaptured = comm->captured;
		five->startEvent(comm->context, &o->call, &event);
		stop(o->call);
	}
	/* As the real one does from here on. */
	size_t size = strstr(datatype, "64")   ? 8
	              : strstr(datatype, "16") ? 2
	              : strstr(datatype, "8")  ? 1
	                                       : 4;
	if (!strcmp(func, "AllGather") || !strcmp(func, "Broadcast")) {
		o->count *= size;
		strcpy(o->datatype, "ncclInt8");
	}
}

STANDIN void
standin_p2p(struct comm *comm, const char *func, size_t count, const char *datatype, int peer)
{
	struct operation *o = add(comm, func, count, datatype, peer, true);
	if (version == 5 && mask & (P2P_API | P2P)) {
		event5 event = { .type = P2P_API, .rank = comm->rank };
		event.p2pApi.func = o->func;
		event.p2pApi.count = count;
		event.p2pApi.datatype = o->called;
		event.p2pApi.graphCaptured = comm->captured;
		five->startEvent(comm->context, &o->call, &event);
		stop(o->call);
	}
}

/* ---- the kernel, and what it ran ---- */

static uint64_t
next_of(struct comm *comm, const struct operation *o)
{
	for (int i = 0; i < FUNCTIONS; i++) {
		if (!comm->sequences[i].func[0])
			strcpy(comm->sequences[i].func, o->func);
		if (!strcmp(comm->sequences[i].func, o->func))
			return o->captured ? comm->sequences[i].next : comm->sequences[i].next++;
	}
	return 0;
}

static void
tell_3(struct comm *comm, struct operation *o, void *group)
{
	event3 event = { .type = o->p2p ? P2P : COLL, .parentObj = group, .rank = comm->rank };
	if (o->p2p) {
		event.p2p.name = comm->name;
		event.p2p.commHash = comm->id;
		event.p2p.func = o->func;
		event.p2p.datatype = o->datatype;
		event.p2p.buff = o->from ? o->from : o->to;
		event.p2p.count = o->count;
		event.p2p.peer = o->root;
	} else {
		event.coll.name = comm->name;
		event.coll.commHash = comm->id;
		event.coll.seqNumber = next_of(comm, o);
		event.coll.func = o->func;
		event.coll.sendBuff = o->from;
		event.coll.recvBuff = o->to;
		event.coll.count = o->count;
		event.coll.root = o->root;
		event.coll.datatype = o->datatype;
		event.coll.nMaxChannels = (uint8_t)o->channels;
		event.coll.nWarps = 16;
		event.coll.algo = o->algo;
		event.coll.proto = o->proto;
	}
	three->startEvent(comm->context, &o->handle, &event);
}

static void
tell_4(struct comm *comm, struct operation *o, void *group)
{
	event4 event = { .type = o->p2p ? P2P : COLL, .parentObj = group, .rank = comm->rank };
	if (o->p2p) {
		event.p2p.func = o->func;
		event.p2p.datatype = o->datatype;
		event.p2p.buff = o->from ? o->from : o->to;
		event.p2p.count = o->count;
		event.p2p.peer = o->root;
		event.p2p.nChannels = (uint8_t)o->channels;
	} else {
		event.coll.seqNumber = next_of(comm, o);
		event.coll.func = o->func;
		event.coll.sendBuff = o->from;
		event.coll.recvBuff = o->to;
		event.coll.count = o->count;
		event.coll.root = o->root;
		event.coll.datatype = o->datatype;
		event.coll.nChannels = (uint8_t)o->channels;
		event.coll.nWarps = 16;
		event.coll.algo = o->algo;
		event.coll.proto = o->proto;
	}
	four->startEvent(comm->context, &o->handle, &event);
}

static void
tell_5(struct comm *comm, struct operation *o, void *group)
{
	event5 event = { .type = o->p2p ? P2P : COLL, .parentObj = o->call, .rank = comm->rank };
	if (o->p2p) {
		event.p2p.func = o->func;
		event.p2p.datatype = o->datatype;
		event.p2p.buff = o->from ? o->from : o->to;
		event.p2p.count = o->count;
		event.p2p.peer = o->root;
		event.p2p.nChannels = (uint8_t)o->channels;
		event.p2p.parentGroup = group;
	} else {
		event.coll.seqNumber = next_of(comm, o);
		event.coll.func = o->func;
		event.coll.sendBuff = o->from;
		event.coll.recvBuff = o->to;
		event.coll.count = o->count;
		event.coll.root = o->root;
		event.coll.datatype = o->datatype;
		event.coll.nChannels = (uint8_t)o->channels;
		event.coll.nWarps = 16;
		event.coll.algo = o->algo;
		event.coll.proto = o->proto;
		event.coll.parentGroup = group;
	}
	five->startEvent(comm->context, &o->handle, &event);
}

/* Network traffic below the operation, if the plugin asked for it. */
static void
tell_proxy(struct comm *comm, struct operation *o)
{
	void *handle = NULL;
	size_t bytes = 512;
	if (!(mask & PROXY_OP) || !o->handle)
		return;
	if (version == 5) {
		event5 event = { .type = PROXY_OP, .parentObj = o->handle, .rank = comm->rank };
		event.proxyOp.pid = 1;
		event.proxyOp.channelId = 3;
		event.proxyOp.peer = 1;
		event.proxyOp.nSteps = 7;
		event.proxyOp.chunkSize = 4096;
		event.proxyOp.isSend = 1;
		five->startEvent(comm->context, &handle, &event);
		if (handle)
			five->recordEventState(handle, 19, &bytes);
	} else if (version == 4) {
		event4 event = { .type = PROXY_OP, .parentObj = o->handle, .rank = comm->rank };
		event.proxyOp.pid = 1;
		event.proxyOp.channelId = 3;
		event.proxyOp.peer = 1;
		event.proxyOp.nSteps = 7;
		event.proxyOp.chunkSize = 4096;
		event.proxyOp.isSend = 1;
		four->startEvent(comm->context, &handle, &event);
		if (handle)
			four->recordEventState(handle, 19, &bytes);
	}
	stop(handle);
}

static void *
begin_group(struct comm *comm)
{
	void *group = NULL;
	event3 third = { .type = GROUP };
	event4 fourth = { .type = GROUP };
	event5 fifth = { .type = GROUP };
	if (!groups_told)
		return NULL;
	if (version == 3)
		three->startEvent(comm->context, &group, &third);
	else if (version == 4)
		four->startEvent(comm->context, &group, &fourth);
	else
		five->startEvent(comm->context, &group, &fifth);
	return group;
}

/* Reports what was called since the last time. */
STANDIN void
standin_tell(struct comm *comm)
{
	void *group = version && mask ? begin_group(comm) : NULL;
	for (int i = 0; version && i < comm->count; i++) {
		struct operation *o = &comm->waiting[i];
		if (!(mask & (o->p2p ? P2P : COLL)))
			continue;
		(version == 3 ? tell_3 : version == 4 ? tell_4 : tell_5)(comm, o, group);
		tell_proxy(comm, o);
	}
	for (int i = 0; version && i < comm->count; i++)
		stop(comm->waiting[i].handle);
	if (version)
		stop(group);
	comm->count = 0;
}

/* All that was called since the last time is one kernel. */
STANDIN int
standin_launch(struct comm *comm, const char *kernel, uint64_t ns, uint32_t stream, uint32_t device)
{
	int (*launch)(const struct mock_launch *) =
		(int (*)(const struct mock_launch *))dlsym(RTLD_DEFAULT, "mock_launch_ex");
	struct mock_launch work = {
		.name = strdup(kernel), .duration_ns = ns, .stream = stream, .device = device
	};
	if (!launch) {
		void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
		launch = driver ? (int (*)(const struct mock_launch *))dlsym(driver,
		                                                             "mock_launch_ex")
		                : NULL;
	}
	int result = launch ? launch(&work) : -1;
	if (!result)
		standin_tell(comm);
	return result;
}

/* The plugin's functions once more, with a handle that it does not have. */
STANDIN void
standin_strange(struct comm *comm, uint64_t handle)
{
	stop((void *)(uintptr_t)handle);
	if (version == 5) {
		event5 event = { .type = COLL, .parentObj = (void *)(uintptr_t)handle };
		void *given = NULL;
		event.coll.func = "AllReduce";
		event.coll.count = 1;
		event.coll.datatype = "ncclInt8";
		five->startEvent(comm->context, &given, &event);
		five->recordEventState((void *)(uintptr_t)handle, 22, NULL);
		event.type = 1 << 14;
		five->startEvent(comm->context, &given, &event);
	}
}

static struct comm *at_exit;

static __attribute__((destructor)) void
tell_at_exit(void)
{
	if (!at_exit)
		return;
	puts("one more");
	standin_collective(at_exit, "AllReduce", 99, "ncclFloat32", 0);
	standin_tell(at_exit);
	standin_end(at_exit);
}

/* COMM has one more operation when the library is unloaded, which is after plumb has ended. */
STANDIN void
standin_at_exit(struct comm *comm)
{
	at_exit = comm;
}
