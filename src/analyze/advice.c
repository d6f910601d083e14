/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/advice.h"

#include <string.h>
#include <strings.h>

enum kind {
	COMMUNICATION,
	ATTENTION,
	CONVOLUTION,
	PRODUCT,
	RECURRENT,
	FUSED, /* by a compiler already */
	COPY,
	INDEXING,
	SORTING,
	LIGHT, /* elementwise work, normalisation, reductions: what a compiler can fuse */
	OTHER,
};

/* Parts of names, in lower case: the first that fits counts. */
static const struct {
	enum kind kind;
	const char *part;
} parts[] = {
	{ COMMUNICATION, "nccl" },
	{ COMMUNICATION, "rccl" },
	{ COMMUNICATION, "c10d::" },
	{ COMMUNICATION, "record_param_comms" },
	{ COMMUNICATION, "all_reduce" },
	{ COMMUNICATION, "allreduce" },
	{ COMMUNICATION, "all_gather" },
	{ COMMUNICATION, "reduce_scatter" },
	{ FUSED, "triton_" },
	{ FUSED, "compiledfunction" },
	{ ATTENTION, "attention" },
	{ ATTENTION, "flash" },
	{ ATTENTION, "fmha" },
	{ COPY, "convert" }, /* of a layout: no convolution */
	{ CONVOLUTION, "conv" },
	{ CONVOLUTION, "wgrad" },
	{ CONVOLUTION, "dgrad" },
	{ CONVOLUTION, "fprop" },
	{ CONVOLUTION, "scudnn_" },
	{ CONVOLUTION, "winograd" },
	{ RECURRENT, "lstm" },
	{ RECURRENT, "_rnn" },
	{ RECURRENT, "::gru" },
	{ LIGHT, "norm" },
	{ LIGHT, "bn_fw" },
	{ LIGHT, "bn_bw" },
	{ LIGHT, "softmax" },
	{ PRODUCT, "gemm" },
	{ PRODUCT, "cutlass" },
	{ PRODUCT, "xmma" },
	{ PRODUCT, "nvjet" },
	{ PRODUCT, "cijk_" },
	{ PRODUCT, "matmul" },
	{ PRODUCT, "addmm" },
	{ PRODUCT, "::mm" },
	{ PRODUCT, "::_scaled_mm" },
	{ PRODUCT, "bmm" },
	{ PRODUCT, "::linear" },
	{ PRODUCT, "einsum" },
	{ INDEXING, "embedding" },
	{ INDEXING, "scatter" },
	{ INDEXING, "gather" },
	{ INDEXING, "index" },
	{ SORTING, "sort" },
	{ SORTING, "topk" },
	{ SORTING, "unique" },
	{ SORTING, "nonzero" },
	{ COPY, "::copy_" },
	{ COPY, "::_to_copy" },
	{ COPY, "::clone" },
	{ COPY, "::contiguous" },
	{ COPY, "::cat" },
	{ COPY, "catarray" },
	{ COPY, "batchedcopy" },
	{ LIGHT, "elementwise" },
	{ LIGHT, "reduce_kernel" },
	{ LIGHT, "multi_tensor_apply" },
	{ LIGHT, "_foreach_" },
	{ LIGHT, "_loss" },
};

/* Operators whose whole name tells. */
static const char *const light_operators[] = {
	"aten::add",
	"aten::add_",
	"aten::sub",
	"aten::sub_",
	"aten::mul",
	"aten::mul_",
	"aten::div",
	"aten::div_",
	"aten::relu",
	"aten::relu_",
	"aten::gelu",
	"aten::silu",
	"aten::tanh",
	"aten::sigmoid",
	"aten::exp",
	"aten::log",
	"aten::pow",
	"aten::sqrt",
	"aten::neg",
	"aten::sum",
	"aten::mean",
	"aten::fill_",
	"aten::zero_",
	"aten::where",
	"aten::clamp",
	"aten::clamp_min",
	"aten::dropout",
	"aten::native_dropout",
	"aten::threshold_backward",
	"aten::gelu_backward",
	"aten::addcmul_",
	"aten::addcdiv_",
	"aten::lerp_",
	"aten::abs",
};

static bool
has(const char *name, size_t bytes, const char *part)
{
	size_t length = strlen(part);

	for (size_t i = 0; i + length <= bytes; i++)
		if (!strncasecmp(name + i, part, length))
			return true;
	return false;
}

/* By the name without template arguments, which hold all sorts of words. */
static enum kind
kind_of(const char *name)
{
	const char *angle = name ? strchr(name, '<') : NULL;
	size_t bytes = !name ? 0 : angle && angle > name ? (size_t)(angle - name) : strlen(name);

	for (size_t i = 0; name && i < sizeof light_operators / sizeof *light_operators; i++)
		if (!strcmp(name, light_operators[i]))
			return LIGHT;
	/* PyTorch's kernels that copy have the functor's name among those arguments. */
	if (name && (strcasestr(name, "copy_kernel") || !strcmp(name, "aten::to")))
		return COPY;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (has(name, bytes, parts[i].part))
			return parts[i].kind;
	return OTHER;
}

/* By kind: on the GPU, on the host; of PyTorch's programs, of others. */
static const struct {
	const char *gpu_torch, *gpu, *host_torch, *host;
} advices[] = {
	[COMMUNICATION] = { "GPUs exchange data here, and the time may be waiting for the slowest "
	                    "rank. Overlap it with computation, send less (larger gradient "
	                    "accumulation, bf16 gradients), and see plumb iters for the rank that "
	                    "comes last.",
	                    "GPUs exchange data here, and the time may be waiting for the slowest "
	                    "rank. Overlap it with computation, send less, and see plumb iters for "
	                    "the rank that comes last.",
	                    "Processes exchange data here, and the time may be waiting for the "
	                    "slowest one. Overlap it with computation, or send less.",
	                    "Processes exchange data here, and the time may be waiting for the "
	                    "slowest one. Overlap it with computation, or send less." },
	[ATTENTION] = { "Use torch.nn.functional.scaled_dot_product_attention with bf16 or fp16 "
	                "inputs, which can choose a flash kernel. Shorter or packed sequences "
	                "cost less.",
	                "Use a flash attention kernel and bf16 or fp16 inputs. Shorter or packed "
	                "sequences cost less.",
	                "Use torch.nn.functional.scaled_dot_product_attention. Shorter or packed "
	                "sequences cost less.",
	                "Use a fused attention routine. Shorter or packed sequences cost less." },
	[CONVOLUTION] = { "Use channels_last memory format and a lower precision (torch.autocast "
	                  "with bf16 or fp16, or TF32). If input sizes do not change, set "
	                  "torch.backends.cudnn.benchmark = True. Channel counts that are "
	                  "multiples of 8 suit tensor cores.",
	                  "Use the NHWC layout and a lower precision (bf16, fp16 or TF32). Channel "
	                  "counts that are multiples of 8 suit tensor cores.",
	                  "Use channels_last memory format, bf16 where the processor supports it, "
	                  "and as many threads as there are cores (torch.set_num_threads). A "
	                  "smaller input or fewer channels cost less.",
	                  "Use a tuned library such as oneDNN, and as many threads as there are "
	                  "cores. A smaller input or fewer channels cost less." },
	[PRODUCT] = { "Use a lower precision (torch.autocast with bf16 or fp16, or TF32 by "
	              "torch.set_float32_matmul_precision(\"high\")). Sizes that are multiples "
	              "of 8 suit tensor cores; one large product is faster than many small "
	              "ones.",
	              "Use a lower precision (bf16, fp16 or TF32). Sizes that are multiples of "
	              "8 suit tensor cores; one large product is faster than many small ones.",
	              "One large product is faster than many small ones. Use bf16 where the "
	              "processor supports it, and as many threads as there are cores "
	              "(torch.set_num_threads).",
	              "One large product is faster than many small ones. Use a tuned BLAS, and "
	              "as many threads as there are cores." },
	[RECURRENT] = { "Give the whole sequence to one call, so that cuDNN's fused version is "
	                "used, and use bf16 or fp16. A larger batch fills the GPU better.",
	                "Give the whole sequence to one call of a fused version. A larger batch "
	                "fills the GPU better.",
	                "Give the whole sequence to one call. A larger batch uses the processor "
	                "better.",
	                "Give the whole sequence to one call. A larger batch uses the processor "
	                "better." },
	[FUSED] = { "A compiler generated this already. Call it less often, use a lower "
	            "precision, or try another mode (torch.compile(mode=\"max-autotune\")).",
	            "A compiler generated this already. Call it less often, or use a lower "
	            "precision.",
	            "A compiler generated this already. Call it less often, or with larger "
	            "inputs.",
	            "A compiler generated this already. Call it less often, or with larger "
	            "inputs." },
	[COPY] = { "This moves bytes and computes nothing. Keep tensors in one dtype and "
	           "layout from one operator to the next, and write results where they are "
	           "needed instead of joining or copying them.",
	           "This moves bytes and computes nothing. Keep data in one type and layout, and "
	           "write results where they are needed.",
	           "This moves bytes and computes nothing. Keep tensors in one dtype and "
	           "layout, and write results where they are needed instead of joining or "
	           "copying them.",
	           "This moves bytes and computes nothing. Keep data in one type and layout, and "
	           "write results where they are needed." },
	[INDEXING] = { "This reads or writes scattered rows, so memory is the limit. Access "
	               "fewer or neighbouring rows, a narrower dtype, and whole rows at a time.",
	               "This reads or writes scattered rows, so memory is the limit. Access "
	               "fewer or neighbouring rows.",
	               "This reads or writes scattered rows, so memory is the limit. Access "
	               "fewer or neighbouring rows, and whole rows at a time.",
	               "This reads or writes scattered rows, so memory is the limit. Access "
	               "fewer or neighbouring rows." },
	[SORTING] = { "Sort fewer elements, or less often; topk instead of a whole sort is "
	              "enough in many places.",
	              "Sort fewer elements, or less often.",
	              "Sort fewer elements, or less often; topk instead of a whole sort is "
	              "enough in many places.",
	              "Sort fewer elements, or less often." },
	[LIGHT] = { "This does little for each byte that it reads, so memory is the limit. Let "
	            "torch.compile fuse it with its neighbours, use a fused operator, or a "
	            "narrower dtype.",
	            "This does little for each byte that it reads, so memory is the limit. "
	            "Fuse it with its neighbours, or use a narrower type.",
	            "This does little for each byte that it reads, so memory is the limit. "
	            "Call it less often, with fewer and larger inputs, or let torch.compile "
	            "fuse it with its neighbours.",
	            "This does little for each byte that it reads, so memory is the limit. "
	            "Call it less often, or fuse it with its neighbours." },
	[OTHER] = { "Call it less often or with smaller inputs, use a lower precision, or look for "
	            "a faster operator with the same result.",
	            "Call it less often or with smaller inputs, use a lower precision, or look for "
	            "a faster one with the same result.",
	            "Call it less often, or with smaller or fewer inputs, or look for a faster "
	            "operator with the same result.",
	            "Call it less often, or with smaller or fewer inputs." },
};

bool
plumb_advice_is_torch(const struct plumb_profile *p)
{
	for (uint32_t f = 0; f < p->frames_count; f++) {
		const char *name = plumb_text(p, p->frames[f].name);

		if (name && p->frames[f].kind == PLUMB_FRAME_OPERATOR &&
		    (!strncmp(name, "aten::", 6) || strstr(name, "autograd::")))
			return true;
	}
	return false;
}

const char *
plumb_advice_for(const char *op, const char *kernel, bool gpu, bool torch)
{
	enum kind kind = kind_of(op);

	if (kind == OTHER || kind == COPY)
		kind = kind_of(kernel) == OTHER ? kind : kind_of(kernel);
	if (gpu)
		return torch ? advices[kind].gpu_torch : advices[kind].gpu;
	return torch ? advices[kind].host_torch : advices[kind].host;
}
