/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where kernels of compiled code come from. The Python frame that calls one lies in a file that the
 * compiler generated, whose comments name the operators; the compiler's log has their lines. Frame
 * and kernels get an origin for each, under the compiled region: the stack of the person's lines,
 * and the operator. What is not known for sure (which operator is on which line, say) is told
 * apart, not joined.
 *
 * Lines of a call are looked for in this order: its nodes by the log's or the file's own list and
 * the graph that was compiled; the stacks that the log keeps of each call; the names in the call's
 * comment.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/generated.h"
#include "settle/settle_private.h"

#define LOG_FILES_MAX 4096u
#define STACK_MAX 64u
#define LINES_MAX 512u     /* of one call */
#define NO_CALL UINT32_MAX /* a line of a generated file that calls no kernel */

/* A Python frame of your code. */
struct place {
	const char *file, *function;
	size_t file_bytes, function_bytes;
	uint32_t line;
};

/* One origin of a call: an operator (string, or PLUMB_NONE) under a stack of frames, outermost
 * first. */
struct piece {
	uint32_t op;
	uint32_t from, count; /* of `frames` */
};

/* What is known of a call. It is filled in when it is first needed. */
struct answer {
	uint32_t from, count; /* of `pieces` */
	bool asked, lines;
	const char *why; /* it has no lines, or not all */
};

struct generated {
	uint32_t file; /* string */
	struct plumb_inductor_code code;
	const struct plumb_inductor_graph *graph;
	bool readable, ambiguous;
	struct answer *answers; /* by call */
};

/* A context whose Python frame is (in) a call. */
struct site {
	uint32_t generated, call;
};

struct provenance {
	struct plumb_settler *settler;
	PLUMB_VEC(struct generated) files;
	struct plumb_map file_map;
	PLUMB_VEC(struct piece) pieces;
	PLUMB_VEC(uint32_t) frames;
	PLUMB_VEC(struct site) sites;
	uint32_t *site_of; /* by context: index + 1, or NO_CALL */
};

static const char no_file[] = "the file that the compiler generated is gone";
static const char no_call[] = "its line in the generated file calls no kernel that plumb knows";
static const char other_kernel[] = "kernels whose name differs from their call's";
static const char no_log[] = "lines: its compilation left no log";
static const char from_cache[] = "lines: the compiler took it from its cache (run once with "
				 "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1, which compiles it again)";
static const char not_told[] = "lines: the compiler's log does not have them";
static const char ambiguous[] = "lines: several compilations made this file from different lines";

/* ---- logs ---- */

static bool
is_log(const char *name)
{
	size_t length = strlen(name);

	return !strncmp(name, "dedicated_log_torch_trace_", 26) && length > 4 &&
	       !strcmp(name + length - 4, ".log");
}

void
plumb_settle_compile_logs(struct plumb_settler *settler, const char *path, uint32_t folder)
{
	uint32_t count = settler->processes.count, used = 0, files = 0;
	DIR *dir = opendir(path);
	int64_t *pids = dir ? calloc(count + 1u, sizeof *pids) : NULL;
	struct dirent *entry;
	char file[8192];

	for (uint32_t i = 0; pids && i < count; i++)
		if (folder == UINT32_MAX || settler->processes.items[i].folder == folder)
			pids[used++] = settler->processes.items[i].pid;
	while (pids && (entry = readdir(dir)) && files < LOG_FILES_MAX)
		if (is_log(entry->d_name) &&
		    snprintf(file, sizeof file, "%s/%s", path, entry->d_name) < (int)sizeof file)
			files += plumb_inductor_log_read(&settler->compiled, file, pids, used);
	if (dir)
		closedir(dir);
	free(pids);
	settler->no_memory = settler->no_memory || settler->compiled.no_memory;
}

void
plumb_settle_users_logs(struct plumb_settler *settler)
{
	for (uint32_t i = 0; i < settler->facts.count; i++) {
		const struct plumb_settle_fact *fact = &settler->facts.items[i];
		if (fact->process == PLUMB_NONE &&
		    !strcmp(plumb_builder_get_text(settler->builder, fact->key), "run.torch_trace"))
			plumb_settle_compile_logs(
				settler, plumb_builder_get_text(settler->builder, fact->value),
				UINT32_MAX);
	}
}

/* ---- pieces ---- */

static void
out_of_memory(struct provenance *p)
{
	p->settler->no_memory = true;
}

static uint32_t
frame_of(struct provenance *p, const struct place *place)
{
	struct plumb_builder *builder = p->settler->builder;

	return plumb_builder_frame(
		builder, PLUMB_FRAME_PYTHON,
		plumb_builder_string(builder, place->function, place->function_bytes),
		plumb_builder_string(builder, place->file, place->file_bytes), place->line);
}

static uint32_t
add_frames(struct provenance *p, const struct place *places, uint32_t count)
{
	uint32_t from = p->frames.count;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t frame = frame_of(p, &places[i]), *added = plumb_vec_add(&p->frames);
		if (!added || frame == PLUMB_NONE) {
			p->frames.count = from;
			out_of_memory(p);
			return from;
		}
		*added = frame;
	}
	return from;
}

/* Adds the piece unless it is there. */
static void
add_piece(struct provenance *p, struct answer *answer, uint32_t op, uint32_t from, uint32_t count)
{
	struct piece *piece;

	for (uint32_t i = 0; i < answer->count; i++) {
		piece = &p->pieces.items[answer->from + i];
		if (piece->op == op && piece->count == count &&
		    !memcmp(p->frames.items + piece->from, p->frames.items + from,
		            count * sizeof *p->frames.items))
			return;
	}
	piece = plumb_vec_add(&p->pieces);
	if (!piece) {
		out_of_memory(p);
		return;
	}
	*piece = (struct piece){ op, from, count };
	answer->count++;
	answer->lines = answer->lines || count;
}

/* ---- stacks ---- */

/* The stacks of your code of a call, as ranges of frames. */
struct lines {
	struct {
		uint32_t from, count;
	} items[LINES_MAX];
	uint32_t count;
};

static void
add_line(struct lines *lines, uint32_t from, uint32_t count)
{
	if (!count || lines->count == LINES_MAX)
		return;
	lines->items[lines->count].from = from;
	lines->items[lines->count++].count = count;
}

/* The line whose innermost frame is that of FRAME; lines->count: none. A function's name may be
 * qualified in one of them and not in the other. */
static uint32_t
line_at(struct provenance *p, const struct lines *lines, uint32_t frame)
{
	const struct plumb_frame *wanted = plumb_builder_get_frame(p->settler->builder, frame);

	for (uint32_t i = 0; i < lines->count; i++) {
		uint32_t last = lines->items[i].from + lines->items[i].count - 1;
		const struct plumb_frame *own =
			plumb_builder_get_frame(p->settler->builder, p->frames.items[last]);
		if (own->file == wanted->file && own->line == wanted->line)
			return i;
	}
	return lines->count;
}

/* Adds the place of NODE, unless a line ends there; its number, or lines->count for no place. */
static uint32_t
line_of_node(struct provenance *p, struct lines *lines, const struct plumb_inductor_node *node)
{
	struct place place = { node->file, node->function, 0, 0, node->line };
	uint32_t from, line;

	if (!node->file)
		return LINES_MAX;
	place.file_bytes = strlen(node->file);
	place.function_bytes = strlen(node->function);
	from = add_frames(p, &place, 1);
	if (from == p->frames.count)
		return LINES_MAX;
	line = line_at(p, lines, p->frames.items[from]);
	if (line < lines->count)
		p->frames.count = from;
	else
		add_line(lines, from, 1);
	return line < lines->count ? line : LINES_MAX;
}

/* A stack as Python prints it: pairs of lines, of which the first is '  File "/a/b.py", line 3, in
 * f'. */
static void
take_stack(struct provenance *p, struct lines *lines, const char *text)
{
	struct place places[STACK_MAX];
	uint32_t count = 0;

	for (const char *at = text; (at = strstr(at, "  File \""));) {
		const char *file = at + 8, *quote = strchr(file, '"'), *end;
		unsigned long line;
		char *rest;
		at = file;
		if (!quote || strncmp(quote, "\", line ", 8))
			continue;
		line = strtoul(quote + 8, &rest, 10);
		if (!line || line > UINT32_MAX || strncmp(rest, ", in ", 5))
			continue;
		end = rest + 5 + strcspn(rest + 5, "\n");
		if (count == STACK_MAX) /* the innermost are wanted */
			memmove(places, places + 1, --count * sizeof *places);
		places[count++] = (struct place){ file, rest + 5, (size_t)(quote - file),
			                          (size_t)(end - rest - 5), (uint32_t)line };
		at = end;
	}
	uint32_t from = count ? add_frames(p, places, count) : 0;
	if (count && !p->settler->no_memory)
		add_line(lines, from, count);
}

/* ---- a call ---- */

struct asking {
	struct provenance *p;
	const struct plumb_inductor_log *log;
	const struct generated *g;
	const struct plumb_inductor_call *call;
	struct answer *answer;
	struct lines lines;
	bool paired[LINES_MAX]; /* the line has a piece with an operator */
};

static uint32_t
string_of(struct asking *a, const char *text)
{
	return plumb_builder_text(a->p->settler->builder, text);
}

/* Does the call's comment name it? Without a comment, the answer is yes. */
static bool
is_original(const struct asking *a, const char *op)
{
	for (uint32_t i = 0; i < a->call->operators.count; i++)
		if (!strcmp(a->g->code.texts.items[a->call->operators.from + i], op))
			return true;
	return !a->call->commented;
}

static void
pair_line(struct asking *a, uint32_t op, uint32_t line)
{
	add_piece(a->p, a->answer, op, a->lines.items[line].from, a->lines.items[line].count);
	a->paired[line] = true;
}

/* The names of the call's nodes, or none: the log's list, else that of the kernel's definition
 * where this is its only call. TEXTS is what they are of. */
static struct plumb_inductor_list
nodes_of(const struct asking *a, const char *const **texts)
{
	struct plumb_inductor_list list = { 0 };
	const struct plumb_inductor_definition *definition;
	uint32_t calls = 0;

	if (a->g->graph)
		list = plumb_inductor_texts_of(a->log, a->g->graph->kernels, a->call);
	*texts = a->log->texts.items;
	if (list.count)
		return list;
	*texts = a->g->code.texts.items;
	definition = plumb_inductor_definition_of(&a->g->code, a->call->kernel);
	for (uint32_t i = 0; i < a->g->code.calls.count; i++)
		calls += !strcmp(a->g->code.calls.items[i].kernel, a->call->kernel);
	return definition && calls == 1 ? definition->nodes : list;
}

static void
ask_nodes(struct asking *a)
{
	const char *const *texts;
	struct plumb_inductor_list list = nodes_of(a, &texts);

	for (uint32_t i = 0; i < list.count; i++) {
		const struct plumb_inductor_node *node =
			plumb_inductor_node_named(a->log, a->g->graph->after, texts[list.from + i]);
		uint32_t line;
		if (!node)
			continue;
		line = line_of_node(a->p, &a->lines, node);
		if (line < a->lines.count && node->op && is_original(a, node->op))
			pair_line(a, string_of(a, node->op), line);
	}
}

/* The node that a name of the comment means. In a backward graph, it is a node of the graph before
 * or of the backward graph itself. It is only known if the two do not contradict each other. */
static const struct plumb_inductor_node *
source_node(const struct asking *a, const char *name)
{
	const struct plumb_inductor_graph *graph = a->g->graph;
	const struct plumb_inductor_node *before = plumb_inductor_node_named(a->log, graph->before,
	                                                                     name),
					 *after;

	if (!graph->same_names)
		return NULL;
	if (!a->g->code.backward)
		return before;
	if (graph->cached)
		return NULL;
	after = plumb_inductor_node_named(a->log, graph->after, name);
	if (before && after && !plumb_inductor_same_place(before, after))
		return NULL;
	return after ? after : before;
}

static void
ask_names(struct asking *a)
{
	for (uint32_t i = 0; i < a->call->sources.count; i++) {
		const struct plumb_inductor_node *node =
			source_node(a, a->g->code.texts.items[a->call->sources.from + i]);
		if (node && node->file)
			line_of_node(a->p, &a->lines, node);
		else if (!a->answer->why)
			a->answer->why = a->g->graph->cached ? from_cache : not_told;
	}
}

/* Is a node with OP among the call's whose line the compiler does not know? */
static bool
is_unplaced(const struct asking *a, const char *op)
{
	const char *const *texts;
	struct plumb_inductor_list list = { 0 };

	if (a->g->graph)
		list = nodes_of(a, &texts);
	for (uint32_t i = 0; i < list.count; i++) {
		const struct plumb_inductor_node *node =
			plumb_inductor_node_named(a->log, a->g->graph->after, texts[list.from + i]);
		if (node && !node->file && node->op && !strcmp(node->op, op))
			return true;
	}
	return false;
}

/* The only line of the call that a node with OP is on, or LINES_MAX. */
static uint32_t
only_line(struct asking *a, const char *op)
{
	struct plumb_inductor_list list = { 0 };
	uint32_t found = LINES_MAX;

	if (is_unplaced(a, op))
		return LINES_MAX;
	if (a->lines.count == 1)
		return 0;
	if (a->g->graph && a->g->graph->same_names)
		list = a->g->graph->after;
	for (uint32_t i = 0; i < list.count; i++) {
		const struct plumb_inductor_node *node = &a->log->nodes.items[list.from + i];
		struct place place = { node->file, node->function, 0, 0, node->line };
		uint32_t line;
		if (!node->op || strcmp(node->op, op) || !node->file)
			continue;
		place.file_bytes = strlen(node->file);
		place.function_bytes = strlen(node->function);
		line = line_at(a->p, &a->lines, frame_of(a->p, &place));
		if (line == a->lines.count)
			continue;
		if (found != LINES_MAX && found != line)
			return LINES_MAX;
		found = line;
	}
	return found;
}

/* Operators and lines that are left. They stay apart, unless only one pair is possible. */
static void
ask_rest(struct asking *a)
{
	struct plumb_inductor_list list = a->call->operators;

	for (uint32_t i = 0; i < list.count; i++) {
		const char *name = a->g->code.texts.items[list.from + i];
		uint32_t op = string_of(a, name), line;
		bool there = false;
		for (uint32_t k = 0; k < a->answer->count; k++)
			there = there || a->p->pieces.items[a->answer->from + k].op == op;
		if (there)
			continue;
		line = only_line(a, name);
		if (line < a->lines.count)
			pair_line(a, op, line);
		else
			add_piece(a->p, a->answer, op, 0, 0);
	}
	for (uint32_t i = 0; i < a->lines.count; i++)
		if (!a->paired[i])
			add_piece(a->p, a->answer, PLUMB_NONE, a->lines.items[i].from,
			          a->lines.items[i].count);
}

/* Finds what the call INDEX of the file comes from. */
static struct answer *
answer_call(struct provenance *p, struct generated *g, uint32_t index)
{
	const struct plumb_inductor_log *log = &p->settler->compiled;
	struct answer *answer = &g->answers[index];

	if (answer->asked)
		return answer;
	struct asking a = {
		.p = p,
		.log = log,
		.g = g,
		.call = &g->code.calls.items[index],
		.answer = answer,
	};
	answer->asked = true;
	answer->from = p->pieces.count;
	if (g->graph) {
		struct plumb_inductor_list stacks =
			plumb_inductor_texts_of(log, g->graph->stacks, a.call);
		for (uint32_t i = 0; i < stacks.count; i++)
			take_stack(p, &a.lines, log->texts.items[stacks.from + i]);
		ask_nodes(&a);
		if (!a.lines.count)
			ask_names(&a);
	}
	ask_rest(&a);
	if (!answer->lines)
		answer->why = g->ambiguous       ? ambiguous
		              : !g->graph        ? no_log
		              : g->graph->cached ? from_cache
		                                 : not_told;
	return answer;
}

/* ---- places in the tree ---- */

static const char *
text_of(struct provenance *p, uint32_t string)
{
	const char *text =
		string == PLUMB_NONE ? NULL : plumb_builder_get_text(p->settler->builder, string);

	return text ? text : "";
}

/* The generated file with that name. It is read when it is first needed. PLUMB_NONE: it is not a
 * generated file, or no memory. */
static uint32_t
find_file(struct provenance *p, uint32_t file)
{
	const char *path = text_of(p, file);
	struct generated *g;
	struct plumb_map_cursor at;
	uint64_t hash = plumb_hash_mix(0, file);

	if (!plumb_generated_by_inductor(path))
		return PLUMB_NONE;
	for (uint32_t i = plumb_map_first(&p->file_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&p->file_map, &at))
		if (p->files.items[i].file == file)
			return i;
	g = plumb_vec_add(&p->files);
	if (!g || plumb_map_add(&p->file_map, hash, p->files.count - 1)) {
		out_of_memory(p);
		return PLUMB_NONE;
	}
	g->file = file;
	g->readable = plumb_inductor_code_read(&g->code, path) && g->code.generated;
	g->answers = calloc(g->code.calls.count + 1u, sizeof *g->answers);
	if (!g->answers)
		out_of_memory(p);
	g->graph = plumb_inductor_graph_of(&p->settler->compiled, path, &g->ambiguous);
	return p->files.count - 1;
}

static void
count_fate(struct provenance *p, enum plumb_fate fate, const char *detail)
{
	plumb_builder_ledger(p->settler->builder, PLUMB_NONE, PLUMB_SOURCE_PROVENANCE, fate,
	                     detail ? plumb_builder_text(p->settler->builder, detail) : PLUMB_NONE,
	                     1);
}

static void
count_lost(struct provenance *p, const char *why)
{
	count_fate(p, PLUMB_FATE_RECEIVED, NULL);
	count_fate(p, PLUMB_FATE_NO_PROVENANCE, why);
}

/* The compiled region that CONTEXT is in. If none was recorded: what calls the generated code. */
static uint32_t
region_of(struct provenance *p, uint32_t context)
{
	static const char region[] = "Torch-Compiled Region";
	const struct plumb_settle_context *contexts = p->settler->contexts.items;

	for (uint32_t c = context; c; c = contexts[c].parent) {
		const struct plumb_frame *frame =
			plumb_builder_get_frame(p->settler->builder, contexts[c].frame);
		if (contexts[c].kind == PLUMB_FRAME_OPERATOR &&
		    !strncmp(text_of(p, frame->name), region, sizeof region - 1))
			return c;
	}
	while (context && !p->site_of[context])
		context = contexts[context].parent;
	return context ? contexts[context].parent : 0;
}

/* Gives CONTEXT the origins of the call at SITE, which is at the context PLACE. */
static struct answer *
attach_origins(struct provenance *p, uint32_t context, uint32_t place, const struct site *site)
{
	struct plumb_builder *builder = p->settler->builder;
	struct answer *answer = answer_call(p, &p->files.items[site->generated], site->call);
	uint32_t region = region_of(p, place);
	uint32_t flags = p->settler->contexts.items[place].flags & PLUMB_CONTEXT_BACKWARD;

	for (uint32_t i = 0; i < answer->count && !p->settler->no_memory; i++) {
		const struct piece *piece = &p->pieces.items[answer->from + i];
		struct plumb_origin origin = { context, region, PLUMB_ORIGIN_OF_FUSED };
		for (uint32_t k = 0; k < piece->count; k++)
			origin.origin = plumb_builder_context(builder, origin.origin,
			                                      p->frames.items[piece->from + k], 0);
		if (piece->op != PLUMB_NONE)
			origin.origin = plumb_builder_context(
				builder, origin.origin,
				plumb_builder_frame(builder, PLUMB_FRAME_OPERATOR, piece->op,
			                            PLUMB_NONE, 0),
				flags);
		if (origin.origin == PLUMB_NONE) {
			out_of_memory(p);
			return answer;
		}
		plumb_builder_origin(builder, &origin);
	}
	return answer;
}

/* ---- kernels ---- */

static bool
is_version(const char *text)
{
	return strspn(text, "0123456789cde_") == strlen(text);
}

/* Is KERNEL, as the GPU names it, the one that the call runs? Old versions of Triton append how it
 * was specialised; one that was written by hand may have its own name without Inductor's number. */
static bool
is_of_call(const struct generated *g, const struct plumb_inductor_call *call, const char *kernel)
{
	const struct plumb_inductor_definition *definition;
	size_t length = strlen(call->kernel);

	if (call->library)
		return true;
	if (!strncmp(kernel, call->kernel, length) &&
	    (!kernel[length] || (kernel[length] == '_' && is_version(kernel + length))))
		return true;
	definition = plumb_inductor_definition_of(&g->code, call->kernel);
	length = strlen(kernel);
	return definition && definition->file && !strncmp(call->kernel, kernel, length) &&
	       call->kernel[length] == '_' && is_version(call->kernel + length);
}

/* Gives KERNEL, which ran for SITE, its origins and the place of its source. False: SITE calls
 * another kernel. */
static bool
take_kernel(struct provenance *p, uint32_t kernel, uint32_t place, const struct site *site)
{
	struct plumb_builder *builder = p->settler->builder;
	const struct generated *g = &p->files.items[site->generated];
	const struct plumb_inductor_call *call = &g->code.calls.items[site->call];
	uint32_t frame = p->settler->contexts.items[kernel].frame;
	const struct plumb_inductor_definition *definition =
		plumb_inductor_definition_of(&g->code, call->kernel);

	if (!is_of_call(g, call, text_of(p, plumb_builder_get_frame(builder, frame)->name)))
		return false;
	if (definition && definition->file)
		plumb_builder_frame_source(builder, frame,
		                           plumb_builder_text(builder, definition->file),
		                           definition->line);
	attach_origins(p, kernel, place, site);
	return true;
}

/* The innermost context from CONTEXT outwards that is in a call; 0: none. */
static uint32_t
site_around(struct provenance *p, uint32_t context)
{
	while (context && !p->site_of[context])
		context = p->settler->contexts.items[context].parent;
	return context;
}

/* A kernel of a replayed graph ran for the calls that were captured. */
static void
take_replayed(struct provenance *p, uint32_t kernel, uint32_t graph)
{
	for (uint32_t i = 0; i < p->settler->captures.count; i++) {
		const struct plumb_origin *capture = &p->settler->captures.items[i];
		uint32_t place = capture->context == graph ? site_around(p, capture->origin) : 0;
		if (place && p->site_of[place] != NO_CALL)
			take_kernel(p, kernel, place, &p->sites.items[p->site_of[place] - 1]);
	}
}

static void
take_kernels(struct provenance *p, uint32_t contexts)
{
	for (uint32_t c = 1; c < contexts; c++) {
		const struct plumb_settle_context *own = &p->settler->contexts.items[c];
		uint32_t place;
		if (own->kind != PLUMB_FRAME_KERNEL)
			continue;
		if (p->settler->contexts.items[own->parent].kind == PLUMB_FRAME_GRAPH)
			take_replayed(p, c, own->parent);
		place = site_around(p, c);
		if (place && p->site_of[place] == NO_CALL)
			count_lost(p, no_call);
		else if (place && !take_kernel(p, c, place, &p->sites.items[p->site_of[place] - 1]))
			count_lost(p, other_kernel);
	}
}

/* ---- all of it ---- */

/* Whether the context is in a call of a kernel, and what that comes from. */
static void
take_context(struct provenance *p, uint32_t c)
{
	const struct plumb_frame *frame =
		plumb_builder_get_frame(p->settler->builder, p->settler->contexts.items[c].frame);
	uint32_t file = find_file(p, frame->file), line = frame->line;
	const struct plumb_inductor_call *call;
	const struct answer *answer;
	struct generated *g;
	struct site *site;

	if (file == PLUMB_NONE || p->settler->no_memory)
		return;
	g = &p->files.items[file];
	if (!g->readable) {
		count_lost(p, no_file);
		return;
	}
	call = plumb_inductor_call_at(&g->code, line);
	if (!call) {
		/* It allocates, for example. This only matters if a kernel runs there. */
		p->site_of[c] = NO_CALL;
		return;
	}
	site = plumb_vec_add(&p->sites);
	if (!site) {
		out_of_memory(p);
		return;
	}
	*site = (struct site){ file, (uint32_t)(call - g->code.calls.items) };
	p->site_of[c] = p->sites.count;
	answer = attach_origins(p, c, c, site);
	count_fate(p, PLUMB_FATE_RECEIVED, NULL);
	count_fate(p, answer->lines ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_NO_PROVENANCE,
	           answer->lines ? NULL : answer->why);
}

static void
warn_of_logs(struct plumb_settler *settler)
{
	const struct plumb_inductor_log *log = &settler->compiled;

	if (log->damaged)
		plumb_settle_warn(settler,
		                  "%llu records of the compiler's log (TORCH_TRACE) are cut off or "
		                  "too long; lines of compiled kernels may be missing",
		                  (unsigned long long)log->damaged);
	if (log->full)
		plumb_settle_warn(settler,
		                  "the compiler's log (TORCH_TRACE) is longer than %llu GiB; plumb "
		                  "did not read the rest",
		                  (unsigned long long)(PLUMB_INDUCTOR_LOG_BYTES >> 30));
}

void
plumb_settle_provenance(struct plumb_settler *settler)
{
	struct provenance p = { .settler = settler };
	uint32_t contexts = settler->contexts.count;

	p.site_of = calloc(contexts + 1u, sizeof *p.site_of);
	if (!p.site_of)
		out_of_memory(&p);
	for (uint32_t c = 1; c < contexts && !settler->no_memory; c++)
		if (settler->contexts.items[c].kind == PLUMB_FRAME_PYTHON)
			take_context(&p, c);
	if (p.files.count && !settler->no_memory)
		take_kernels(&p, contexts);
	warn_of_logs(settler);
	for (uint32_t i = 0; i < p.files.count; i++) {
		plumb_inductor_code_free(&p.files.items[i].code);
		free(p.files.items[i].answers);
	}
	plumb_vec_free(&p.files);
	plumb_vec_free(&p.pieces);
	plumb_vec_free(&p.frames);
	plumb_vec_free(&p.sites);
	plumb_map_free(&p.file_map);
	free(p.site_of);
}
