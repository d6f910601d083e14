/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of ranges, for bench/micro_range.py: nanoseconds of one call (or pair), the least of
 * many rounds. The same file is the trivial NVTX tool to compare with, when it is loaded as one.
 */
#include <nvtx3/nvToolsExt.h>
#include <plumb/annotate.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CALLS 1000
#define ROUNDS 2000

static double
now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Prints NAME and the least cost of BODY; one level around it, as in a real program. */
#define MEASURE(name, body)                                                                        \
	do {                                                                                       \
		double least = 1e9;                                                                \
		for (int round = 0; round < ROUNDS; round++) {                                     \
			double before = now();                                                     \
			for (int i = 0; i < CALLS; i++) {                                          \
				body;                                                              \
				__asm__ volatile("" ::: "memory");                                 \
			}                                                                          \
			double took = (now() - before) / CALLS;                                    \
			if (took < least)                                                          \
				least = took;                                                      \
		}                                                                                  \
		printf("RESULT %s %.1f\n", name, least);                                           \
	} while (0)

int
main(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
	nvtxEventAttributes_t a;
	memset(&a, 0, sizeof a);
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	a.message.registered = nvtxDomainRegisterStringA(domain, "registered");
	nvtxRangePushA("around");
	MEASURE("nvtx push+pop", nvtxRangePushA("range"); nvtxRangePop());
	MEASURE("nvtx domain push+pop", nvtxDomainRangePushEx(domain, &a);
	        nvtxDomainRangePop(domain));
	MEASURE("nvtx start+end", nvtxRangeEnd(nvtxRangeStartA("range")));
	MEASURE("nvtx mark", nvtxMarkA("mark"));
	nvtxRangePop();
	plumb_range_push("around");
	MEASURE("annotate push+pop", plumb_range_push("range"); plumb_range_pop());
	MEASURE("annotate metric", plumb_metric("metric", i));
	plumb_range_pop();
	return 0;
}

/* ---- a tool that does next to nothing ---- */

typedef void (*function)(void);
static __thread int level;

static int
push_a(const char *text)
{
	(void)text;
	return level++;
}

static int
pop(void)
{
	return --level;
}

static int
domain_push(nvtxDomainHandle_t of, const nvtxEventAttributes_t *a)
{
	(void)of, (void)a;
	return level++;
}

static int
domain_pop(nvtxDomainHandle_t of)
{
	(void)of;
	return --level;
}

static nvtxRangeId_t
start_a(const char *text)
{
	(void)text;
	return 1;
}

static void
end_it(nvtxRangeId_t id)
{
	(void)id;
}

static void
mark_a(const char *text)
{
	(void)text;
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get)(uint32_t))
{
	const struct {
		size_t size;
		int (*table)(int, function ***, unsigned *);
	} *callbacks = get(1);
	function **core, **core2;
	unsigned last;
	if (!callbacks->table(1, &core, &last) || !callbacks->table(5, &core2, &last))
		return 0;
	*core[2] = (function)mark_a;
	*core[5] = (function)start_a;
	*core[7] = (function)end_it;
	*core[9] = (function)push_a;
	*core[11] = (function)pop;
	*core2[4] = (function)domain_push;
	*core2[5] = (function)domain_pop;
	return 1;
}
