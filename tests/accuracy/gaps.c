/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instruction of a fixed latency has no signal: the compiler puts enough cycles between it and
 * what reads its result. The fewest that it puts there, over millions of pairs, is the latency that
 * it assumes. Pairs with a wait between them, and guarded ones, say nothing: the wait may take the
 * time, and of two guards only one may hold.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gaps.h"
#include "isa/isa.h"
#include "isa/module.h"

enum { LONGEST = 64, REGISTERS = 256, GUARD = PLUMB_PIPE_COUNT, READERS, OPERATIONS = 8192 };

struct operation {
	char name[32], architecture[16];
	uint8_t pipe, latency;
	uint64_t instructions, signals;
	uint64_t gaps[PLUMB_REG_FILES][READERS][LONGEST];
};

/* Who wrote a register, and when. */
struct writer {
	struct operation *operation; /* NULL: nobody whose latency shows */
	uint64_t at;
	uint64_t since; /* it counts while this is the table's */
};

struct all {
	struct operation *operations[OPERATIONS];
	uint32_t count;
	uint64_t since;
	struct writer writers[PLUMB_REG_FILES][REGISTERS];
	/* The operation of an instruction of this module that was looked up last. */
	struct found {
		const char *opcode;
		uint32_t shape;
		struct operation *operation;
	} found[1024];
};

static const char *const pipes[PLUMB_PIPE_COUNT] = {
#define X(id, name) name,
	PLUMB_PIPES(X)
#undef X
};
static const char *const files[PLUMB_REG_FILES] = { "R", "UR", "P", "UP", "B", "A" };

static struct operation *
look_up(struct all *all, const char *architecture, const struct plumb_insn *insn)
{
	char name[32];
	uint32_t i;

	snprintf(name, sizeof name, "%s", insn->opcode);
	if (insn->class == PLUMB_INSN_TENSOR && insn->reads_count && insn->writes_count)
		snprintf(name, sizeof name, "%s %ux%u", insn->opcode, insn->reads[0].count,
		         insn->writes[0].count);
	for (i = 0; i < all->count; i++)
		if (!strcmp(all->operations[i]->name, name) &&
		    !strcmp(all->operations[i]->architecture, architecture))
			return all->operations[i];
	if (i == OPERATIONS || !(all->operations[i] = calloc(1, sizeof *all->operations[i])))
		abort();
	struct operation *new = all->operations[all->count++];
	snprintf(new->name, sizeof new->name, "%s", name);
	snprintf(new->architecture, sizeof new->architecture, "%s", architecture);
	new->pipe = insn->pipe;
	new->latency = insn->latency;
	return new;
}

static struct operation *
operation_of(struct all *all, const char *architecture, const struct plumb_insn *insn)
{
	uint32_t shape = insn->class == PLUMB_INSN_TENSOR
	                         ? (uint32_t)insn->reads[0].count << 16 | insn->writes[0].count
	                         : 0;
	struct found *found = &all->found[((uintptr_t)insn->opcode + shape) %
	                                  (sizeof all->found / sizeof *all->found)];

	if (found->opcode != insn->opcode || found->shape != shape)
		*found = (struct found){ insn->opcode, shape, look_up(all, architecture, insn) };
	return found->operation;
}

static void
forget(struct all *all)
{
	all->since++;
}

static void
read_range(struct all *all, struct plumb_regs regs, unsigned reader, uint64_t now)
{
	for (unsigned r = regs.first; r < regs.first + regs.count && r < REGISTERS; r++) {
		struct writer *writer = &all->writers[regs.file][r];
		if (writer->operation && writer->since == all->since && now - writer->at < LONGEST)
			writer->operation->gaps[regs.file][reader][now - writer->at]++;
	}
}

static bool
leaves(const struct plumb_insn *insn)
{
	return insn->class == PLUMB_INSN_BRANCH || insn->class == PLUMB_INSN_CALL ||
	       insn->class == PLUMB_INSN_RETURN || insn->class == PLUMB_INSN_EXIT ||
	       insn->class == PLUMB_INSN_RECONVERGE;
}

static void
add_instruction(struct all *all, const char *architecture, const struct plumb_insn *insn,
                uint64_t now)
{
	struct operation *operation = operation_of(all, architecture, insn);
	bool is_guarded = insn->guard != PLUMB_INSN_ALWAYS, has_signal = false;

	for (uint8_t i = 0; i < insn->signals_count; i++)
		has_signal |= insn->signals[i].part == PLUMB_SYNC_RESULT;
	operation->instructions++;
	operation->signals += has_signal;
	if (is_guarded)
		read_range(all,
		           (struct plumb_regs){
				   .file = insn->guard_file, .first = insn->guard, .count = 1 },
		           GUARD, now);
	for (uint8_t i = 0; i < insn->reads_count && !is_guarded; i++)
		read_range(all, insn->reads[i], insn->pipe, now);
	for (uint8_t i = 0; i < insn->writes_count; i++)
		for (unsigned r = insn->writes[i].first;
		     r < insn->writes[i].first + insn->writes[i].count && r < REGISTERS; r++)
			all->writers[insn->writes[i].file][r] =
				(struct writer){ is_guarded || has_signal ? NULL : operation, now,
				                 all->since };
}

static void
add_function(struct all *all, const char *architecture, const struct plumb_insns *insns)
{
	uint64_t now = 0;
	uint8_t *is_target = calloc(insns->count + 1, 1);

	if (!is_target)
		abort();
	for (uint32_t i = 0; i < insns->count; i++)
		if (insns->items[i].has_target &&
		    insns->items[i].target / insns->items[i].size < insns->count)
			is_target[insns->items[i].target / insns->items[i].size] = 1;
	forget(all);
	for (uint32_t i = 0; i < insns->count; i++) {
		const struct plumb_insn *insn = &insns->items[i];
		if (is_target[i] || insn->waits_count)
			forget(all);
		add_instruction(all, architecture, insn, now);
		if (leaves(insn))
			forget(all);
		now += insn->issue ? insn->issue : 1;
	}
	free(is_target);
}

static int
add_module(void *own, const void *bytes, size_t size)
{
	struct plumb_module *module;
	struct plumb_insns insns;

	if (plumb_module_open(bytes, size, &module, NULL) < 0)
		return 0;
	const char *architecture = plumb_module_architecture(module);
	const struct plumb_isa *isa = plumb_isa_find(architecture);
	memset(((struct all *)own)->found, 0, sizeof((struct all *)own)->found);
	for (uint32_t i = 0; isa && i < plumb_module_count(module); i++) {
		const struct plumb_module_function *function = plumb_module_function(module, i);
		if (plumb_isa_decode(isa, architecture, function->text, function->bytes, &insns,
		                     NULL) < 0)
			continue;
		add_function(own, architecture, &insns);
		plumb_insns_free(&insns);
	}
	plumb_module_free(module);
	return 0;
}

static void
print_gaps(const struct operation *operation, unsigned file, unsigned reader)
{
	const uint64_t *gaps = operation->gaps[file][reader];
	uint64_t pairs = 0;
	unsigned least = LONGEST;

	for (unsigned cycles = LONGEST; cycles--;) {
		pairs += gaps[cycles];
		if (gaps[cycles])
			least = cycles;
	}
	if (!pairs)
		return;
	printf("gap\t%s\t%s\t%s\t%s\t%s\t%u\t%" PRIu64 "\t%" PRIu64 "\t%u\n",
	       operation->architecture, operation->name, pipes[operation->pipe], files[file],
	       reader == GUARD ? "guard" : pipes[reader], least, pairs, gaps[least],
	       operation->latency);
}

int
gaps_print(char **paths, int count)
{
	struct all *all = calloc(1, sizeof *all);

	if (!all)
		return 1;
	for (int i = 0; i < count; i++) {
		struct stat status;
		int file = open(paths[i], O_RDONLY | O_CLOEXEC);
		if (file < 0 || fstat(file, &status) < 0)
			return 2;
		void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
		close(file);
		if (bytes == MAP_FAILED)
			return 2;
		struct plumb_error error;
		if (plumb_modules_in(bytes, (size_t)status.st_size, add_module, all, &error) < 0)
			fprintf(stderr, "%s: %s\n", paths[i], error.message);
		munmap(bytes, (size_t)status.st_size);
	}
	for (uint32_t i = 0; i < all->count; i++) {
		struct operation *operation = all->operations[i];
		for (unsigned file = 0; file < PLUMB_REG_FILES; file++)
			for (unsigned reader = 0; reader < READERS; reader++)
				print_gaps(operation, file, reader);
		printf("signals\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\n", operation->architecture,
		       operation->name, operation->instructions, operation->signals);
		free(operation);
	}
	free(all);
	return 0;
}
