# SPDX-License-Identifier: Apache-2.0
"""The models of bench/zoo/run.py, with random weights: torchvision's by their builders, transformers' from configs. Nothing is
downloaded. Inputs are images, or sequences of tokens, of the size that the model's authors use.

    build("resnet50", tiny=False)   -> the model, and a function that makes a batch of N inputs on the model's device

With `tiny`, inputs and text models are small, for machines without a GPU.
"""
import functools
import inspect

SIDE, TOKENS, SYMBOLS = 224, 128, 30522

# name: (task, side of an image if it is not SIDE)
IMAGES = {
    "alexnet": ("classification", None), "vgg11": ("classification", None), "vgg16": ("classification", None),
    "vgg19": ("classification", None), "resnet18": ("classification", None), "resnet34": ("classification", None),
    "resnet50": ("classification", None), "resnet101": ("classification", None), "resnet152": ("classification", None),
    "resnext50_32x4d": ("classification", None), "wide_resnet50_2": ("classification", None),
    "densenet121": ("classification", None), "densenet169": ("classification", None),
    "squeezenet1_0": ("classification", None), "squeezenet1_1": ("classification", None),
    "mobilenet_v2": ("classification", None), "mobilenet_v3_small": ("classification", None),
    "mobilenet_v3_large": ("classification", None), "mnasnet0_5": ("classification", None),
    "mnasnet1_0": ("classification", None), "shufflenet_v2_x1_0": ("classification", None),
    "googlenet": ("classification", None), "inception_v3": ("classification", 299),
    "efficientnet_b0": ("classification", None), "efficientnet_b4": ("classification", 380),
    "regnet_y_400mf": ("classification", None), "regnet_y_8gf": ("classification", None),
    "convnext_tiny": ("classification", None), "vit_b_16": ("classification", None), "swin_t": ("classification", None),
    "fcn_resnet50": ("segmentation", 520), "deeplabv3_resnet50": ("segmentation", 520),
    "lraspp_mobilenet_v3_large": ("segmentation", 520),
}

# name: (configuration, model, what the configuration says when it is tiny)
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
TEXTS = {
    "bert_base": ("BertConfig", "BertModel", TINY),
    "distilbert": ("DistilBertConfig", "DistilBertModel", {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}),
    "albert_base": ("AlbertConfig", "AlbertModel", {**TINY, "embedding_size": 32}),
    "electra_small": ("ElectraConfig", "ElectraModel", TINY),
    "gpt2": ("GPT2Config", "GPT2Model", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
    "t5_encoder": ("T5Config", "T5EncoderModel", {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}),
    "llama_6": ("LlamaConfig", "LlamaModel", {**TINY, "num_key_value_heads": 2}),
}
MORE = {
    "albert_base": {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
    "electra_small": {"embedding_size": 128},
    "llama_6": {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 6, "num_attention_heads": 16,
                "num_key_value_heads": 4, "vocab_size": SYMBOLS},
}

NAMES = [*IMAGES, *TEXTS]


def task_of(name):
    return IMAGES[name][0] if name in IMAGES else "text"


def _image_model(name, side):
    from torchvision import models
    builder = getattr(models, name, None) or getattr(models.segmentation, name)
    options = {}
    parameters = inspect.signature(getattr(builder, "__wrapped__", builder)).parameters
    for option, value in (("weights", None), ("weights_backbone", None)):
        if option in parameters:
            options[option] = value
    if name in ("googlenet", "inception_v3"):
        options.update(init_weights=False, aux_logits=False)
    if name.startswith("vit_"):
        options["image_size"] = side
    return builder(**options)


def build(name, tiny, device):
    import torch
    if name in IMAGES:
        side = IMAGES[name][1] or SIDE
        if tiny:
            side = 96 if name == "inception_v3" else 64
        with torch.device(device):
            model = _image_model(name, side).eval()
        return model, lambda count: (torch.randn(count, 3, side, side, device=device),)
    import transformers
    config_name, model_name, small = TEXTS[name]
    config = getattr(transformers, config_name)(**{**MORE.get(name, {}), **(small if tiny else {})})
    config.use_cache = False
    with torch.device(device):
        model = getattr(transformers, model_name)(config).eval()
    length = 8 if tiny else TOKENS
    tokens = functools.partial(torch.randint, 0, min(config.vocab_size, SYMBOLS))
    return model, lambda count: (tokens((count, length), device=device),)
