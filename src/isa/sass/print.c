/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assembly as far as the decoder knows it: the guard, the operation without its modifiers, the
 * first register of each operand, addresses, constants, numbers and targets.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "isa/sass/sass.h"

struct text {
	char *to;
	size_t size, used;
	const char *between; /* before the next operand */
};

static void PLUMB_PRINTF(2, 3) put(struct text *text, const char *format, ...)
{
	va_list arguments;

	if (text->used >= text->size)
		return;
	va_start(arguments, format);
	int length = vsnprintf(text->to + text->used, text->size - text->used, format, arguments);
	va_end(arguments);
	text->used += length > 0 ? (size_t)length : 0;
}

static void
put_between(struct text *text)
{
	put(text, "%s", text->between);
	text->between = ", ";
}

static const char *
file_name(unsigned file)
{
	static const char *const names[PLUMB_REG_FILES] = { "R", "UR", "P", "UP", "B", "A" };

	return file < PLUMB_REG_FILES ? names[file] : "?";
}

static void
put_regs(struct text *text, const struct plumb_regs *regs)
{
	put_between(text);
	put(text, "%s%u", file_name(regs->file), regs->first);
}

static void
put_address(struct text *text, const struct plumb_insn *insn)
{
	const char *plus = "";

	put_between(text);
	put(text, "[");
	for (unsigned i = 0; i < insn->reads_count; i++)
		if (insn->reads[i].role == PLUMB_REG_ADDRESS) {
			put(text, "%s%s%u%s", plus, file_name(insn->reads[i].file),
			    insn->reads[i].first, insn->reads[i].count > 1 ? ".64" : "");
			plus = "+";
		}
	if (insn->displacement || !*plus)
		put(text, "%s%s0x%x", insn->displacement < 0 ? "-" : plus, "",
		    insn->displacement < 0 ? -(unsigned)insn->displacement
		                           : (unsigned)insn->displacement);
	put(text, "]");
}

static bool
has_address(const struct plumb_insn *insn)
{
	return insn->space != PLUMB_SPACE_NONE && insn->space != PLUMB_SPACE_CONSTANT;
}

static void
put_constant(struct text *text, const struct plumb_insn *insn)
{
	put_between(text);
	put(text, "c[0x%x][", insn->constant_bank);
	for (unsigned i = 0; i < insn->reads_count; i++)
		if (insn->reads[i].role == PLUMB_REG_ADDRESS)
			put(text, "%s%u+", file_name(insn->reads[i].file), insn->reads[i].first);
	put(text, "0x%x]", (unsigned)insn->displacement);
}

void
plumb_sass_print(const char *architecture, const void *code, const struct plumb_insn *insn,
                 char *to, size_t size)
{
	struct text text = { .to = to, .size = size, .between = " " };

	(void)architecture;
	(void)code;
	if (size)
		*to = 0;
	if (insn->guard != PLUMB_INSN_ALWAYS)
		put(&text, "@%s%s%u ", insn->guard_not ? "!" : "", file_name(insn->guard_file),
		    insn->guard);
	put(&text, "%s", insn->opcode);
	for (unsigned i = 0; i < insn->writes_count; i++)
		put_regs(&text, &insn->writes[i]);
	if (has_address(insn))
		put_address(&text, insn);
	for (unsigned i = 0; i < insn->reads_count; i++)
		if (insn->reads[i].role != PLUMB_REG_ADDRESS)
			put_regs(&text, &insn->reads[i]);
	if (insn->reads_constant)
		put_constant(&text, insn);
	if (insn->has_immediate) {
		put_between(&text);
		put(&text, "%s0x%" PRIx64, insn->immediate < 0 ? "-" : "",
		    insn->immediate < 0 ? -(uint64_t)insn->immediate : (uint64_t)insn->immediate);
	}
	if (insn->class == PLUMB_INSN_BARRIER && insn->barrier != 0xff) {
		put_between(&text);
		put(&text, "0x%x", insn->barrier);
	}
	if (insn->has_target) {
		put_between(&text);
		put(&text, "0x%x", insn->target);
	}
}
