/* SPDX-License-Identifier: Apache-2.0 */
/* The table of answers. docs/folders/serve.md has it in words. */
#include <string.h>

#include "serve/answers.h"

#define ALL_FORMATS PLUMB_KEY_FORMAT("json|csv|columns", "json")
#define ONLY_JSON PLUMB_KEY_FORMAT("json", "json")
#define GROUPS "context|kernel|operator|range|module|python|line|phase|shape|native|library|"

static const struct plumb_query_key about_keys[] = { PLUMB_KEY_FILE, ONLY_JSON, { 0 } };

static const struct plumb_query_key overview_keys[] = {
	PLUMB_KEY_FILE,
	ONLY_JSON,
	PLUMB_KEY_WINDOW,
	{ 0 },
};

static const struct plumb_query_key shares_keys[] = {
	PLUMB_KEY_FILE,
	PLUMB_KEY_FORMAT("columns|json|csv", "columns"),
	PLUMB_KEY_WINDOW,
	{ 0 },
};

static const struct plumb_query_key findings_keys[] = {
	PLUMB_KEY_FILE,
	ALL_FORMATS,
	PLUMB_KEY_WINDOW,
	{ "top", PLUMB_QUERY_NUMBER, .fallback = "0" },
	{ 0 },
};

static const struct plumb_query_key report_keys[] = {
	PLUMB_KEY_FILE,
	ALL_FORMATS,
	PLUMB_KEY_WINDOW,
	{ "by", PLUMB_QUERY_CHOICE, .choices = GROUPS "thread|process|rank|collective|memory" },
	{ "metric", PLUMB_QUERY_TEXT },
	{ "top", PLUMB_QUERY_NUMBER, .fallback = "20" },
	{ "filter", PLUMB_QUERY_TEXT },
	{ "inverted", PLUMB_QUERY_FLAG },
	{ "folded", PLUMB_QUERY_FLAG },
	{ "per_iteration", PLUMB_QUERY_FLAG },
	{ "user_code", PLUMB_QUERY_TEXT },
	{ 0 },
};

static const struct plumb_query_key tables_keys[] = {
	PLUMB_KEY_FILE,
	ALL_FORMATS,
	PLUMB_KEY_WINDOW,
	{ "kind", PLUMB_QUERY_TEXT, .repeated = true },
	{ "files", PLUMB_QUERY_CHOICE, .choices = "one|all", .fallback = "one" },
	{ "layer", PLUMB_QUERY_CHOICE, .choices = "either|module|operator", .fallback = "either" },
	{ "model", PLUMB_QUERY_TEXT },
	{ "whole", PLUMB_QUERY_FLAG },
	{ "serialised", PLUMB_QUERY_FLAG },
	{ "runs", PLUMB_QUERY_NUMBER },
	{ "batch", PLUMB_QUERY_NUMBER },
	{ "optimal", PLUMB_QUERY_TEXT },
	{ "stat", PLUMB_QUERY_TEXT, .fallback = "trimmed" },
	{ "key", PLUMB_QUERY_CHOICE, .choices = "file|batch|gpu|framework|version" },
	{ "base", PLUMB_QUERY_CHOICE, .choices = "first|best", .fallback = "first" },
	{ "precision", PLUMB_QUERY_CHOICE, .choices = "fp32|tf32|fp16|bf16|fp8",
	  .fallback = "fp32" },
	{ "peak", PLUMB_QUERY_NUMBER },
	{ "bandwidth", PLUMB_QUERY_NUMBER },
	{ 0 },
};

static const struct plumb_query_key diff_keys[] = {
	ALL_FORMATS,
	{ "window", PLUMB_QUERY_TEXT, .fallback = "all" },
	{ "by", PLUMB_QUERY_CHOICE, .choices = GROUPS "rank|collective|iteration" },
	{ "metric", PLUMB_QUERY_TEXT },
	{ "top", PLUMB_QUERY_NUMBER, .fallback = "20" },
	{ "total", PLUMB_QUERY_FLAG },
	{ 0 },
};

static const struct plumb_query_key iters_keys[] = {
	PLUMB_KEY_FILE,
	ALL_FORMATS,
	{ "track", PLUMB_QUERY_NUMBER },
	{ "loop", PLUMB_QUERY_NUMBER },
	{ 0 },
};

static const struct plumb_query_key states_keys[] = {
	PLUMB_KEY_FILE,
	PLUMB_KEY_FORMAT("columns|json|csv", "columns"),
	{ "track", PLUMB_QUERY_NUMBER },
	{ "loop", PLUMB_QUERY_NUMBER },
	{ "level", PLUMB_QUERY_NUMBER, .fallback = "0" },
	{ "history", PLUMB_QUERY_NUMBER },
	{ "most", PLUMB_QUERY_NUMBER, .fallback = "100" },
	{ 0 },
};

static const struct plumb_query_key path_keys[] = {
	PLUMB_KEY_FILE,
	PLUMB_KEY_FORMAT("columns|json|csv", "columns"),
	{ "track", PLUMB_QUERY_NUMBER },
	{ "loop", PLUMB_QUERY_NUMBER },
	{ "iteration", PLUMB_QUERY_NUMBER },
	{ "px", PLUMB_QUERY_REAL },
	{ 0 },
};

static const struct plumb_query_key explain_keys[] = {
	PLUMB_KEY_FILE,
	ONLY_JSON,
	{ "track", PLUMB_QUERY_NUMBER },
	{ "loop", PLUMB_QUERY_NUMBER },
	{ "level", PLUMB_QUERY_NUMBER, .fallback = "0" },
	{ "iteration", PLUMB_QUERY_NUMBER },
	{ 0 },
};

static const struct plumb_query_key ranks_keys[] = {
	PLUMB_KEY_FILE,
	ALL_FORMATS,
	{ "top", PLUMB_QUERY_NUMBER, .fallback = "200" },
	{ 0 },
};

/* Those of a flame graph as a whole. */
#define FLAME_KEYS                                                                                 \
	PLUMB_KEY_FILE, PLUMB_KEY_WINDOW,                                                          \
		{ "view", PLUMB_QUERY_CHOICE, .choices = "down|heavy|up|callers|callees",          \
		  .fallback = "down" },                                                            \
		{ "of", PLUMB_QUERY_NUMBER }, { "metric", PLUMB_QUERY_TEXT },                      \
		{ "layers", PLUMB_QUERY_TEXT,                                                      \
		  .fallback = "python,module,operator,native,gpu,other" },                         \
		{ "hide", PLUMB_QUERY_TEXT }, { "rank", PLUMB_QUERY_NUMBER },                      \
		{ "recursion", PLUMB_QUERY_CHOICE, .choices = "collapse" },                        \
		{ "phase", PLUMB_QUERY_CHOICE, .choices = "joined|apart", .fallback = "joined" },  \
		{ "against", PLUMB_QUERY_NUMBER },                                                 \
		{ "width", PLUMB_QUERY_CHOICE, .choices = "after|before|either",                   \
		  .fallback = "after" }

static const struct plumb_query_key flame_keys[] = {
	FLAME_KEYS,
	PLUMB_KEY_FORMAT("columns|json|csv", "columns"),
	{ "root", PLUMB_QUERY_NUMBER, .fallback = "0" },
	{ "x0", PLUMB_QUERY_REAL, .fallback = "0" },
	{ "x1", PLUMB_QUERY_REAL, .fallback = "1" },
	{ "px", PLUMB_QUERY_REAL },
	{ "search", PLUMB_QUERY_TEXT },
	{ "named", PLUMB_QUERY_TEXT, .repeated = true },
	{ "depth", PLUMB_QUERY_NUMBER, .fallback = "0" },
	{ "depths", PLUMB_QUERY_NUMBER, .fallback = "0" },
	{ 0 },
};

static const struct plumb_query_key frame_keys[] = {
	FLAME_KEYS,
	ONLY_JSON,
	{ "node", PLUMB_QUERY_NUMBER },
	{ "finding", PLUMB_QUERY_TEXT },
	{ "root", PLUMB_QUERY_NUMBER, .fallback = "0" }, /* nodes have the same numbers below any */
	{ 0 },
};

static const struct plumb_query_key memories_keys[] = { PLUMB_KEY_FILE, ALL_FORMATS, { 0 } };

static const struct plumb_query_key memory_keys[] = {
	PLUMB_KEY_FILE,
	PLUMB_KEY_FORMAT("columns|json|csv", "columns"),
	{ "memory", PLUMB_QUERY_NUMBER },
	{ 0 },
};

static const struct plumb_query_key holders_keys[] = {
	PLUMB_KEY_FILE,
	ALL_FORMATS,
	{ "memory", PLUMB_QUERY_NUMBER },
	{ "by", PLUMB_QUERY_CHOICE, .choices = "line|operator|module", .fallback = "line" },
	{ "top", PLUMB_QUERY_NUMBER, .fallback = "0" },
	{ 0 },
};

static const struct plumb_query_key lanes_keys[] = {
	PLUMB_KEY_FILE,
	PLUMB_KEY_FORMAT("columns|json|csv", "columns"),
	{ 0 },
};

#define WHY_KEYS(format_)                                                                          \
	PLUMB_KEY_FILE, PLUMB_KEY_FORMAT("columns|json|csv", format_),                             \
	{                                                                                          \
		"kernel", PLUMB_QUERY_NUMBER                                                       \
	}

static const struct plumb_query_key why_keys[] = {
	WHY_KEYS("json"),
	{ "top", PLUMB_QUERY_NUMBER, .fallback = "100" },
	{ "number", PLUMB_QUERY_NUMBER },
	{ 0 },
};

static const struct plumb_query_key why_code_keys[] = {
	WHY_KEYS("columns"),
	{ "hot", PLUMB_QUERY_FLAG },
	{ "first", PLUMB_QUERY_NUMBER },
	{ "count", PLUMB_QUERY_NUMBER, .fallback = "4000" },
	{ 0 },
};

static const struct plumb_query_key why_source_keys[] = {
	WHY_KEYS("columns"),
	{ "source", PLUMB_QUERY_NUMBER },
	{ "near", PLUMB_QUERY_FLAG },
	{ "first", PLUMB_QUERY_NUMBER },
	{ "count", PLUMB_QUERY_NUMBER, .fallback = "4000" },
	{ 0 },
};

static const struct plumb_query_key traffic_keys[] = {
	PLUMB_KEY_FILE,
	ALL_FORMATS,
	{ "by", PLUMB_QUERY_CHOICE, .choices = "pair|object|line|kernel|collective|route",
	  .fallback = "pair" },
	{ "top", PLUMB_QUERY_NUMBER, .fallback = "500" },
	{ 0 },
};

static const struct plumb_query_key levels_keys[] = {
	PLUMB_KEY_FILE,
	ALL_FORMATS,
	{ "by", PLUMB_QUERY_CHOICE, .choices = "shown|level|layer|gpu|all", .fallback = "shown" },
	{ "top", PLUMB_QUERY_NUMBER, .fallback = "1000" },
	{ 0 },
};

#define RANGE_KEYS                                                                                 \
	PLUMB_KEY_FILE, PLUMB_KEY_FORMAT("columns|json|csv", "columns"),                           \
		{ "tracks", PLUMB_QUERY_TEXT }, { "t0", PLUMB_QUERY_REAL, .fallback = "0" },       \
	{                                                                                          \
		"t1", PLUMB_QUERY_REAL                                                             \
	}

static const struct plumb_query_key spans_keys[] = {
	RANGE_KEYS,
	{ "px", PLUMB_QUERY_REAL },
	{ 0 },
};

static const struct plumb_query_key sum_keys[] = {
	RANGE_KEYS,
	{ "top", PLUMB_QUERY_NUMBER, .fallback = "0" },
	{ "by", PLUMB_QUERY_CHOICE, .choices = "track" },
	{ 0 },
};

const struct plumb_answer_kind plumb_answer_kinds[] = {
	{ "about", PLUMB_FORMATS_JSON, PLUMB_OF_WHOLE, about_keys, plumb_answer_about },
	{ "overview", PLUMB_FORMATS_JSON, PLUMB_OF_ASKED, overview_keys, plumb_answer_overview },
	{ "shares", PLUMB_FORMATS_ALL, PLUMB_OF_ASKED, shares_keys, plumb_answer_shares },
	{ "findings", PLUMB_FORMATS_ALL, PLUMB_OF_ASKED, findings_keys, plumb_answer_findings },
	{ "report", PLUMB_FORMATS_ALL, PLUMB_OF_MAIN, report_keys, plumb_answer_report },
	{ "tables", PLUMB_FORMATS_ALL, PLUMB_OF_ASKED, tables_keys, plumb_answer_tables },
	{ "diff", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, diff_keys, plumb_answer_diff },
	{ "iters", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, iters_keys, plumb_answer_iters },
	{ "states", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, states_keys, plumb_answer_states },
	{ "path", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, path_keys, plumb_answer_path },
	{ "explain", PLUMB_FORMATS_JSON, PLUMB_OF_WHOLE, explain_keys, plumb_answer_explain },
	{ "ranks", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, ranks_keys, plumb_answer_ranks },
	{ "flame", PLUMB_FORMATS_ALL, PLUMB_OF_MAIN, flame_keys, plumb_answer_flame },
	{ "flame/frames", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, lanes_keys,
	  plumb_answer_flame_frames },
	{ "frame", PLUMB_FORMATS_JSON, PLUMB_OF_MAIN, frame_keys, plumb_answer_frame },
	{ "memory/devices", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, memories_keys,
	  plumb_answer_memory_devices },
	{ "memory/series", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, memory_keys,
	  plumb_answer_memory_series },
	{ "memory/holders", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, holders_keys,
	  plumb_answer_memory_holders },
	{ "why", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, why_keys, plumb_answer_why },
	{ "why/kernels", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, lanes_keys, plumb_answer_why_kernels },
	{ "why/code", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, why_code_keys, plumb_answer_why_code },
	{ "why/source", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, why_source_keys,
	  plumb_answer_why_source },
	{ "traffic", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, traffic_keys, plumb_answer_traffic },
	{ "levels", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, levels_keys, plumb_answer_levels },
	{ "timeline/tracks", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, lanes_keys,
	  plumb_answer_timeline_tracks },
	{ "timeline/spans", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, spans_keys,
	  plumb_answer_timeline_spans },
	{ "timeline/bands", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, spans_keys,
	  plumb_answer_timeline_bands },
	{ "timeline/arrows", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, spans_keys,
	  plumb_answer_timeline_arrows },
	{ "timeline/sum", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, sum_keys, plumb_answer_timeline_sum },
	{ "timeline/counters", PLUMB_FORMATS_ALL, PLUMB_OF_WHOLE, spans_keys,
	  plumb_answer_timeline_counters },
	{ 0 },
};

const struct plumb_answer_kind *
plumb_answer_kind_find(const char *name)
{
	for (const struct plumb_answer_kind *kind = plumb_answer_kinds; kind->name; kind++)
		if (!strcmp(kind->name, name))
			return kind;
	return NULL;
}
