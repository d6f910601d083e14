/* SPDX-License-Identifier: Apache-2.0 */
/* nccl BYTES TIMES [GPUS]: all-reduce of BYTES on all GPUs of one process, from one thread. Prints
 * the seconds of the timed part as JSON. */
#include <chrono>

#include <nccl.h>

#include "common.h"

int
main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], nullptr, 0) : 1 << 20;
	int times = argc > 2 ? atoi(argv[2]) : 10;
	CHECK(cudaGetDeviceCount(&devices));
	if (argc > 3 && devices > atoi(argv[3]))
		devices = atoi(argv[3]);
	std::vector<ncclComm_t> comms(devices);
	std::vector<cudaStream_t> streams(devices);
	std::vector<char *> data;
	CHECK(ncclCommInitAll(comms.data(), devices, nullptr));
	for (int i = 0; i < devices; i++) {
		data.push_back(allocate(i, bytes));
		CHECK(cudaStreamCreate(&streams[i]));
	}
	double seconds = 0;
	for (int turn = 0; turn < times + 1; turn++) { /* the first sets up */
		auto start = std::chrono::steady_clock::now();
		CHECK(ncclGroupStart());
		for (int i = 0; i < devices; i++)
			CHECK(ncclAllReduce(data[i], data[i], bytes / 4, ncclFloat, ncclSum,
			                    comms[i], streams[i]));
		CHECK(ncclGroupEnd());
		synchronize();
		if (turn)
			seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() -
			                                         start)
			                   .count();
	}
	printf("{\"ok\": true, \"gpus\": %d, \"seconds\": %.6f}\n", devices, seconds);
	return 0;
}
