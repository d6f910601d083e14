/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/diff/names.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "model/framework/framework.h"

const struct plumb_operator_family plumb_operator_families[] = {
	/* Backward ones first: their names begin with those of the forward ones. */
	{ "convolution, backward",
	  "convolution_backward convolution_backward_overrideable cudnn_convolution_backward* "
	  "miopen_convolution_backward* miopen_depthwise_convolution_backward* "
	  "mkldnn_convolution_backward* thnn_conv*_backward slow_conv*_backward "
	  "convolutionbackward convolution_double_backward" },
	{ "attention, backward",
	  "scaled_dot_product_*_backward flash_attention_backward efficient_attention_backward "
	  "cudnn_attention_backward scaleddotproduct*backward flash_attn*bwd "
	  "flash_attn*backward" },
	{ "batch norm, backward",
	  "native_batch_norm_backward cudnn_batch_norm_backward miopen_batch_norm_backward "
	  "batch_norm_backward batch_norm_backward_reduce batch_norm_backward_elemt "
	  "batchnormbackward nativebatchnormbackward" },
	{ "layer norm, backward",
	  "native_layer_norm_backward layer_norm_backward nativelayernormbackward "
	  "fused_rms_norm_backward rms_norm_backward" },
	{ "softmax, backward",
	  "softmax_backward_data log_softmax_backward_data softmaxbackward logsoftmaxbackward" },
	{ "dropout, backward", "native_dropout_backward masked_scale nativedropoutbackward" },
	{ "convolution",
	  "convolution convolution_overrideable conv1d conv2d conv3d conv_transpose* "
	  "cudnn_convolution* miopen_convolution* miopen_depthwise_convolution mkldnn_convolution "
	  "mkldnn_convolution_pointwise thnn_conv* slow_conv* conv_depthwise* "
	  "conv_general_dilated cudnn-conv* miopen-conv* custom-call-cudnn* conv" },
	{ "matmul",
	  "mm addmm bmm baddbmm addbmm matmul linear addmv mv dot vdot inner scaled_mm int_mm "
	  "addmm_activation mkldnn_linear mkl_linear dot_general cublas-gemm* cublas-lt-matmul* "
	  "gemm_fusion* gemm* hipblas* hipblaslt* custom-call-gemm* triton_gemm* cutlass_gemm*" },
	{ "attention", "scaled_dot_product_attention scaled_dot_product_* flash_attention_forward "
	               "efficient_attention_forward cudnn_attention_forward flash_attn* "
	               "native_multi_head_attention cudnn-fmha* fmha* dot_product_attention "
	               "memory_efficient_attention*" },
	{ "batch norm",
	  "batch_norm native_batch_norm native_batch_norm_legit* cudnn_batch_norm "
	  "miopen_batch_norm batch_norm_impl_index batch_norm_with_update batch_norm_stats "
	  "batch_norm_elemt batch_norm_gather_stats*" },
	{ "layer norm", "layer_norm native_layer_norm fused_layer_norm* rms_norm fused_rms_norm "
	                "layer_norm_kernel*" },
	{ "group norm", "group_norm native_group_norm instance_norm" },
	{ "softmax", "softmax log_softmax safe_softmax" },
	{ "dropout", "dropout native_dropout fused_dropout feature_dropout" },
	{ "embedding", "embedding embedding_bag gather take index_select index" },
	{ "relu", "relu clamp_min threshold relu6 hardtanh" },
	{ "gelu", "gelu" },
	{ "silu", "silu swish" },
	{ "sigmoid", "sigmoid logistic" },
	{ "pooling",
	  "max_pool* avg_pool* adaptive_avg_pool* adaptive_max_pool* cudnn-pool* reduce_window*" },
	{ "cross entropy",
	  "cross_entropy cross_entropy_loss nll_loss nll_loss_forward nll_loss_nd" },
	{ "optimizer", "fused_adam fused_adamw fused_sgd fused_adagrad foreach_* adam adamw sgd" },
	{ "copy", "copy to to_copy clone contiguous convert_element_type copy-start device_put "
	          "wrapped_convert" },
	{ "fill", "fill zero zeros zeros_like ones ones_like full full_like broadcast_in_dim" },
	{ "concatenation", "cat concat concatenate stack" },
	{ "transposition", "transpose permute t wrapped_transpose*" },
	{ "add", "add sub rsub subtract" },
	{ "multiply", "mul multiply div divide true_divide" },
	{ "power", "pow square sqrt rsqrt integer_pow" },
	{ "sum", "sum reduce_sum nansum" },
	{ "mean", "mean reduce_mean" },
	{ "sort", "sort argsort topk top_k" },
	{ "all-reduce",
	  "nccl:all_reduce rccl:all_reduce ncclallreduce rcclallreduce allreduce all_reduce "
	  "all-reduce* psum gloo:all_reduce" },
	{ "all-gather",
	  "nccl:*all_gather* rccl:*all_gather* ncclallgather rcclallgather allgather* all_gather* "
	  "all-gather*" },
	{ "reduce-scatter",
	  "nccl:*reduce_scatter* rccl:*reduce_scatter* ncclreducescatter rcclreducescatter "
	  "reduce_scatter* reduce-scatter* psum_scatter" },
	{ "all-to-all",
	  "nccl:all_to_all* rccl:all_to_all* ncclalltoall rcclalltoall alltoall* all_to_all* "
	  "all-to-all*" },
	{ "broadcast", "nccl:broadcast rccl:broadcast ncclbroadcast rcclbroadcast" },
	{ "send and receive",
	  "nccl:send nccl:recv rccl:send rccl:recv ncclsend ncclrecv rcclsend rcclrecv "
	  "collective-permute* ppermute" },
	{ NULL, NULL },
};

/* ---- names ---- */

static const char *
skip_front(const char *name)
{
	const char *at;

	name = plumb_framework_node(name);
	if (strncmp(name, "nccl:", 5) && strncmp(name, "rccl:", 5) && strncmp(name, "gloo:", 5))
		for (; (at = strstr(name, "::"));)
			name = at + 2;
	if (strchr(name, '(') || plumb_framework_is_path(name)) {
		at = strrchr(name, '/');
		name = at && at[1] ? at + 1 : name;
	}
	while (*name == '_')
		name++;
	return name;
}

/* "dot.12.0" → "dot" */
static size_t
without_number(const char *text, size_t length, const char *marks)
{
	for (;;) {
		size_t end = length;

		while (end && isdigit((unsigned char)text[end - 1]))
			end--;
		if (end == length || end < 2 || !strchr(marks, text[end - 1]))
			return length;
		length = end - 1;
	}
}

char *
plumb_operator_base(const char *name, char *text, size_t size)
{
	size_t length = 0;

	for (name = skip_front(name); *name && *name != '[' && *name != '(' && length + 1 < size;)
		text[length++] = (char)tolower((unsigned char)*name++);
	length = without_number(text, length, ".");
	/* AddmmBackward0: the number came with a later version. */
	if (length > 9 && isdigit((unsigned char)text[length - 1]) &&
	    !memcmp(text + length - 9, "backward", 8))
		length--;
	while (length && (text[length - 1] == '_' || text[length - 1] == ' '))
		length--;
	text[length] = '\0';
	return text;
}

char *
plumb_kernel_base(const char *name, char *text, size_t size)
{
	size_t length = strlen(name), end;

	if (length >= size || !plumb_framework_is_generated(name))
		return NULL;
	end = without_number(name, length, "_.");
	if (end == length)
		return NULL;
	memcpy(text, name, end);
	text[end] = '\0';
	return text;
}

const char *
plumb_operator_family(const char *name)
{
	char base[256];

	plumb_operator_base(name, base, sizeof base);
	for (const struct plumb_operator_family *f = plumb_operator_families; f->family; f++)
		for (const char *at = f->names; *at; at += strspn(at, " ")) {
			size_t bytes = strcspn(at, " ");

			if (plumb_name_fits(base, at, bytes))
				return f->family;
			at += bytes;
		}
	return NULL;
}
