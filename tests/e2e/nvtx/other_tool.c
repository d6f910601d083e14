/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody else's NVTX tool, which was there before plumb: it numbers domains and strings from 1,
 * knows what it gave out, and writes what it was told to the file in OTHER_TOOL_LOG.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mini_nvtx.h"

static FILE *out;
static char *domains[64], *strings[64];
static uintptr_t domain_count, string_count;
static uint64_t ids = 1000;
static int depth;

static const char *
message(const nvtxEventAttributes_t *a)
{
	if (a->messageType != NVTX_MESSAGE_TYPE_REGISTERED)
		return a->messageType == NVTX_MESSAGE_TYPE_ASCII ? a->message.ascii : "(wide)";
	uintptr_t string = (uintptr_t)a->message.registered;
	return string && string <= string_count ? strings[string - 1] : "(unknown string)";
}

static const char *
domain_name(nvtxDomainHandle_t domain)
{
	uintptr_t number = (uintptr_t)domain;
	return !number ? "-" : number <= domain_count ? domains[number - 1] : "(unknown domain)";
}

static int
push_a(const char *text)
{
	fprintf(out, "push %s\n", text);
	return 100 + depth++;
}

static int
push_ex(const nvtxEventAttributes_t *a)
{
	return push_a(message(a));
}

static int
pop(void)
{
	fprintf(out, "pop\n");
	return 100 + --depth;
}

static int
domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
	fprintf(out, "push %s %s\n", domain_name(domain), message(a));
	return 200;
}

static int
domain_pop(nvtxDomainHandle_t domain)
{
	fprintf(out, "pop %s\n", domain_name(domain));
	return 200;
}

static uint64_t
start_a(const char *text)
{
	fprintf(out, "start %s %llu\n", text, (unsigned long long)++ids);
	return ids;
}

static void
end(uint64_t id)
{
	fprintf(out, "end %llu\n", (unsigned long long)id);
}

static void
category(nvtxDomainHandle_t domain, uint32_t number, const char *name)
{
	fprintf(out, "category %s %u %s\n", domain_name(domain), number, name);
}

static nvtxDomainHandle_t
create(const char *name)
{
	domains[domain_count] = strdup(name);
	return (nvtxDomainHandle_t)++domain_count;
}

static nvtxStringHandle_t
register_string(nvtxDomainHandle_t domain, const char *text)
{
	(void)domain;
	strings[string_count] = strdup(text);
	return (nvtxStringHandle_t)++string_count;
}

static void
destroy(nvtxDomainHandle_t domain)
{
	fprintf(out, "destroy %s\n", domain_name(domain));
}

typedef int table_function(int module, mini_function ***table, unsigned *last);

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get)(uint32_t))
{
	struct {
		size_t size;
		table_function *module_table;
	} const *callbacks = get(1);
	mini_function **core, **core2;
	unsigned last;
	if (!out)
		out = fopen(getenv("OTHER_TOOL_LOG"), "w");
	if (!out || !callbacks->module_table(1, &core, &last) ||
	    !callbacks->module_table(5, &core2, &last))
		return 0;
	setvbuf(out, NULL, _IOLBF, 0);
	*core[4] = NULL; /* it has no RangeStartEx */
	*core[5] = (mini_function)start_a;
	*core[7] = (mini_function)end;
	*core[8] = (mini_function)push_ex;
	*core[9] = (mini_function)push_a;
	*core[11] = (mini_function)pop;
	*core2[4] = (mini_function)domain_push;
	*core2[5] = (mini_function)domain_pop;
	*core2[8] = (mini_function)category;
	*core2[10] = (mini_function)register_string;
	*core2[12] = (mini_function)create;
	*core2[14] = (mini_function)destroy;
	return 1;
}
