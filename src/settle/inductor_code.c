/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the Python file that Inductor generates of a graph. Its function `call` runs one kernel
 * after the other, each under a comment
 *
 *	# Topologically Sorted Source Nodes: [a, b], Original ATen: [aten.mul, aten.relu]
 *	# [Provenance debug handles] triton_poi_fused_mul_relu_0:1
 *	triton_poi_fused_mul_relu_0.run(arg0_1, buf0, 2048, stream=stream0)
 *
 * of which the second line is only there when INDUCTOR_PROVENANCE was set. Kernels are defined
 * before, under a comment that lists the nodes of their first call, or the file that one was
 * written in by hand.
 */
#include "settle/inductor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/search.h"

#define FILE_MAX ((off_t)256 << 20)

struct reading {
	struct plumb_inductor_code *code;
	uint32_t line;
	bool quoted;                                 /* in a kernel's source */
	struct plumb_inductor_call call;             /* of the comments read last; line 0: none */
	struct plumb_inductor_definition definition; /* likewise */
	bool fragment;                               /* its comment lists nodes now */
	bool no_memory;
};

/* ---- words ---- */

static bool
is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.';
}

static bool
begins_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static void
add_text(struct reading *r, struct plumb_inductor_list *list, const char *text)
{
	const char **added = plumb_vec_add(&r->code->texts);

	if (!added) {
		r->no_memory = true;
		return;
	}
	if (!list->count)
		list->from = r->code->texts.count - 1;
	*added = text;
	list->count++;
}

/* "aten.mul" → "aten::mul", which takes a byte more: the bracket or blank before it. */
static char *
operator_name(char *text)
{
	char *dot = strchr(text, '.');

	if (!dot || !dot[1] || dot == text || !text[-1])
		return text;
	memmove(text - 1, text, (size_t)(dot - text));
	dot[-1] = dot[0] = ':';
	return text - 1;
}

/* The names of "[a, b]" at TEXT into LIST; what follows them. */
static char *
take_list(struct reading *r, char *text, struct plumb_inductor_list *list, bool operators)
{
	char *end = strchr(text, ']');

	if (*text != '[' || !end)
		return text;
	*end = '\0';
	for (char *at = text + 1; *at;) {
		size_t length = strcspn(at, ",");
		char *following = at + length + (at[length] == ',');
		at[length] = '\0';
		while (*at == ' ')
			at++;
		if (*at)
			add_text(r, list, operators ? operator_name(at) : at);
		at = following;
	}
	return end + 1;
}

/* ---- the body of `call` ---- */

static void
forget_call(struct reading *r)
{
	memset(&r->call, 0, sizeof r->call);
}

static void
take_comment(struct reading *r, char *text)
{
	static const char nodes[] = "Source Nodes: ", aten[] = ", Original ATen: ",
			  handle[] = "[Provenance debug handles] ";
	char *at = strstr(text, nodes), *colon;

	if (at) {
		forget_call(r);
		r->call.first = r->line;
		at = take_list(r, at + sizeof nodes - 1, &r->call.sources, false);
		if (begins_with(at, aten)) {
			take_list(r, at + sizeof aten - 1, &r->call.operators, true);
			r->call.commented = true;
		}
	} else if ((at = strstr(text, handle))) {
		at += sizeof handle - 1;
		colon = strchr(at, ':');
		if (!colon)
			return;
		*colon = '\0';
		if (!r->call.first)
			r->call.first = r->line;
		r->call.kernel = at;
		r->call.handle = (uint32_t)strtoul(colon + 1, NULL, 10);
	}
}

/* Where the called expression begins in a statement: after "buf0 = ". */
static char *
after_assignment(char *text)
{
	char *at = text;

	while (is_word(*at))
		at++;
	if (at == text || !begins_with(at, " = "))
		return text;
	return at + 3;
}

/* If TEXT calls a kernel: its name, terminated. Else NULL. */
static char *
called_kernel(struct reading *r, char *text, bool *library)
{
	char *end;
	size_t length;

	text = after_assignment(text);
	end = text;
	while (is_word(*end))
		end++;
	length = (size_t)(end - text);
	if (!length || *end != '(')
		return NULL;
	*library = begins_with(text, "extern_kernels.") || begins_with(text, "torch.ops.") ||
	           begins_with(text, "aten.") || begins_with(text, "multi_kernel_");
	if (length > 4 && !memcmp(end - 4, ".run", 4))
		end -= 4;
	else if (!*library && !begins_with(text, "cpp_fused") &&
	         !(r->call.handle && strlen(r->call.kernel) == length &&
	           !memcmp(r->call.kernel, text, length)))
		return NULL;
	*end = '\0';
	return text;
}

static void
take_statement(struct reading *r, char *text)
{
	bool library;
	char *kernel;
	struct plumb_inductor_call *call;

	if (begins_with(text, "def ")) {
		forget_call(r);
		return;
	}
	kernel = called_kernel(r, text, &library);
	if (!kernel)
		return;
	call = plumb_vec_add(&r->code->calls);
	if (!call) {
		r->no_memory = true;
		return;
	}
	*call = r->call;
	/* A handle is of the kernel that it names. */
	if (call->handle && strcmp(call->kernel, kernel))
		call->handle = 0;
	if (!call->first)
		call->first = r->line;
	call->line = r->line;
	call->kernel = kernel;
	call->library = library;
	forget_call(r);
}

/* ---- what stands before it ---- */

/* "# Original path: /home/a/b.py:12" */
static void
take_original(struct reading *r, char *text)
{
	char *colon = strrchr(text, ':');
	unsigned long line = colon ? strtoul(colon + 1, NULL, 10) : 0;

	if (!line || line > UINT32_MAX)
		return;
	*colon = '\0';
	r->definition.file = text;
	r->definition.line = (uint32_t)line;
}

static void
take_outer_comment(struct reading *r, char *text)
{
	static const char original[] = "# Original path: ", backward[] = "# AOT ID: ['",
			  node[] = "#   %";
	char *end;

	if (r->line == 1 && begins_with(text, backward)) {
		r->code->generated = true;
		r->code->backward = strstr(text, "_backward']") != NULL;
	} else if (begins_with(text, original)) {
		take_original(r, text + sizeof original - 1);
	} else if (begins_with(text, "# Graph fragment:")) {
		r->fragment = true;
	} else if (r->fragment && begins_with(text, node) && strstr(text, "= call_function[")) {
		text += sizeof node - 1;
		end = text + strcspn(text, " :");
		*end = '\0';
		add_text(r, &r->definition.nodes, text);
	}
}

static void
take_outer_statement(struct reading *r, char *text)
{
	char *end = text;
	struct plumb_inductor_definition *definition;

	while (is_word(*end))
		end++;
	if (end > text && begins_with(end, " = async_compile.")) {
		definition = plumb_vec_add(&r->code->definitions);
		if (definition) {
			*end = '\0';
			*definition = r->definition;
			definition->kernel = text;
		} else {
			r->no_memory = true;
		}
	}
	memset(&r->definition, 0, sizeof r->definition);
	r->fragment = false;
	forget_call(r);
}

/* ---- lines ---- */

static bool
changes_quoting(const char *text)
{
	bool changes = false;

	while ((text = strstr(text, "'''"))) {
		changes = !changes;
		text += 3;
	}
	return changes;
}

static void
take_line(struct reading *r, char *text)
{
	bool was_quoted = r->quoted;
	char *inner = text + strspn(text, " ");

	if (changes_quoting(text))
		r->quoted = !r->quoted;
	if (was_quoted || !*inner)
		return;
	if (*inner == '#' && inner == text)
		take_outer_comment(r, text);
	else if (*inner == '#')
		take_comment(r, inner);
	else if (inner == text)
		take_outer_statement(r, text);
	else
		take_statement(r, inner);
}

bool
plumb_inductor_code_parse(struct plumb_inductor_code *code, char *text, size_t bytes)
{
	struct reading r = { .code = code };

	memset(code, 0, sizeof *code);
	code->text = text;
	text[bytes] = '\0';
	for (char *at = text, *end = text + bytes; at < end && !r.no_memory;) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		char *following = newline ? newline + 1 : end;
		if (newline)
			*newline = '\0';
		r.line++;
		take_line(&r, at);
		if (!code->generated)
			break; /* the first line says so */
		at = following;
	}
	return !r.no_memory;
}

bool
plumb_inductor_code_read(struct plumb_inductor_code *code, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	char *text = NULL;
	size_t used = 0, size = 0;
	ssize_t got = -1;

	memset(code, 0, sizeof *code);
	if (fd < 0)
		return false;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size <= FILE_MAX) {
		size = (size_t)status.st_size;
		text = malloc(size + 1);
	}
	while (text && used < size &&
	       ((got = read(fd, text + used, size - used)) > 0 || (got < 0 && errno == EINTR)))
		used += got > 0 ? (size_t)got : 0;
	close(fd);
	if (!text || (used < size && got < 0)) {
		free(text);
		return false;
	}
	return plumb_inductor_code_parse(code, text, used);
}

void
plumb_inductor_code_free(struct plumb_inductor_code *code)
{
	plumb_vec_free(&code->calls);
	plumb_vec_free(&code->definitions);
	plumb_vec_free(&code->texts);
	free(code->text);
	code->text = NULL;
}

/* ---- questions ---- */

const struct plumb_inductor_call *
plumb_inductor_call_at(const struct plumb_inductor_code *code, uint32_t line)
{
	uint32_t low = plumb_search(i, code->calls.count, code->calls.items[i].line < line);
	return low < code->calls.count && code->calls.items[low].first <= line
	               ? &code->calls.items[low]
	               : NULL;
}

const struct plumb_inductor_definition *
plumb_inductor_definition_of(const struct plumb_inductor_code *code, const char *kernel)
{
	for (uint32_t i = 0; i < code->definitions.count; i++)
		if (!strcmp(code->definitions.items[i].kernel, kernel))
			return &code->definitions.items[i];
	return NULL;
}
