/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges as libraries set them, for tests/e2e/test_nvtx.py: with the real headers, or with
 * mini_nvtx.h (-DMINI). Prints what NVTX returned. The argument names a scenario.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef MINI
#include "mini_nvtx.h"
#else
#include <nvtx3/nvToolsExt.h>
#endif

void library_work(void); /* library.c: an instance of NVTX of its own */

static nvtxEventAttributes_t
attributes(const char *text)
{
	nvtxEventAttributes_t a;
	memset(&a, 0, sizeof a);
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = text;
	return a;
}

static nvtxEventAttributes_t
registered(nvtxStringHandle_t string)
{
	nvtxEventAttributes_t a = attributes(NULL);
	a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	a.message.registered = string;
	return a;
}

static void
level(const char *what, int number)
{
	printf("%s %d\n", what, number);
}

/* Names in a buffer that changes, in all their forms. */
static void
names(void)
{
	char buffer[32];
	for (int i = 0; i < 3; i++) {
		snprintf(buffer, sizeof buffer, "plain %d", i % 2);
		nvtxRangePushA(buffer);
		nvtxRangePop();
	}
	nvtxRangePushW(L"wide \u00fc \u20ac \U0001f600");
	nvtxRangePop();
	nvtxEventAttributes_t a = attributes("attributes");
	nvtxRangePushEx(&a);
	nvtxRangePop();
	a.messageType = NVTX_MESSAGE_TYPE_UNICODE;
	a.message.unicode = L"wide attributes";
	nvtxRangePushEx(&a);
	nvtxRangePop();
	memset(&a, 0, sizeof a); /* no version, no size: nothing in it is looked at */
	nvtxRangePushEx(&a);
	nvtxRangePop();
	nvtxRangePushA(NULL);
	nvtxRangePop();
}

static void
nesting(void)
{
	level("push", nvtxRangePushA("outer"));
	for (int i = 0; i < 2; i++) {
		level("push", nvtxRangePushA("inner"));
		level("pop", nvtxRangePop());
	}
	level("pop", nvtxRangePop());
	level("pop", nvtxRangePop()); /* nothing is open */
	level("push", nvtxRangePushA("after"));
	level("pop", nvtxRangePop());
}

/* Domains whose ranges overlap, with a registered string. */
static void
domains(void)
{
	nvtxDomainHandle_t a = nvtxDomainCreateA("A"), b = nvtxDomainCreateW(L"B");
	nvtxStringHandle_t first = nvtxDomainRegisterStringA(a, "first");
	nvtxStringHandle_t second = nvtxDomainRegisterStringW(b, L"second");
	nvtxEventAttributes_t one = registered(first), two = registered(second);
	nvtxDomainNameCategoryA(a, 7, "category");
	level("push A", nvtxDomainRangePushEx(a, &one));
	level("push B", nvtxDomainRangePushEx(b, &two));
	level("push -", nvtxRangePushA("third"));
	level("pop A", nvtxDomainRangePop(a)); /* the outermost */
	level("push A", nvtxDomainRangePushEx(a, &one));
	level("pop -", nvtxRangePop());
	level("pop A", nvtxDomainRangePop(a));
	level("pop B", nvtxDomainRangePop(b));
	level("push A", nvtxDomainRangePushEx(a, &one));
	level("pop A", nvtxDomainRangePop(a));
	nvtxDomainDestroy(a);
	nvtxDomainDestroy(b);
}

static void
payloads(void)
{
	nvtxEventAttributes_t a = attributes("batch");
	a.payloadType = NVTX_PAYLOAD_TYPE_INT64;
	for (a.payload.llValue = 1; a.payload.llValue <= 3; a.payload.llValue++) {
		nvtxRangePushEx(&a);
		nvtxRangePop();
	}
	a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	a.payload.dValue = -2.6;
	a.message.ascii = "double";
	nvtxRangePushEx(&a);
	nvtxRangePop();
	a.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
	a.payload.fValue = 1e30f; /* more than a value holds */
	a.message.ascii = "huge";
	nvtxRangePushEx(&a);
	nvtxRangePop();
	a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
	a.payload.uiValue = 4000000000u;
	a.message.ascii = "mark";
	nvtxMarkEx(&a);
}

static nvtxRangeId_t moved;

static void *
end_elsewhere(void *data)
{
	(void)data;
	nvtxRangePushA("elsewhere");
	nvtxRangeEnd(moved);
	nvtxRangePop();
	return NULL;
}

static void
starts(void)
{
	pthread_t thread;
	nvtxRangePushA("around");
	nvtxRangeId_t one = nvtxRangeStartA("started"), two = nvtxRangeStartA("started");
	moved = nvtxRangeStartW(L"moved");
	printf("ids %d\n", one && two && moved && one != two && two != moved);
	nvtxRangePop(); /* a started range is no frame of what runs meanwhile */
	nvtxRangePushA("meanwhile");
	nvtxRangeEnd(one);
	nvtxRangeEnd(two);
	nvtxRangeEnd(two); /* again */
	nvtxRangePop();
	pthread_create(&thread, NULL, end_elsewhere, NULL);
	pthread_join(thread, NULL);
	nvtxDomainHandle_t domain = nvtxDomainCreateA("D");
	nvtxEventAttributes_t a = attributes("in a domain");
	nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &a));
	nvtxRangeStartA("never ended");
}

static void
epoch(void)
{
	nvtxRangeId_t whole = nvtxRangeStartA("epoch");
	for (int i = 0; i < 20; i++) {
		nvtxRangePushA("step");
		nvtxRangePop();
	}
	nvtxRangeEnd(whole);
}

static void
marks(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("D");
	nvtxEventAttributes_t a = attributes("of a domain");
	nvtxMarkA("alone");
	nvtxRangePushA("around");
	for (int i = 0; i < 5; i++)
		nvtxMarkA("inside");
	nvtxMarkW(L"w\u00efde");
	nvtxDomainMarkEx(domain, &a);
	nvtxRangePop();
}

static void
many(void)
{
	char name[32];
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof name, "step %d", i);
		nvtxRangePushA(name);
		nvtxRangePop();
	}
}

static void
deep(void)
{
	for (int i = 0; i < 5000; i++)
		nvtxRangePushA("deep");
	for (int i = 0; i < 5000; i++)
		nvtxRangePop();
	nvtxRangePushA("after");
	nvtxRangePop();
}

static void
libraries(void)
{
	nvtxRangePushA("program");
	library_work();
	nvtxRangePop();
}

static void
left_open(void)
{
	nvtxRangePushA("left open");
	nvtxRangePushA("done");
	nvtxRangePop();
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} scenarios[] = {
		{ "names", names },         { "nesting", nesting }, { "domains", domains },
		{ "payloads", payloads },   { "starts", starts },   { "marks", marks },
		{ "many", many },           { "deep", deep },       { "libraries", libraries },
		{ "left-open", left_open }, { "epoch", epoch },
	};
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		if (argc == 2 && !strcmp(argv[1], scenarios[i].name)) {
			scenarios[i].run();
			return 0;
		}
	return 2;
}
