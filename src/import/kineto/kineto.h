/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's profiler: kineto.c reads the file, kineto_devices.c what it says of GPUs, kineto_sync.c
 * its synchronisation, kineto_processes.c whose events they are, kineto_steps.c the numbers of its
 * steps, kineto_comms.c the groups of collectives. Private to
 * these. */
#ifndef PLUMB_IMPORT_KINETO_KINETO_H
#define PLUMB_IMPORT_KINETO_KINETO_H

#include "base/vec.h"
#include "import/chrome/event.h"

/* Arguments of a collective operation: of its kernels, and of record_param_comms, the operator that
 * launches them. */
struct plumb_kineto_group {
	struct plumb_slice name, ranks; /* ranks: the value as it is written */
	int64_t size, sequence;
	int64_t external; /* both have it of the operator */
};
#define PLUMB_KINETO_NO_GROUP                                                                      \
	((struct plumb_kineto_group){ { 0 }, { 0 }, PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN })

/* By external id: what operators say, and numbers of kernels' groups that may want it. Zero it to
 * start. */
struct plumb_kineto_comm {
	int64_t external;
	struct plumb_trace_group group;
	uint32_t number; /* of the kernel's group; 0: an operator */
};
struct plumb_kineto_comms {
	PLUMB_VEC(struct plumb_kineto_comm) items;
};
/* KERNEL: it is a kernel's; then the number of its group, for its work. */
uint32_t plumb_kineto_group(struct plumb_trace *trace, struct plumb_kineto_comms *comms,
                            const struct plumb_kineto_group *group, bool kernel);
/* The file is read: kernels get what they do not say themselves. Frees COMMS. */
void plumb_kineto_comms_join(struct plumb_trace *trace, struct plumb_kineto_comms *comms);

/* Numbers of ProfilerStep; zero it to start, and plumb_kineto_steps_free it. */
struct plumb_kineto_steps {
	int64_t *items;
	uint32_t count, capacity;
	PLUMB_VEC(int64_t) gpu;     /* numbers of those on a GPU */
	int64_t gpu_start, gpu_end; /* of the last ones on a GPU, ns */
};
/* The frame of an annotation. "ProfilerStep#12": all steps are one context; their numbers go into
 * STEPS. */
uint32_t plumb_kineto_annotation(struct plumb_trace *trace, struct plumb_kineto_steps *steps,
                                 struct plumb_slice name);
/* A ProfilerStep on a GPU repeats one on a thread: it becomes no span. HTA takes it for the end of
 * its window. */
void plumb_kineto_gpu_step(struct plumb_kineto_steps *steps, struct plumb_slice name, int64_t start,
                           int64_t end);
void plumb_kineto_steps_free(struct plumb_kineto_steps *steps);
/* They become facts about PROCESS. */
void plumb_kineto_steps_tell(struct plumb_trace *trace, struct plumb_kineto_steps *steps,
                             uint32_t process);

/* The process with the number PID (of a RANK, if events name one). Without a number: the process
 * that the rank's GPU events belong to. */
struct plumb_kineto_process {
	int64_t rank, pid;
	uint32_t process;
	bool named;  /* one without a number: another has it now */
	bool shared; /* other ranks have processes with this number */
	struct plumb_kineto_steps steps;
};
/* Zero it to start. */
struct plumb_kineto_processes {
	PLUMB_VEC(struct plumb_kineto_process) items;
	struct plumb_map map;
	struct plumb_kineto_naming {
		int64_t pid, rank;
		uint32_t named;
	} last;          /* that was asked for */
	int64_t base_ns; /* what the file says is to be added to its times */
};
/* The rank that the name of the process PID says so far ("RANK 2 - GPU 0"), or PLUMB_UNKNOWN. */
int64_t plumb_kineto_rank_named(struct plumb_kineto_processes *processes,
                                const struct plumb_chrome *chrome, int64_t pid);
/* RANK and PID may be PLUMB_UNKNOWN; RAW: the number that is shown, where the file has another for
 * it. Valid until the next one is made; NULL: memory is out. */
struct plumb_kineto_process *
plumb_kineto_process(struct plumb_trace *trace, struct plumb_kineto_processes *processes,
                     int64_t rank, int64_t pid, int64_t raw);
/* All is read: they get their names, ranks and steps. */
void plumb_kineto_processes_end(struct plumb_kineto_processes *processes,
                                const struct plumb_chrome *chrome);
void plumb_kineto_processes_free(struct plumb_kineto_processes *processes);

#define PLUMB_KINETO_DEVICES_MAX 64

struct plumb_kineto_device {
	int64_t id, process, memory, major, minor, multiprocessors, threads;
	char name[128], uuid[64]; /* the UUID and process in plumb's own exports */
};

/* "deviceProperties". */
struct plumb_kineto_devices {
	struct plumb_kineto_device items[PLUMB_KINETO_DEVICES_MAX];
	uint32_t count;
	uint32_t first; /* of the builder's devices: the file's */
	bool has_uuids;
};

void plumb_kineto_devices_read(struct plumb_kineto_devices *devices, struct plumb_pull *pull);
/* Of device ORDINAL in the process with the number PID; NULL: not said. */
const char *
plumb_kineto_devices_uuid(const struct plumb_kineto_devices *devices, int64_t pid, int64_t ordinal);
/* All is read: says so of TRACE's devices. */
void plumb_kineto_devices_describe(const struct plumb_kineto_devices *devices,
                                   struct plumb_trace *trace);

/* EVENT is a cuda_sync with these arguments. STREAM is -1 or unknown if there is no stream. AWAITED
 * is -1 if the awaited event is unknown. */
void plumb_kineto_sync(struct plumb_trace *trace, const struct plumb_chrome_event *event,
                       const struct plumb_trace_sync *sync);

#endif
