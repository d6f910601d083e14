/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the structured log that PyTorch writes under TORCH_TRACE: records of one line each,
 *
 *	V1121 11:41:14.192000 10921 torch/_inductor/graph.py:3189] {"inductor_output_code": {…}, …}
 *
 * with the process's number, JSON, and a payload of lines that begin with a tab. Of all records
 * five kinds are kept: the graph that Dynamo took down, the graph that kernels were made of, the
 * name of the file that came out, and (with INDUCTOR_PROVENANCE) the nodes and stacks of each
 * kernel's call. They belong together by the compilation's number and their order.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_fields.h"
#include "settle/inductor.h"

#define HEADER_MAX ((size_t)256 << 10)
#define BLOCK_BYTES ((size_t)256 << 10)

enum kind {
	OTHER,
	DYNAMO_GRAPH,
	POST_GRAD_GRAPH,
	OUTPUT_CODE,
	NODE_MAPPINGS,
	STACK_TRACES,
	CACHE_HIT,
};

/* What is known of one compilation so far. */
struct compilation {
	int64_t number[3];
	struct plumb_inductor_list before, after;
	bool has_after;
	uint32_t first_graph; /* of this attempt, … */
	uint32_t graph;       /* … and the newest; UINT32_MAX none */
};

struct buffer {
	char *items;
	size_t count, room, most;
	bool cut; /* there was more */
};

struct reading {
	struct plumb_inductor_log *log;
	const int64_t *pids;
	uint32_t pids_count;
	PLUMB_VEC(struct compilation) compilations;
	struct buffer header, payload;
	enum kind kind; /* of the record whose payload comes */
	int64_t number[3];
	const char *path; /* of OUTPUT_CODE */
	bool foreign;     /* of no process that is asked for */
};

/* ---- memory ---- */

static void
append_text(struct reading *r, struct buffer *buffer, const char *text, size_t bytes)
{
	size_t room = buffer->room;

	if (buffer->cut)
		return;
	if (bytes > buffer->most - buffer->count) {
		buffer->cut = true;
		return;
	}
	while (room < buffer->count + bytes + 1)
		room = room ? 2 * room : 4096;
	if (room != buffer->room) {
		char *grown = realloc(buffer->items, room);
		if (!grown) {
			r->log->no_memory = buffer->cut = true;
			return;
		}
		buffer->items = grown;
		buffer->room = room;
	}
	memcpy(buffer->items + buffer->count, text, bytes);
	buffer->count += bytes;
	buffer->items[buffer->count] = '\0';
}

static void
empty_buffer(struct buffer *buffer)
{
	buffer->count = 0;
	buffer->cut = false;
}

static const char *
keep_text(struct plumb_inductor_log *log, const char *text, size_t bytes)
{
	char *kept;

	if (!log->pool)
		log->pool = plumb_pool_new();
	kept = log->pool ? plumb_pool_take(log->pool, bytes + 1) : NULL;
	if (!kept) {
		log->no_memory = true;
		return "";
	}
	memcpy(kept, text, bytes);
	kept[bytes] = '\0';
	return kept;
}

/* ---- graphs as PyTorch prints them ---- */

/* The place that the comment at TEXT tells: "# File: /a/b.py:3 in f, code: x = 1". */
static bool
take_place(struct plumb_inductor_log *log, const char *text, struct plumb_inductor_node *place)
{
	const char *at = strstr(text, "File: "), *in, *colon, *end;
	unsigned long line;

	if (!at)
		return false;
	at += 6;
	in = strstr(at, " in ");
	if (!in)
		return false;
	for (colon = in; colon > at && *colon != ':';)
		colon--;
	line = strtoul(colon + 1, NULL, 10);
	if (colon == at || !line || line > UINT32_MAX)
		return false;
	in += 4;
	end = strstr(in, ", code:");
	place->file = keep_text(log, at, (size_t)(colon - at));
	place->line = (uint32_t)line;
	place->function = keep_text(log, in, end ? (size_t)(end - in) : strlen(in));
	return true;
}

/* "torch.ops.aten.mul.Tensor(…" → "aten::mul"; NULL: some other call. */
static const char *
operator_of(struct plumb_inductor_log *log, const char *call)
{
	static const char ops[] = "torch.ops.";
	const char *space = call + sizeof ops - 1, *name;
	char text[256];
	int n;

	if (strncmp(call, ops, sizeof ops - 1))
		return NULL;
	name = space + strcspn(space, ".( \n");
	if (*name != '.')
		return NULL;
	name++;
	n = snprintf(text, sizeof text, "%.*s::%.*s", (int)(name - 1 - space), space,
	             (int)strcspn(name, ".( \n"), name);
	return n > 0 && n < (int)sizeof text ? keep_text(log, text, (size_t)n) : NULL;
}

/* A line "mul: "f32[8]" = torch.ops.aten.mul.Tensor(a, b);  a = None" gives a node at PLACE. */
static void
take_node(struct plumb_inductor_log *log, const char *line, const struct plumb_inductor_node *place,
          struct plumb_inductor_list *list)
{
	size_t length =
		strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	const char *call = strstr(line, " = ");
	struct plumb_inductor_node *node;

	if (!length || !call || (line[length] != ':' && line[length] != ' '))
		return;
	node = plumb_vec_add(&log->nodes);
	if (!node) {
		log->no_memory = true;
		return;
	}
	if (!list->count)
		list->from = log->nodes.count - 1;
	list->count++;
	*node = *place;
	node->name = keep_text(log, line, length);
	node->op = operator_of(log, call + 3);
}

static struct plumb_inductor_list
take_graph(struct plumb_inductor_log *log, char *text)
{
	struct plumb_inductor_list list = { 0 };
	struct plumb_inductor_node place = { 0 };

	for (char *line; (line = strsep(&text, "\n"));) {
		line += strspn(line, " ");
		if (!strncmp(line, "# No stacktrace", 15))
			memset(&place, 0, sizeof place);
		else if (*line == '#')
			take_place(log, line, &place);
		else if (*line && strncmp(line, "def ", 4) && strncmp(line, "return ", 7))
			take_node(log, line, &place, &list);
	}
	return list;
}

/* ---- what was made of them ---- */

/* Where the entries of an object go. A payload is there whole: nothing of it is read twice. */
struct entries {
	struct plumb_inductor_log *log;
	struct plumb_pull pull;
	struct plumb_inductor_list list;
};

static void
read_text(struct plumb_pull *pull, void *into, void *own)
{
	struct plumb_inductor_log *log = own;
	struct plumb_inductor_list *list = into;
	struct plumb_slice text;
	const char **added = plumb_pull_text(pull, &text) ? plumb_vec_add(&log->texts) : NULL;
	if (!added)
		return;
	*added = keep_text(log, text.at, text.bytes);
	if (!list->count)
		list->from = log->texts.count - 1;
	list->count++;
}

/* {"triton_poi_fused_add_0:1": ["a", "b"], …} */
static void
read_entries(void *own)
{
	/* All members are lists of texts. */
	static const struct plumb_pull_field any[] = { { .kind = PLUMB_PULL_LIST,
		                                         .read = read_text } };
	struct entries *entries = own;
	struct plumb_inductor_log *log = entries->log;
	const struct plumb_pull_field *next = any;
	struct plumb_pull *pull = &entries->pull;
	bool more = plumb_pull_enter_long(pull, '{');

	entries->list = (struct plumb_inductor_list){ 0 };
	while (more) {
		struct plumb_inductor_entry entry = { 0 }, *added;
		struct plumb_slice call;
		PLUMB_PULL_WHOLE(pull)
		{
			more = plumb_pull_member(pull, &call);
			if (more)
				plumb_pull_value(pull, any, &next, call, &entry.texts, log);
		}
		if (!more)
			return;
		added = plumb_vec_add(&log->entries);
		if (!added) {
			log->no_memory = true;
			return;
		}
		entry.call = keep_text(log, call.at, call.bytes);
		*added = entry;
		if (!entries->list.count)
			entries->list.from = log->entries.count - 1;
		entries->list.count++;
	}
}

/* ---- records ---- */

static struct compilation *
find_compilation(struct reading *r)
{
	struct compilation *c;

	for (uint32_t i = r->compilations.count; i-- > 0;)
		if (!memcmp(r->compilations.items[i].number, r->number, sizeof r->number))
			return &r->compilations.items[i];
	c = plumb_vec_add(&r->compilations);
	if (!c) {
		r->log->no_memory = true;
		return NULL;
	}
	memcpy(c->number, r->number, sizeof r->number);
	c->graph = c->first_graph = UINT32_MAX;
	return c;
}

static void
make_graph(struct reading *r, struct compilation *c)
{
	struct plumb_inductor_graph *graph = plumb_vec_add(&r->log->graphs);

	if (!graph) {
		r->log->no_memory = true;
		return;
	}
	graph->path = r->path;
	graph->before = c->before;
	graph->after = c->after;
	graph->cached = !c->has_after;
	graph->same_names = c->has_after;
	c->graph = r->log->graphs.count - 1;
	if (c->first_graph == UINT32_MAX)
		c->first_graph = c->graph;
	/* What comes next under this number is of another graph, a backward one say. */
	c->after = (struct plumb_inductor_list){ 0 };
	c->has_after = false;
}

/* MAPPINGS: the entries are one of its members. */
static struct plumb_inductor_list
read_payload(struct reading *r, bool mappings)
{
	static const struct plumb_pull_part parts[] = { { "cppCodeToPost", read_entries }, { 0 } };
	struct entries entries = { .log = r->log };

	if (plumb_pull_open_text(&entries.pull, r->payload.items, r->payload.count, NULL)) {
		r->log->no_memory = true;
		return entries.list;
	}
	if (!mappings)
		read_entries(&entries);
	else if (plumb_pull_enter_long(&entries.pull, '{'))
		plumb_pull_parts(&entries.pull, parts, &entries);
	r->log->damaged += plumb_pull_failed(&entries.pull);
	plumb_pull_close(&entries.pull);
	return entries.list;
}

/* The record is complete. */
static void
finish_record(struct reading *r)
{
	enum kind kind = r->foreign ? OTHER : r->kind;
	struct compilation *c = kind == OTHER ? NULL : find_compilation(r);

	r->kind = OTHER;
	if (!c)
		return;
	if (r->payload.cut) {
		r->log->damaged++;
		return;
	}
	if (!r->payload.count && kind < OUTPUT_CODE)
		return;
	if (kind == DYNAMO_GRAPH) {
		c->before = take_graph(r->log, r->payload.items);
		c->graph = c->first_graph = UINT32_MAX;
	} else if (kind == POST_GRAD_GRAPH) {
		c->after = take_graph(r->log, r->payload.items);
		c->has_after = true;
	} else if (kind == OUTPUT_CODE && r->path) {
		make_graph(r, c);
	} else if (kind == CACHE_HIT && c->first_graph != UINT32_MAX) {
		/* These graphs came with Dynamo's graph as the key, so their names are those of the
		 * graph that was compiled. */
		for (uint32_t i = c->first_graph; i < r->log->graphs.count; i++)
			r->log->graphs.items[i].same_names = true;
	} else if (c->graph != UINT32_MAX && r->payload.count && kind == NODE_MAPPINGS) {
		r->log->graphs.items[c->graph].kernels = read_payload(r, true);
	} else if (c->graph != UINT32_MAX && r->payload.count && kind == STACK_TRACES) {
		r->log->graphs.items[c->graph].stacks = read_payload(r, false);
	}
}

/* What of a record's JSON matters. Older versions have the file's name only, not its path. */
struct header {
	int64_t number[3];
	bool dynamo_graph;
	struct plumb_slice filename, path, artifact;
};
#define AT(member) PLUMB_PULL_AT(struct header, member)
static const struct plumb_pull_field code_fields[] = {
	PLUMB_PULL_FIELD("filename", TEXT, AT(filename)),
	PLUMB_PULL_FIELD("file_path", TEXT, AT(path)),
	{ 0 },
};
static const struct plumb_pull_field artifact_fields[] = {
	PLUMB_PULL_FIELD("name", TEXT, AT(artifact)),
	{ 0 },
};
static const struct plumb_pull_field header_fields[] = {
	PLUMB_PULL_FIELD("frame_id", INTEGER, AT(number[0])),
	PLUMB_PULL_FIELD("frame_compile_id", INTEGER, AT(number[1])),
	PLUMB_PULL_FIELD("compiled_autograd_id", INTEGER, AT(number[2])),
	PLUMB_PULL_FIELD("dynamo_output_graph", SEEN, AT(dynamo_graph)),
	PLUMB_PULL_FIELD("inductor_output_code", OBJECT, .inner = code_fields),
	PLUMB_PULL_FIELD("artifact", OBJECT, .inner = artifact_fields),
	{ 0 },
};
#undef AT

static enum kind
kind_of(const struct header *header)
{
	static const struct {
		const char *artifact;
		enum kind kind;
	} known[] = {
		{ "inductor_post_grad_graph", POST_GRAD_GRAPH },
		{ "inductor_provenance_tracking_node_mappings", NODE_MAPPINGS },
		{ "inductor_provenance_tracking_kernel_stack_traces", STACK_TRACES },
		{ "aotautograd_cache_hit", CACHE_HIT },
	};

	if (header->dynamo_graph)
		return DYNAMO_GRAPH;
	if (header->path.at || header->filename.at)
		return OUTPUT_CODE;
	for (size_t i = 0; header->artifact.at && i < sizeof known / sizeof *known; i++)
		if (plumb_slice_is(header->artifact, known[i].artifact))
			return known[i].kind;
	return OTHER;
}

static void
take_header(struct reading *r, const char *text, size_t bytes)
{
	struct header header = { .number = { -1, -1, -1 } };
	const char *brace = memchr(text, '{', bytes);
	struct plumb_pull pull;
	int64_t pid = 0;

	r->kind = OTHER;
	r->path = NULL;
	memcpy(r->number, header.number, sizeof r->number);
	if (!brace || sscanf(text, "%*s %*s %ld", &pid) != 1)
		return;
	r->foreign = true;
	for (uint32_t i = 0; i < r->pids_count; i++)
		r->foreign = r->foreign && r->pids[i] != pid;
	if (r->foreign)
		return;
	if (plumb_pull_open_text(&pull, brace, (size_t)(text + bytes - brace), NULL)) {
		r->log->no_memory = true;
		return;
	}
	PLUMB_PULL_WHOLE(&pull)
	plumb_pull_object(&pull, header_fields, &header, NULL);
	if (plumb_pull_failed(&pull)) {
		r->log->damaged++;
	} else {
		struct plumb_slice path = header.path.at ? header.path : header.filename;
		r->kind = kind_of(&header);
		if (path.at)
			r->path = keep_text(r->log, path.at, path.bytes);
	}
	memcpy(r->number, header.number, sizeof r->number);
	plumb_pull_close(&pull);
}

/* ---- lines ---- */

/* A part of a line: FIRST, its beginning; LAST, its end. IN_PAYLOAD is what the beginning told. */
static void
take_part(struct reading *r, const char *text, size_t bytes, bool first, bool last, bool *payload)
{
	if (first)
		*payload = bytes && *text == '\t';
	if (*payload) {
		/* Nobody reads the payloads of the other kinds. */
		if (r->kind != OTHER && r->kind != OUTPUT_CODE && r->kind != CACHE_HIT) {
			append_text(r, &r->payload, text + first, bytes - first);
			if (last)
				append_text(r, &r->payload, "\n", 1);
		}
		return;
	}
	if (first) {
		finish_record(r);
		empty_buffer(&r->payload);
		empty_buffer(&r->header);
	}
	append_text(r, &r->header, text, bytes);
	if (!last)
		return;
	if (r->header.cut)
		r->log->damaged++;
	else if (r->header.count)
		take_header(r, r->header.items, r->header.count);
}

static void
read_all(struct reading *r, int fd, char *block)
{
	bool first = true, payload = false;
	ssize_t got;

	while (!r->log->no_memory && (got = read(fd, block, BLOCK_BYTES)) > 0) {
		r->log->bytes += (uint64_t)got;
		for (char *at = block, *end = block + got; at < end;) {
			char *newline = memchr(at, '\n', (size_t)(end - at));
			char *stop = newline ? newline : end;
			take_part(r, at, (size_t)(stop - at), first, newline != NULL, &payload);
			first = newline != NULL;
			at = stop + (newline != NULL);
		}
		if (r->log->bytes >= PLUMB_INDUCTOR_LOG_BYTES) {
			r->log->full = true;
			break;
		}
	}
	/* A process that was killed leaves half a line. */
	if (first)
		finish_record(r);
	else
		r->log->damaged++;
}

bool
plumb_inductor_log_read(struct plumb_inductor_log *log, const char *path, const int64_t *pids,
                        uint32_t count)
{
	struct reading r = { .log = log,
		             .pids = pids,
		             .pids_count = count,
		             .header.most = HEADER_MAX,
		             .payload.most = PLUMB_INDUCTOR_PAYLOAD_BYTES };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	char *block = NULL;

	if (fd < 0)
		return false;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && !log->full)
		block = malloc(BLOCK_BYTES);
	if (block)
		read_all(&r, fd, block);
	close(fd);
	free(r.header.items);
	free(r.payload.items);
	plumb_vec_free(&r.compilations);
	if (!block)
		return false;
	free(block);
	return true;
}

void
plumb_inductor_log_free(struct plumb_inductor_log *log)
{
	plumb_vec_free(&log->graphs);
	plumb_vec_free(&log->nodes);
	plumb_vec_free(&log->entries);
	plumb_vec_free(&log->texts);
	plumb_pool_free(log->pool);
	log->pool = NULL;
}

/* ---- questions ---- */

const struct plumb_inductor_node *
plumb_inductor_node_named(const struct plumb_inductor_log *log, struct plumb_inductor_list list,
                          const char *name)
{
	for (uint32_t i = 0; i < list.count; i++)
		if (!strcmp(log->nodes.items[list.from + i].name, name))
			return &log->nodes.items[list.from + i];
	return NULL;
}

struct plumb_inductor_list
plumb_inductor_texts_of(const struct plumb_inductor_log *log, struct plumb_inductor_list list,
                        const struct plumb_inductor_call *call)
{
	static const struct plumb_inductor_list none;
	char name[4096];

	if (!call->handle ||
	    snprintf(name, sizeof name, "%s:%u", call->kernel, call->handle) >= (int)sizeof name)
		return none;
	for (uint32_t i = 0; i < list.count; i++)
		if (!strcmp(log->entries.items[list.from + i].call, name))
			return log->entries.items[list.from + i].texts;
	return none;
}

static bool
same_texts(const struct plumb_inductor_log *log, struct plumb_inductor_list a,
           struct plumb_inductor_list b)
{
	if (a.count != b.count)
		return false;
	for (uint32_t i = 0; i < a.count; i++)
		if (strcmp(log->texts.items[a.from + i], log->texts.items[b.from + i]))
			return false;
	return true;
}

bool
plumb_inductor_same_place(const struct plumb_inductor_node *a, const struct plumb_inductor_node *b)
{
	return a->line == b->line && !a->file == !b->file &&
	       (!a->file || !strcmp(a->file, b->file));
}

static bool
same_nodes(const struct plumb_inductor_log *log, struct plumb_inductor_list a,
           struct plumb_inductor_list b)
{
	if (a.count != b.count)
		return false;
	for (uint32_t i = 0; i < a.count; i++)
		if (!plumb_inductor_same_place(&log->nodes.items[a.from + i],
		                               &log->nodes.items[b.from + i]))
			return false;
	return true;
}

static bool
same_entries(const struct plumb_inductor_log *log, struct plumb_inductor_list a,
             struct plumb_inductor_list b)
{
	if (a.count != b.count)
		return false;
	for (uint32_t i = 0; i < a.count; i++)
		if (!same_texts(log, log->entries.items[a.from + i].texts,
		                log->entries.items[b.from + i].texts))
			return false;
	return true;
}

/* Two compilations that made the same file: do they tell the same? */
static bool
same_graph(const struct plumb_inductor_log *log, const struct plumb_inductor_graph *a,
           const struct plumb_inductor_graph *b)
{
	return same_nodes(log, a->before, b->before) &&
	       (a->cached || b->cached || same_nodes(log, a->after, b->after)) &&
	       same_entries(log, a->stacks, b->stacks);
}

const struct plumb_inductor_graph *
plumb_inductor_graph_of(const struct plumb_inductor_log *log, const char *path, bool *ambiguous)
{
	const struct plumb_inductor_graph *found = NULL;

	*ambiguous = false;
	for (uint32_t i = 0; i < log->graphs.count; i++) {
		const struct plumb_inductor_graph *graph = &log->graphs.items[i];
		if (!graph->path || strcmp(graph->path, path))
			continue;
		*ambiguous = *ambiguous || (found && !same_graph(log, found, graph));
		/* One that was compiled tells more than one from a cache. */
		if (!found || (found->cached && !graph->cached))
			found = graph;
	}
	return *ambiguous ? NULL : found;
}
