/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layouts of records are known.
 *
 * A record's structure grows with releases: CUpti_ActivityKernel8 (11.8), 9 (12.0), 10 (13.0), 11
 * (13.1), 12 (13.3), 13 (13.4); Memcpy5, 6 (12.8), 7 (13.4); MemcpyPtoP4; Memset4, 5 (13.4);
 * CudaEvent and Synchronization, each 2 (12.8). In the headers of 11.8, 12.1, 12.8 and 13.0 to 13.5
 * all fields that plumb reads, up to graphNodeId, lie at the same offsets, and newer fields follow
 * the older ones (tests/mock checks the offsets for the headers that the tests have). So plumb
 * reads the oldest structure that a version may have, and nothing behind it. A version that nobody
 * compared is refused.
 */
#include <stddef.h>

#include "collect/gpu/cuda/runtime.h"

#define NEWEST_CHECKED 130599u /* 13.5; from 13.0 on the number is major, minor, update */
#define OLDEST_CHECKED 18u     /* 11.8 */

/* The fields that plumb reads, where they were found in each of the headers. */
#define AT(structure, field, offset)                                                               \
	_Static_assert(offsetof(structure, field) == offset, "layout of " #structure)
AT(CUpti_ActivityKernel8, registersPerThread, 6);
AT(CUpti_ActivityKernel8, start, 16);
AT(CUpti_ActivityKernel8, deviceId, 40);
AT(CUpti_ActivityKernel8, gridX, 52);
AT(CUpti_ActivityKernel8, dynamicSharedMemory, 80);
AT(CUpti_ActivityKernel8, correlationId, 92);
AT(CUpti_ActivityKernel8, name, 104);
AT(CUpti_ActivityKernel8, graphNodeId, 144);
AT(CUpti_ActivityMemcpy5, copyKind, 4);
AT(CUpti_ActivityMemcpy5, bytes, 8);
AT(CUpti_ActivityMemcpy5, correlationId, 44);
AT(CUpti_ActivityMemcpy5, graphNodeId, 64);
AT(CUpti_ActivityMemcpyPtoP4, correlationId, 60);
AT(CUpti_ActivityMemcpyPtoP4, graphNodeId, 72);
AT(CUpti_ActivityMemset4, correlationId, 44);
AT(CUpti_ActivityMemset4, memoryKind, 50);
AT(CUpti_ActivityMemset4, graphNodeId, 64);
AT(CUpti_ActivityGraphTrace2, correlationId, 4);
AT(CUpti_ActivityGraphTrace2, start, 8);
AT(CUpti_ActivityGraphTrace2, deviceId, 24);
AT(CUpti_ActivityGraphTrace2, streamId, 36);
AT(CUpti_ActivityCudaEvent2, correlationId, 4);
AT(CUpti_ActivityCudaEvent2, contextId, 8);
AT(CUpti_ActivityCudaEvent2, streamId, 12);
AT(CUpti_ActivityCudaEvent2, eventId, 16);
AT(CUpti_ActivitySynchronization2, type, 4);
AT(CUpti_ActivitySynchronization2, correlationId, 24);
AT(CUpti_ActivitySynchronization2, contextId, 28);
AT(CUpti_ActivitySynchronization2, streamId, 32);
AT(CUpti_ActivitySynchronization2, cudaEventId, 36);

bool
plumb_cupti_layout(uint32_t version, struct plumb_cupti_layout *layout)
{
	if (version < OLDEST_CHECKED || version > NEWEST_CHECKED)
		return false;
	*layout = (struct plumb_cupti_layout){
		.kernel = sizeof(CUpti_ActivityKernel8),
		.copy = sizeof(CUpti_ActivityMemcpy5),
		.peer_copy = sizeof(CUpti_ActivityMemcpyPtoP4),
		.set = sizeof(CUpti_ActivityMemset4),
		.graph = offsetof(CUpti_ActivityGraphTrace2, reserved),
		/* What both versions of each have. */
		.event = offsetof(CUpti_ActivityCudaEvent2, deviceId),
		.synchronization = offsetof(CUpti_ActivitySynchronization2, cudaEventSyncId),
	};
	return true;
}
