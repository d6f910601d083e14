/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of NVTX as the tests use, written from its documented interface: where the real headers
 * cannot be had, tests/e2e/nvtx/program.c includes this instead. Each file that includes it is an
 * instance of its own, which loads the tool in NVTX_INJECTION64_PATH at its first call.
 */
#ifndef MINI_NVTX_H
#define MINI_NVTX_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))
#define NVTX_NO_PUSH_POP_TRACKING (-2)
enum { NVTX_MESSAGE_TYPE_ASCII = 1, NVTX_MESSAGE_TYPE_UNICODE, NVTX_MESSAGE_TYPE_REGISTERED };
enum {
	NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
	NVTX_PAYLOAD_TYPE_INT64,
	NVTX_PAYLOAD_TYPE_DOUBLE,
	NVTX_PAYLOAD_TYPE_UNSIGNED_INT32,
	NVTX_PAYLOAD_TYPE_INT32,
	NVTX_PAYLOAD_TYPE_FLOAT,
};
typedef const struct nvtxDomain *nvtxDomainHandle_t;
typedef const struct nvtxString *nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;
typedef union {
	const char *ascii;
	const wchar_t *unicode;
	nvtxStringHandle_t registered;
} nvtxMessageValue_t;
typedef struct {
	uint16_t version, size;
	uint32_t category;
	int32_t colorType;
	uint32_t color;
	int32_t payloadType;
	int32_t reserved0;
	union {
		uint64_t ullValue;
		int64_t llValue;
		double dValue;
		uint32_t uiValue;
		int32_t iValue;
		float fValue;
	} payload;
	int32_t messageType;
	nvtxMessageValue_t message;
} nvtxEventAttributes_t;

/* X(module, id, result, name, (parameters), (arguments), result without a tool) */
#define MINI_FUNCTIONS(X)                                                                          \
	X(1, 1, void, nvtxMarkEx, (const nvtxEventAttributes_t *a), (a), )                         \
	X(1, 2, void, nvtxMarkA, (const char *text), (text), )                                     \
	X(1, 3, void, nvtxMarkW, (const wchar_t *text), (text), )                                  \
	X(1, 4, nvtxRangeId_t, nvtxRangeStartEx, (const nvtxEventAttributes_t *a), (a), 0)         \
	X(1, 5, nvtxRangeId_t, nvtxRangeStartA, (const char *text), (text), 0)                     \
	X(1, 6, nvtxRangeId_t, nvtxRangeStartW, (const wchar_t *text), (text), 0)                  \
	X(1, 7, void, nvtxRangeEnd, (nvtxRangeId_t id), (id), )                                    \
	X(1, 8, int, nvtxRangePushEx, (const nvtxEventAttributes_t *a), (a), -2)                   \
	X(1, 9, int, nvtxRangePushA, (const char *text), (text), -2)                               \
	X(1, 10, int, nvtxRangePushW, (const wchar_t *text), (text), -2)                           \
	X(1, 11, int, nvtxRangePop, (void), (), -2)                                                \
	X(5, 1, void, nvtxDomainMarkEx,                                                            \
	  (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a), (domain, a), )              \
	X(5, 2, nvtxRangeId_t, nvtxDomainRangeStartEx,                                             \
	  (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a), (domain, a), 0)             \
	X(5, 3, void, nvtxDomainRangeEnd, (nvtxDomainHandle_t domain, nvtxRangeId_t id),           \
	  (domain, id), )                                                                          \
	X(5, 4, int, nvtxDomainRangePushEx,                                                        \
	  (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a), (domain, a), -2)            \
	X(5, 5, int, nvtxDomainRangePop, (nvtxDomainHandle_t domain), (domain), -2)                \
	X(5, 8, void, nvtxDomainNameCategoryA,                                                     \
	  (nvtxDomainHandle_t domain, uint32_t category, const char *name),                        \
	  (domain, category, name), )                                                              \
	X(5, 10, nvtxStringHandle_t, nvtxDomainRegisterStringA,                                    \
	  (nvtxDomainHandle_t domain, const char *text), (domain, text), NULL)                     \
	X(5, 11, nvtxStringHandle_t, nvtxDomainRegisterStringW,                                    \
	  (nvtxDomainHandle_t domain, const wchar_t *text), (domain, text), NULL)                  \
	X(5, 12, nvtxDomainHandle_t, nvtxDomainCreateA, (const char *name), (name), NULL)          \
	X(5, 13, nvtxDomainHandle_t, nvtxDomainCreateW, (const wchar_t *name), (name), NULL)       \
	X(5, 14, void, nvtxDomainDestroy, (nvtxDomainHandle_t domain), (domain), )

#define X(module, id, result, name, parameters, arguments, otherwise)                              \
	static result(*mini_##name) parameters;
MINI_FUNCTIONS(X)
#undef X

typedef void (*mini_function)(void);
static mini_function *mini_core[17], *mini_core2[17];

static int
mini_module_table(int module, mini_function ***table, unsigned *last)
{
#define X(m, id, result, name, parameters, arguments, otherwise)                                   \
	if (m == 1)                                                                                \
		mini_core[id] = (mini_function *)(void *)&mini_##name;                             \
	else                                                                                       \
		mini_core2[id] = (mini_function *)(void *)&mini_##name;
	MINI_FUNCTIONS(X)
#undef X
	if (module != 1 && module != 5)
		return 0;
	*table = module == 1 ? mini_core : mini_core2;
	*last = 15;
	return 1;
}

static const void *
mini_export_table(uint32_t table)
{
	static const struct {
		size_t size;
		int (*module_table)(int, mini_function ***, unsigned *);
	} callbacks = { sizeof callbacks, mini_module_table };
	return table == 1 ? &callbacks : NULL;
}

static void
mini_initialize(void)
{
	static int done;
	const char *path = getenv("NVTX_INJECTION64_PATH");
	if (done++)
		return;
	void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*entry)(const void *(*)(uint32_t)) =
		tool ? (int (*)(const void *(*)(uint32_t)))dlsym(tool, "InitializeInjectionNvtx2")
		     : NULL;
	if (entry)
		entry(mini_export_table);
}

#define X(module, id, result, name, parameters, arguments, otherwise)                              \
	__attribute__((unused)) static result name parameters                                      \
	{                                                                                          \
		mini_initialize();                                                                 \
		if (mini_##name)                                                                   \
			return mini_##name arguments;                                              \
		return otherwise;                                                                  \
	}
MINI_FUNCTIONS(X)
#undef X

#endif
