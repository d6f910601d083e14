/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plumb's decoder makes of machine code, one line for each instruction, for decode.py:
 *
 *	decode FILE		each module of a cubin, fatbin, program or library
 *	decode --words		lines "ARCHITECTURE LOW HIGH" (hex) from the standard input
 *	decode --time FILE	how fast it decodes
 *	decode --extract FILE	writes each module into a file N.ARCHITECTURE.cubin here
 *	decode --gaps FILE…	cycles between dependent instructions (gaps.h)
 *	decode --forms N FILE…	the forms of instructions, with N examples of each (forms.h)
 *
 * A line: offset, opcode, class, guard, registers that are written, those that are read, issue,
 * signals and waits, target, as assembly.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "forms.h"
#include "gaps.h"
#include "isa/isa.h"
#include "isa/module.h"

static const char *const files[PLUMB_REG_FILES] = { "R", "U", "P", "Q", "B", "A" };

static void
print_regs(const struct plumb_regs *regs, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		printf("%s%s%u:%u:%u", i ? " " : "", files[regs[i].file], regs[i].first,
		       regs[i].count, regs[i].role);
	putchar('\t');
}

static void
print_insn(const struct plumb_isa *isa, const char *architecture, const void *text,
           const struct plumb_insn *insn)
{
	char assembly[256];

	printf("%" PRIx32 "\t%s\t%s\t", insn->offset, insn->opcode,
	       plumb_insn_class_names[insn->class]);
	if (insn->guard == PLUMB_INSN_ALWAYS)
		printf("\t");
	else
		printf("%s%s%u\t", insn->guard_not ? "!" : "", files[insn->guard_file],
		       insn->guard);
	print_regs(insn->writes, insn->writes_count);
	print_regs(insn->reads, insn->reads_count);
	printf("%u", insn->issue);
	for (unsigned i = 0; i < insn->signals_count; i++)
		printf(" %c%u", insn->signals[i].part == PLUMB_SYNC_RESULT ? 'w' : 'r',
		       insn->signals[i].counter);
	for (unsigned i = 0; i < insn->waits_count; i++)
		printf(" %" PRIx64 "<=%u", insn->waits[i].counters, insn->waits[i].threshold);
	if (insn->has_target)
		printf("\t%" PRIx32 "\t", insn->target);
	else
		printf("\t\t");
	isa->print(architecture, text, insn, assembly, sizeof assembly);
	puts(assembly);
}

static int
print_words(void)
{
	char architecture[16];
	uint64_t words[2];
	struct plumb_insn insn;

	while (scanf("%15s %" SCNx64 " %" SCNx64, architecture, &words[0], &words[1]) == 3) {
		const struct plumb_isa *isa = plumb_isa_find(architecture);
		if (!isa)
			return 1;
		isa->decode(architecture, words, sizeof words, 0, &insn);
		print_insn(isa, architecture, words, &insn);
	}
	return 0;
}

static void
print_function(const struct plumb_module *module, const struct plumb_module_function *function)
{
	const char *architecture = plumb_module_architecture(module);
	const struct plumb_isa *isa = plumb_isa_find(architecture);
	struct plumb_insns insns;
	struct plumb_error error;

	printf("function\t%s\t%s\t%d\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%u\n", function->name,
	       architecture, function->is_kernel, function->registers, function->stack_bytes,
	       function->shared_bytes, function->reference_count);
	if (!isa) {
		printf("no decoder\n");
		return;
	}
	if (plumb_isa_decode(isa, architecture, function->text, function->bytes, &insns, &error) <
	    0) {
		printf("error\t%s\n", error.message);
		return;
	}
	for (uint32_t i = 0; i < insns.count; i++)
		print_insn(isa, architecture, (const char *)function->text + insns.items[i].offset,
		           &insns.items[i]);
	plumb_insns_free(&insns);
}

static int
print_module(void *own, const void *bytes, size_t size)
{
	struct plumb_module *module;
	struct plumb_error error;

	(void)own;
	if (plumb_module_open(bytes, size, &module, &error) < 0) {
		printf("error\t%s\n", error.message);
		return 0;
	}
	printf("module\t%s\t%zu\t%d\n", plumb_module_architecture(module), size,
	       plumb_module_damaged(module));
	for (uint32_t i = 0; i < plumb_module_count(module); i++)
		print_function(module, plumb_module_function(module, i));
	plumb_module_free(module);
	return 0;
}

struct timing {
	uint64_t instructions, unknown, kernels, modules;
	double open, decode;
};

static int
extract_module(void *own, const void *bytes, size_t size)
{
	struct timing *count = own;
	struct plumb_module *module;
	char name[64];

	if (plumb_module_open(bytes, size, &module, NULL) < 0)
		return 0;
	snprintf(name, sizeof name, "%" PRIu64 ".%s.cubin", count->modules++,
	         plumb_module_architecture(module));
	plumb_module_free(module);
	FILE *file = fopen(name, "w");
	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		return -1;
	return 0;
}

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int
time_module(void *own, const void *bytes, size_t size)
{
	struct timing *timing = own;
	struct plumb_module *module;
	struct plumb_insns insns;
	double start = now();

	if (plumb_module_open(bytes, size, &module, NULL) < 0)
		return 0;
	double opened = now();
	const char *architecture = plumb_module_architecture(module);
	const struct plumb_isa *isa = plumb_isa_find(architecture);
	timing->open += opened - start;
	timing->modules++;
	for (uint32_t i = 0; isa && i < plumb_module_count(module); i++) {
		const struct plumb_module_function *function = plumb_module_function(module, i);
		if (plumb_isa_decode(isa, architecture, function->text, function->bytes, &insns,
		                     NULL) < 0)
			continue;
		timing->kernels += function->is_kernel;
		timing->instructions += insns.count;
		timing->unknown += insns.unknown;
		plumb_insns_free(&insns);
	}
	timing->decode += now() - opened;
	plumb_module_free(module);
	return 0;
}

int
main(int argc, char **argv)
{
	bool is_timed = argc == 3 && !strcmp(argv[1], "--time");
	bool is_extracted = argc == 3 && !strcmp(argv[1], "--extract");
	struct plumb_error error;
	struct stat status;

	if (argc == 2 && !strcmp(argv[1], "--words"))
		return print_words();
	if (argc > 3 && !strcmp(argv[1], "--forms"))
		return forms_print((unsigned)atoi(argv[2]), argv + 3, argc - 3);
	if (argc > 2 && !strcmp(argv[1], "--gaps"))
		return gaps_print(argv + 2, argc - 2);
	int file = argc < 2 ? -1 : open(argv[argc - 1], O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &status) < 0)
		return 2;
	void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (bytes == MAP_FAILED)
		return 2;
	struct timing timing = { 0 };
	double start = now();
	int code = plumb_modules_in(bytes, (size_t)status.st_size,
	                            is_timed       ? time_module
	                            : is_extracted ? extract_module
	                                           : print_module,
	                            &timing, &error);
	if (code < 0)
		fprintf(stderr, "%s: %s\n", argv[argc - 1], error.message);
	else if (is_timed)
		printf("%" PRIu64 " modules, %" PRIu64 " kernels, %" PRIu64
		       " instructions, %" PRIu64
		       " unknown; decoded %.2f million/s; all %.2f s, opening modules %.2f s\n",
		       timing.modules, timing.kernels, timing.instructions, timing.unknown,
		       (double)timing.instructions / timing.decode / 1e6, now() - start,
		       timing.open);
	return code < 0;
}
