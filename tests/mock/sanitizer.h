/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test says to the stand-in Compute Sanitizer (libsanitizer-public.so). It plays the events
 * that a program would cause, and runs the collector's own counting code (counting.h) for the
 * accesses that a test gives a launch.
 *
 * Work is queued by stream, and done when the test synchronises the stream or context, or by
 * san_run. Copies of the tool take their turn in the stream. If a tool waits for a stream with
 * work that is not done, the process ends with status 3: on a GPU, that could wait for ever.
 */
#ifndef PLUMB_TESTS_MOCK_SANITIZER_H
#define PLUMB_TESTS_MOCK_SANITIZER_H

#include <stdint.h>

enum { SAN_DEVICES = 4, SAN_STREAMS = 4, SAN_FUNCTIONS = 8 };

/* One instruction of one warp. PATCH: the sanitizer's number of the kind of instruction. */
struct san_access {
	uint32_t patch, flags, width, active;
	uint64_t pc; /* in the function */
	uint64_t address[32];
};

/* All return 0, or what went wrong. */
void san_context(int device);
void san_context_destroy(int device);
/* A module with SAN_FUNCTIONS functions, named PREFIX0, …; its number. */
int san_module(int device, const char *prefix);
void san_module_unload(int module);
/* Memory of DEVICE at ADDRESS. FLAGS: of the sanitizer. */
void san_allocate(int device, uint64_t address, uint64_t bytes, uint32_t flags);
void san_free(int device, uint64_t address, uint64_t bytes, uint32_t flags);
/* PEER reaches that memory from now on. */
void san_peer(int device, int peer, uint64_t address, uint64_t bytes);
void san_host(uint64_t address, uint64_t bytes);
/* The accesses are copied. */
void
san_launch(int module, int function, int stream, const struct san_access *accesses, uint32_t count);
/* A graph of one kernel is launched. */
void
san_replay(int module, int function, int stream, const struct san_access *accesses, uint32_t count);
void san_replay_copy(int from, uint64_t from_address, int to, uint64_t to_address, uint64_t bytes);
void san_copy(int from, uint64_t from_address, int to, uint64_t to_address, uint64_t bytes);
void san_batch(int device, const uint64_t *from, const uint64_t *to, const uint64_t *bytes,
               uint64_t count);
/* A handle for the memory at ADDRESS is made, or opened there, with 64 bytes of this KEY. */
/* cuMemSetAccess lets all devices read and write the mapping. */
void san_access(int owner, uint64_t address, uint64_t bytes);
void san_ipc(int device, int opens, uint64_t address, unsigned char key);
/* The driver call ID of DEVICE's context has ended. */
void san_call(int device, unsigned id, const char *name, const void *parameters);
void san_run(int device, int stream);
void san_synchronize(int device, int stream); /* -1: the context */
/* Calls of the tool so far: patching, taking patches away. */
uint64_t san_switches(void);

#endif
