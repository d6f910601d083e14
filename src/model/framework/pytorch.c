/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch: its eager operators ("aten::"), autograd, torch.utils.data, torch.optim, Inductor. */
#include "model/framework/registry.h"

static const struct plumb_framework_operator operators[] = {
	{ "mm", .flops = PLUMB_FLOPS_MATRICES },
	{ "_scaled_mm", .flops = PLUMB_FLOPS_MATRICES },
	{ "addmm", .flops = PLUMB_FLOPS_MATRICES, .operand = 1 },
	{ "_addmm_activation", .flops = PLUMB_FLOPS_MATRICES, .operand = 1 },
	{ "bmm", .flops = PLUMB_FLOPS_BATCHES },
	{ "baddbmm", .flops = PLUMB_FLOPS_BATCHES, .operand = 1 },
	{ "addbmm", .flops = PLUMB_FLOPS_BATCHES, .operand = 1 },
	{ "mv", .flops = PLUMB_FLOPS_VECTOR },
	{ "dot", .flops = PLUMB_FLOPS_VECTOR },
	{ "addmv", .flops = PLUMB_FLOPS_VECTOR, .operand = 1 },
	{ "matmul", .flops = PLUMB_FLOPS_MATMUL },
	{ "linear", .flops = PLUMB_FLOPS_LINEAR },
	{ "scaled_dot_product_attention", .flops = PLUMB_FLOPS_ATTENTION },
	/* Backward passes of attention have other inputs. */
	{ "_scaled_dot_product_*backward*", .flops = PLUMB_FLOPS_NONE },
	{ "_scaled_dot_product_*", .flops = PLUMB_FLOPS_ATTENTION },
	{ "convolution", .flops = PLUMB_FLOPS_CONVOLUTION },
	{ "conv1d", .flops = PLUMB_FLOPS_CONV },
	{ "conv2d", .flops = PLUMB_FLOPS_CONV },
	{ "conv3d", .flops = PLUMB_FLOPS_CONV },
	{ "conv_transpose1d", .flops = PLUMB_FLOPS_CONV_TRANSPOSE },
	{ "conv_transpose2d", .flops = PLUMB_FLOPS_CONV_TRANSPOSE },
	{ "conv_transpose3d", .flops = PLUMB_FLOPS_CONV_TRANSPOSE },

	{ "copy_", .flags = PLUMB_OPERATOR_COPIES | PLUMB_OPERATOR_CARRIES },
	{ "_to_copy", .flags = PLUMB_OPERATOR_COPIES | PLUMB_OPERATOR_CARRIES },
	{ "clone", .flags = PLUMB_OPERATOR_CARRIES },
	{ "to", PLUMB_WORK_COPY },

	{ "index", .backward =
	                   "Its backward pass sorts the indices and adds gradients row by row, so "
	                   "rows that were read often are added in turn. To take whole rows by an "
	                   "index tensor, use torch.index_select(x, 0, i) or "
	                   "torch.nn.functional.embedding(i, x). With "
	                   "torch.use_deterministic_algorithms(True) prefer embedding." },
	{ "index_select",
	  .backward = "Under torch.use_deterministic_algorithms(True) its backward pass sorts "
	              "the indices and adds row by row. Use torch.nn.functional.embedding, or "
	              "allow the atomic version for this step." },
	{ "embedding", .flags = PLUMB_OPERATOR_TABLE_FIRST,
	  .backward = "Its backward pass fills a gradient as large as the table, and adds "
	              "repeated rows in turn. If a step uses few rows, sparse=True and an "
	              "optimizer for sparse gradients avoid the first. If one index repeats "
	              "(padding), padding_idx avoids the second." },
	{ "embedding*", .flags = PLUMB_OPERATOR_TABLE_FIRST },
	{ "gather",
	  .backward = "Its backward pass adds with atomics: indices that repeat wait for each "
	              "other. If each index occurs once, take_along_dim on a smaller tensor or "
	              "a mask and a sum can be cheaper." },
	{ "select",
	  .backward = "Its backward pass fills a gradient as large as the whole input for each "
	              "call. Take all parts at once with unbind or split instead of selecting "
	              "in a loop." },
	{ "slice",
	  .backward = "Its backward pass fills a gradient as large as the whole input for each "
	              "call. Take all parts at once with split or chunk instead of slicing in a "
	              "loop." },
	{ "grid_sampler_2d",
	  .backward = "Its backward pass adds with atomics: neighbouring points that fall into "
	              "one pixel wait for each other." },

	{ "add", PLUMB_WORK_LIGHT },
	{ "add_", PLUMB_WORK_LIGHT },
	{ "sub", PLUMB_WORK_LIGHT },
	{ "sub_", PLUMB_WORK_LIGHT },
	{ "mul", PLUMB_WORK_LIGHT },
	{ "mul_", PLUMB_WORK_LIGHT },
	{ "div", PLUMB_WORK_LIGHT },
	{ "div_", PLUMB_WORK_LIGHT },
	{ "relu", PLUMB_WORK_LIGHT },
	{ "relu_", PLUMB_WORK_LIGHT },
	{ "gelu", PLUMB_WORK_LIGHT },
	{ "silu", PLUMB_WORK_LIGHT },
	{ "tanh", PLUMB_WORK_LIGHT },
	{ "sigmoid", PLUMB_WORK_LIGHT },
	{ "exp", PLUMB_WORK_LIGHT },
	{ "log", PLUMB_WORK_LIGHT },
	{ "pow", PLUMB_WORK_LIGHT },
	{ "sqrt", PLUMB_WORK_LIGHT },
	{ "neg", PLUMB_WORK_LIGHT },
	{ "sum", PLUMB_WORK_LIGHT },
	{ "mean", PLUMB_WORK_LIGHT },
	{ "fill_", PLUMB_WORK_LIGHT },
	{ "zero_", PLUMB_WORK_LIGHT },
	{ "where", PLUMB_WORK_LIGHT },
	{ "clamp", PLUMB_WORK_LIGHT },
	{ "clamp_min", PLUMB_WORK_LIGHT },
	{ "dropout", PLUMB_WORK_LIGHT },
	{ "native_dropout", PLUMB_WORK_LIGHT },
	{ "threshold_backward", PLUMB_WORK_LIGHT },
	{ "gelu_backward", PLUMB_WORK_LIGHT },
	{ "addcmul_", PLUMB_WORK_LIGHT },
	{ "addcdiv_", PLUMB_WORK_LIGHT },
	{ "lerp_", PLUMB_WORK_LIGHT },
	{ "abs", PLUMB_WORK_LIGHT },
	{ 0 },
};

static const struct plumb_framework_range ranges[] = {
	{ "Optimizer.step#", PLUMB_PURPOSE_OPTIMIZER_STEP },
	{ "Optimizer.", PLUMB_PURPOSE_OPTIMIZER },
	{ "enumerate(DataLoader)", PLUMB_PURPOSE_DATA },
	{ 0 },
};

static const struct plumb_framework_function phases[] = {
	{ "/torch/utils/data/", NULL, PLUMB_PURPOSE_DATA },
	{ "/torch/optim/", NULL, PLUMB_PURPOSE_OPTIMIZER },
	{ "/torch/nn/utils/clip_grad.py", NULL, PLUMB_PURPOSE_OPTIMIZER },
	{ "/amp/grad_scaler.py", "scale", PLUMB_PURPOSE_OTHER }, /* of the loss, not of gradients */
	{ "/amp/grad_scaler.py", NULL, PLUMB_PURPOSE_OPTIMIZER },
	{ "/torch/_tensor.py", "backward", PLUMB_PURPOSE_BACKWARD },
	{ "/torch/autograd/__init__.py", "backward", PLUMB_PURPOSE_BACKWARD },
	{ "/torch/autograd/__init__.py", "grad", PLUMB_PURPOSE_BACKWARD },
	{ "/torch/nn/modules/loss.py", NULL, PLUMB_PURPOSE_LOSS },
	{ "/torch/nn/modules/module.py", "*call_impl*", PLUMB_PURPOSE_MODULE },
	{ "/torch/nn/modules/module.py", "_apply", PLUMB_PURPOSE_PARAMETERS },
	{ "/torch/nn/modules/module.py", NULL, PLUMB_PURPOSE_OTHER },
	{ "/torch/nn/functional.py", NULL, PLUMB_PURPOSE_FUNCTIONS },
	{ 0 },
};

/* PyTorch's profiler cuts what Python searches for modules off the path: nothing stands before the
 * package. */
static const struct plumb_framework_function places[] = {
	{ "torch/utils/data/_utils/worker.py", NULL, PLUMB_PURPOSE_WORKER },
	{ "torch/utils/data/dataloader.py", NULL, PLUMB_PURPOSE_LOADER },
	{ "torch/utils/checkpoint.py", NULL, PLUMB_PURPOSE_AGAIN },
	{ "torch/nn/modules/module.py", "*_apply", PLUMB_PURPOSE_PARAMETERS },
	{ 0 },
};

static const struct plumb_framework_part parts[] = {
	{ "c10d::", PLUMB_WORK_COMMUNICATION },
	{ "c10d_functional::", PLUMB_WORK_COMMUNICATION },
	{ "record_param_comms", PLUMB_WORK_COMMUNICATION },
	{ "compiledfunction", PLUMB_WORK_FUSED },
	{ 0 },
};

const struct plumb_framework_names plumb_framework_pytorch = {
	.name = "PyTorch",
	.version_key = "torch.version",
	.format = "kineto",
	.operators = "aten::",
	.operator_rows = operators,
	.steps = "ProfilerStep",
	.ranges = ranges,
	.phases = phases,
	.places = places,
	.losses = "torch.nn.modules.loss.",
	.packages = "torch torchvision torchaudio lightning pytorch_lightning",
	.node = "autograd::engine::evaluate_function: ",
	.engine = { "autograd::engine::", "torch::autograd::" },
	.engine_part = "autograd::",
	/* copy_'s: direct_, float16_, bfloat16_copy_kernel_cuda. Some have it as the functor's
	 * name among the template arguments. */
	.copy_kernel = "copy_kernel",
	.parts = parts,
	.generated = "triton_*", /* Inductor's */
	.fused = "_fused_",
	.advice = {
		[PLUMB_WORK_COMMUNICATION] = {
			.gpu = "GPUs exchange data here. Let it run while they compute, and send "
		       "less or less often.",
		},
		[PLUMB_WORK_ATTENTION] = {
			.gpu = "Use torch.nn.functional.scaled_dot_product_attention with bf16 or "
		       "fp16 inputs, which can choose a flash kernel. Shorter or packed sequences "
		       "cost less.",
			.host = "Use torch.nn.functional.scaled_dot_product_attention. Shorter or "
		        "packed sequences cost less.",
		},
		[PLUMB_WORK_CONVOLUTION] = {
			.gpu = "Use channels_last memory format and a lower precision "
		       "(torch.autocast with bf16 or fp16, or TF32). If input sizes do not "
		       "change, set torch.backends.cudnn.benchmark = True. Channel counts that "
		       "are multiples of 8 suit tensor cores.",
			.host = "Use channels_last memory format, bf16 where the processor "
		        "supports it, and as many threads as there are cores "
		        "(torch.set_num_threads). A smaller input or fewer channels cost less.",
		},
		[PLUMB_WORK_PRODUCT] = {
			.gpu = "Use a lower precision (torch.autocast with bf16 or fp16, or TF32 "
		       "by torch.set_float32_matmul_precision(\"high\")). Sizes that are "
		       "multiples of 8 suit tensor cores; one large product is faster than many "
		       "small ones.",
			.host = "One large product is faster than many small ones. Use bf16 where "
		        "the processor supports it, and as many threads as there are cores "
		        "(torch.set_num_threads).",
		},
		[PLUMB_WORK_RECURRENT] = {
			.gpu = "Give the whole sequence to one call, so that cuDNN's fused "
		       "version is used, and use bf16 or fp16. A larger batch fills the GPU "
		       "better.",
		},
		[PLUMB_WORK_FUSED] = {
			.gpu = "A compiler generated this already. Call it less often, use a lower "
		       "precision, or try another mode (torch.compile(mode=\"max-autotune\")).",
		},
		[PLUMB_WORK_COPY] = {
			.gpu = "This moves bytes and computes nothing. Keep tensors in one dtype "
		       "and layout from one operator to the next, and write results where they "
		       "are needed instead of joining or copying them.",
			.host = "This moves bytes and computes nothing. Keep tensors in one dtype "
		        "and layout, and write results where they are needed instead of joining "
		        "or copying them.",
		},
		[PLUMB_WORK_INDEXING] = {
			.gpu = "This reads or writes scattered rows, so memory is the limit. "
		       "Access fewer or neighbouring rows, a narrower dtype, and whole rows at a "
		       "time.",
			.host = "This reads or writes scattered rows, so memory is the limit. "
		        "Access fewer or neighbouring rows, and whole rows at a time.",
		},
		[PLUMB_WORK_SORTING] = {
			.gpu = "Sort fewer elements, or less often; topk instead of a whole sort "
		       "is enough in many places.",
			.host = "Sort fewer elements, or less often; topk instead of a whole sort "
		        "is enough in many places.",
		},
		[PLUMB_WORK_LIGHT] = {
			.gpu = "This does little for each byte that it reads, so memory is the "
		       "limit. Let torch.compile fuse it with its neighbours, use a fused "
		       "operator, or a narrower dtype.",
			.host = "This does little for each byte that it reads, so memory is the "
		        "limit. Call it less often, with fewer and larger inputs, or let "
		        "torch.compile fuse it with its neighbours.",
		},
		[PLUMB_WORK_OTHER] = {
			.gpu = "Call it less often or with smaller inputs, use a lower precision, "
		       "or look for a faster operator with the same result.",
			.host = "Call it less often, or with smaller or fewer inputs, or look for "
		        "a faster operator with the same result.",
		},
	},
	.communication = {
		.reduce = "DistributedDataParallel sends gradients in buckets during the backward "
			  "pass: the last bucket is not hidden, so try other sizes "
			  "(bucket_cap_mb) and gradient_as_bucket_view=True.",
		.gather = "FSDP can fetch the next layer's parameters while this one computes: "
			  "wrap each layer on its own, and use backward_prefetch=BACKWARD_PRE and "
			  "forward_prefetch=True (FSDP2: set_modules_to_forward_prefetch).",
		.small = "Give DistributedDataParallel larger buckets (bucket_cap_mb), or reduce "
			 "several tensors in one call.",
		.bytes = "Fewer bytes: gradients in bf16 (bf16_compress_hook, or MixedPrecision of "
			 "FSDP), and gradient accumulation with no_sync().",
	},
	.short_kernels = "Each kernel reads and writes memory and has to be launched. Let "
			 "torch.compile fuse this part, or use a fused operator (a loss function "
			 "instead of its formula, an optimizer with fused=True). If kernels "
			 "cannot be fused, a CUDA graph or a larger batch makes launching cheaper.",
	.slow_host = "The GPU waits for this code to give it work. Give it more at a time (a "
		     "larger batch, fused operators, torch.compile, a CUDA graph), or move what "
		     "does not need the GPU out of the loop or to worker processes.",
	.loader = "DataLoader",
	.workers = "More workers than processors have to take turns, and they slow down the "
		   "training process too. Set num_workers to at most the number of processors "
		   "minus one for each training process, and give each worker one thread.",
	.loading = "Load in worker processes: DataLoader(num_workers=…) up to the number of "
		   "processors, pin_memory=True and persistent_workers=True. Make each sample "
		   "cheaper, or prepare the data once.",
};
