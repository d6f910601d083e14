/* SPDX-License-Identifier: Apache-2.0 */
#include "base/counters.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Names were checked against the lists of CUPTI 13.5 (tests/data/counters.txt). */
#define THREADS(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum"
#define SCALAR(type) THREADS(type "add") " + " THREADS(type "mul") " + 2*" THREADS(type "fma")
/* Two numbers side by side in one instruction. */
#define PACKED(type)                                                                               \
	"2*" THREADS(type "add2") " + 2*" THREADS(type "mul2") " + 4*" THREADS(type "fma2")
#define TENSOR(types) "sm__ops_path_tensor_src_" types ".sum"
#define TENSOR_WIDE TENSOR("bf16_dst_fp32") " + " TENSOR("tf32_dst_fp32") " + " TENSOR("fp64")
#define TENSOR_AMPERE TENSOR("fp16_dst_fp16") " + " TENSOR("fp16_dst_fp32") " + " TENSOR_WIDE
#define TENSOR_BLACKWELL TENSOR_AMPERE " + " TENSOR("fp4_dst_fp32")
#define TENSOR_SMALL(types) TENSOR(types "_dst_fp16") " + " TENSOR(types "_dst_fp32")
#define EVERY(text) { text, text, text, text, text, text, text }

const struct plumb_counter plumb_counters[] = {
	{ "flop_count_sp",
	  "flop",
	  "operations in single precision, outside tensor cores",
	  true,
	  { SCALAR("f"), SCALAR("f"), SCALAR("f"), SCALAR("f"), SCALAR("f"),
	    SCALAR("f") " + " PACKED("f"), SCALAR("f") } },
	{ "flop_count_dp", "flop", "operations in double precision, outside tensor cores", true,
	  EVERY(SCALAR("d")) },
	{ "flop_count_hp", "flop", "operations in half precision, outside tensor cores", true,
	  EVERY(SCALAR("h")) },
	{ "flop_count_tensor",
	  "flop",
	  "floating-point operations of tensor cores",
	  true,
	  { TENSOR("fp16_dst_fp16") " + " TENSOR("fp16_bf16_tf32_dst_fp32"), TENSOR_AMPERE,
	    TENSOR_AMPERE, TENSOR_AMPERE " + " TENSOR("fp8"),
	    TENSOR("fp16") " + " TENSOR_WIDE " + " TENSOR("fp8"),
	    TENSOR_BLACKWELL " + " TENSOR_SMALL("fp4_fp6_fp8"),
	    TENSOR_BLACKWELL " + " TENSOR_SMALL("fp4_fp6") " + " TENSOR_SMALL("fp8") } },
	{ "dram_read_bytes",
	  "byte",
	  "bytes read from the GPU's memory",
	  true,
	  { "dram__bytes_read.sum", "dram__bytes_read.sum", "dram__bytes_read.sum",
	    "dram__bytes_read.sum", "dram__bytes_read.sum", "dram__bytes_read.sum",
	    "dram__bytes_op_read.sum" },
	  2,
	  "32*dramc__sectors_op_read.sum" },
	{ "dram_write_bytes",
	  "byte",
	  "bytes written to the GPU's memory",
	  true,
	  { "dram__bytes_write.sum", "dram__bytes_write.sum", "dram__bytes_write.sum",
	    "dram__bytes_write.sum", "dram__bytes_write.sum", "dram__bytes_write.sum",
	    "dram__bytes_op_write.sum" },
	  3,
	  "32*dramc__sectors_op_write.sum" },
	{ "achieved_occupancy", "ppm", "warps at work, of those that fit", true,
	  EVERY("10000*sm__warps_active.avg.pct_of_peak_sustained_active"), 5,
	  "10000*sm__warps_active_realtime.avg.pct_of_peak_sustained_active" },
	{ "l2_hit_rate", "ppm", "accesses to the L2 cache that hit", true,
	  EVERY("10000*lts__t_sector_hit_rate.pct"), 7,
	  "10000*lts__average_t_sector_hit_rate_realtime.pct" },
	{ "issue_utilization", "ppm", "cycles in which a scheduler issued an instruction", true,
	  EVERY("10000*smsp__issue_active.avg.pct_of_peak_sustained_active"), 6, NULL },
	{ "sm_active", "ppm", "cycles in which a multiprocessor had work", false,
	  EVERY("10000*sm__cycles_active.avg.pct_of_peak_sustained_elapsed"), 1, NULL },
	{ "tensor_active", "ppm", "cycles in which tensor cores worked", false,
	  EVERY("10000*sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"), 4,
	  "10000*sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed" },
	{ 0 },
};

enum plumb_counter_family
plumb_counter_family(const char *chip)
{
	static const struct {
		const char *begin;
		enum plumb_counter_family family;
	} families[] = {
		{ "TU1", PLUMB_COUNTER_TURING },           { "GA100", PLUMB_COUNTER_AMPERE },
		{ "GA10", PLUMB_COUNTER_AMPERE_SMALL },    { "AD10", PLUMB_COUNTER_ADA },
		{ "GH100", PLUMB_COUNTER_HOPPER },         { "GB10", PLUMB_COUNTER_BLACKWELL },
		{ "GB20", PLUMB_COUNTER_BLACKWELL_SMALL },
	};

	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (!strncasecmp(chip, families[i].begin, strlen(families[i].begin)))
			return families[i].family;
	return PLUMB_COUNTER_FAMILIES;
}

const struct plumb_counter *
plumb_counter_find(const char *name, size_t length)
{
	for (const struct plumb_counter *c = plumb_counters; c->name; c++)
		if (strlen(c->name) == length && !memcmp(c->name, name, length))
			return c;
	return NULL;
}

bool
plumb_counter_is_foreign(const char *name, size_t length)
{
	const char *under = memmem(name, length, "__", 2), *end = name + length;

	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '.')
			return false;
	return under && under > name && memchr(under, '.', (size_t)(end - under)) && end[-1] != '.';
}

bool
plumb_counter_term(const char **at, struct plumb_counter_term *term)
{
	const char *text = *at + strspn(*at, " +");
	char *end;

	if (!*text)
		return false;
	term->factor = 1;
	if (isdigit((unsigned char)*text)) {
		term->factor = strtod(text, &end);
		text = end + (*end == '*');
	}
	term->name = text;
	term->length = strcspn(text, " +");
	*at = text + term->length;
	return true;
}

bool
plumb_counter_listed(const char **at, const char **name, size_t *length)
{
	if (!*at)
		return false;
	*name = *at;
	*length = strcspn(*at, ",");
	*at = (*at)[*length] ? *at + *length + 1 : NULL;
	return true;
}
