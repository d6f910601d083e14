/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/advice.h"

/* Parts of names, in lower case: the first that fits counts. Names that only one framework
 * has are in its table. */
static const struct plumb_framework_part parts[] = {
	{ "nccl", PLUMB_WORK_COMMUNICATION },
	{ "rccl", PLUMB_WORK_COMMUNICATION },
	{ "all_reduce", PLUMB_WORK_COMMUNICATION },
	{ "allreduce", PLUMB_WORK_COMMUNICATION },
	{ "all-reduce", PLUMB_WORK_COMMUNICATION },
	{ "all_gather", PLUMB_WORK_COMMUNICATION },
	{ "allgather", PLUMB_WORK_COMMUNICATION },
	{ "all-gather", PLUMB_WORK_COMMUNICATION },
	{ "reduce_scatter", PLUMB_WORK_COMMUNICATION },
	{ "reducescatter", PLUMB_WORK_COMMUNICATION },
	{ "reduce-scatter", PLUMB_WORK_COMMUNICATION },
	{ "all_to_all", PLUMB_WORK_COMMUNICATION },
	{ "alltoall", PLUMB_WORK_COMMUNICATION },
	{ "all-to-all", PLUMB_WORK_COMMUNICATION },
	{ "collective-permute", PLUMB_WORK_COMMUNICATION },
	{ "triton_", PLUMB_WORK_FUSED },
	{ "attention", PLUMB_WORK_ATTENTION },
	{ "flash", PLUMB_WORK_ATTENTION },
	{ "fmha", PLUMB_WORK_ATTENTION },
	{ "convert", PLUMB_WORK_COPY }, /* of a layout: no convolution */
	{ "conv", PLUMB_WORK_CONVOLUTION },
	{ "wgrad", PLUMB_WORK_CONVOLUTION },
	{ "dgrad", PLUMB_WORK_CONVOLUTION },
	{ "fprop", PLUMB_WORK_CONVOLUTION },
	{ "scudnn_", PLUMB_WORK_CONVOLUTION },
	{ "winograd", PLUMB_WORK_CONVOLUTION },
	{ "lstm", PLUMB_WORK_RECURRENT },
	{ "_rnn", PLUMB_WORK_RECURRENT },
	{ "::gru", PLUMB_WORK_RECURRENT },
	{ "norm", PLUMB_WORK_LIGHT },
	{ "bn_fw", PLUMB_WORK_LIGHT },
	{ "bn_bw", PLUMB_WORK_LIGHT },
	{ "softmax", PLUMB_WORK_LIGHT },
	{ "gemm", PLUMB_WORK_PRODUCT },
	{ "cutlass", PLUMB_WORK_PRODUCT },
	{ "xmma", PLUMB_WORK_PRODUCT },
	{ "nvjet", PLUMB_WORK_PRODUCT },
	{ "cijk_", PLUMB_WORK_PRODUCT },
	{ "matmul", PLUMB_WORK_PRODUCT },
	{ "addmm", PLUMB_WORK_PRODUCT },
	{ "::mm", PLUMB_WORK_PRODUCT },
	{ "::_scaled_mm", PLUMB_WORK_PRODUCT },
	{ "bmm", PLUMB_WORK_PRODUCT },
	{ "::linear", PLUMB_WORK_PRODUCT },
	{ "einsum", PLUMB_WORK_PRODUCT },
	{ "embedding", PLUMB_WORK_INDEXING },
	{ "scatter", PLUMB_WORK_INDEXING },
	{ "gather", PLUMB_WORK_INDEXING },
	{ "index", PLUMB_WORK_INDEXING },
	{ "sort", PLUMB_WORK_SORTING },
	{ "topk", PLUMB_WORK_SORTING },
	{ "unique", PLUMB_WORK_SORTING },
	{ "nonzero", PLUMB_WORK_SORTING },
	{ "::copy_", PLUMB_WORK_COPY },
	{ "::_to_copy", PLUMB_WORK_COPY },
	{ "::clone", PLUMB_WORK_COPY },
	{ "::contiguous", PLUMB_WORK_COPY },
	{ "::cat", PLUMB_WORK_COPY },
	{ "catarray", PLUMB_WORK_COPY },
	{ "batchedcopy", PLUMB_WORK_COPY },
	{ "elementwise", PLUMB_WORK_LIGHT },
	{ "reduce_kernel", PLUMB_WORK_LIGHT },
	{ "multi_tensor_apply", PLUMB_WORK_LIGHT },
	{ "_foreach_", PLUMB_WORK_LIGHT },
	{ "_loss", PLUMB_WORK_LIGHT },
	{ 0 },
};

static enum plumb_work_kind
find_kind(const char *name)
{
	enum plumb_work_kind kind = name ? plumb_framework_work(name) : PLUMB_WORK_OTHER;

	return name && !kind ? plumb_work_by_parts(parts, name) : kind;
}

/* For all programs. A framework's own advice comes before it. */
static const struct {
	const char *gpu, *host;
} advices[] = {
	[PLUMB_WORK_COMMUNICATION] = {
		/* What is known of the program comes first: communication.c. */
		.gpu = "GPUs exchange data here. Let it run while they compute, and send less "
		       "or less often.",
		.host = "Processes exchange data here, and the time may be waiting for the "
		        "slowest one. Overlap it with computation, or send less.",
	},
	[PLUMB_WORK_ATTENTION] = {
		.gpu = "Use a flash attention kernel and bf16 or fp16 inputs. Shorter or packed "
		       "sequences cost less.",
		.host = "Use a fused attention routine. Shorter or packed sequences cost less.",
	},
	[PLUMB_WORK_CONVOLUTION] = {
		.gpu = "Use the NHWC layout and a lower precision (bf16, fp16 or TF32). Channel "
		       "counts that are multiples of 8 suit tensor cores.",
		.host = "Use a tuned library such as oneDNN, and as many threads as there are "
		        "cores. A smaller input or fewer channels cost less.",
	},
	[PLUMB_WORK_PRODUCT] = {
		.gpu = "Use a lower precision (bf16, fp16 or TF32). Sizes that are multiples of "
		       "8 suit tensor cores; one large product is faster than many small ones.",
		.host = "One large product is faster than many small ones. Use a tuned BLAS, and "
		        "as many threads as there are cores.",
	},
	[PLUMB_WORK_RECURRENT] = {
		.gpu = "Give the whole sequence to one call of a fused version. A larger batch "
		       "fills the GPU better.",
		.host = "Give the whole sequence to one call. A larger batch uses the processor "
		        "better.",
	},
	[PLUMB_WORK_FUSED] = {
		.gpu = "A compiler generated this already. Call it less often, or use a lower "
		       "precision.",
		.host = "A compiler generated this already. Call it less often, or with larger "
		        "inputs.",
	},
	[PLUMB_WORK_COPY] = {
		.gpu = "This moves bytes and computes nothing. Keep data in one type and layout, "
		       "and write results where they are needed.",
		.host = "This moves bytes and computes nothing. Keep data in one type and "
		        "layout, and write results where they are needed.",
	},
	[PLUMB_WORK_INDEXING] = {
		.gpu = "This reads or writes scattered rows, so memory is the limit. Access "
		       "fewer or neighbouring rows.",
		.host = "This reads or writes scattered rows, so memory is the limit. Access "
		        "fewer or neighbouring rows.",
	},
	[PLUMB_WORK_SORTING] = {
		.gpu = "Sort fewer elements, or less often.",
		.host = "Sort fewer elements, or less often.",
	},
	[PLUMB_WORK_LIGHT] = {
		.gpu = "This does little for each byte that it reads, so memory is the limit. "
		       "Fuse it with its neighbours, or use a narrower type.",
		.host = "This does little for each byte that it reads, so memory is the limit. "
		        "Call it less often, or fuse it with its neighbours.",
	},
	[PLUMB_WORK_OTHER] = {
		.gpu = "Call it less often or with smaller inputs, use a lower precision, or "
		       "look for a faster one with the same result.",
		.host = "Call it less often, or with smaller or fewer inputs.",
	},
};

enum plumb_work_kind
plumb_advice_kind(const char *op, const char *kernel)
{
	enum plumb_work_kind kind = find_kind(op), other = find_kind(kernel);

	return (kind == PLUMB_WORK_OTHER || kind == PLUMB_WORK_COPY) && other != PLUMB_WORK_OTHER
	               ? other
	               : kind;
}

const char *
plumb_advice_for(const char *op, const char *kernel, bool gpu,
                 const struct plumb_framework_names *framework)
{
	enum plumb_work_kind kind = plumb_advice_kind(op, kernel);
	const char *own;

	own = !framework ? NULL : gpu ? framework->advice[kind].gpu : framework->advice[kind].host;
	return own ? own : gpu ? advices[kind].gpu : advices[kind].host;
}
