# SPDX-License-Identifier: Apache-2.0
"""Ten models of ten kinds, for bench/overhead.py: one training step each, on synthetic data.

    conformer    convolution-augmented attention over speech features, CTC loss
    dlrm         dense and 26 sparse features (embedding bags with sparse gradients), clicks
    unet         convolutions down and up with skips, a label for each pixel
    gnn          message passing by index and scatter over one graph, a label for each node
    resnet       torchvision's ResNet-50, channels last
    vit          torchvision's ViT-B/16
    transformer  torch.nn.Transformer in its base size, sequence to sequence
    llamatrain   transformers' Llama, 6 layers of width 1024
    gemma        transformers' Gemma, 6 layers of width 1024
    nanogpt      the GPT of 124 M parameters of workloads.py, context 1024

`make(name, tiny)` returns a function that runs one step: the batch is copied from pinned memory to the
GPU, forward runs under bfloat16 autocast, then backward and the optimizer. Weights and data are random
with a fixed seed; nothing is downloaded. Batches are of a size that one trains with. With `tiny`, and
only then, a model may run without a GPU. A library that is missing raises ModuleNotFoundError.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def training(model, loss_of, optimizer, batch):
    """One step: `loss_of(model, *batch)`, where `batch` is a list of tensors on the CPU."""
    gpu = torch.cuda.is_available()
    device = "cuda" if gpu else "cpu"
    if gpu:
        batch = [tensor.pin_memory() for tensor in batch]

    def step():
        inputs = [tensor.to(device, non_blocking=True) for tensor in batch]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16, enabled=gpu):
            loss = loss_of(model, *inputs)
        loss.backward()
        optimizer.step()

    return step


def built(kind, *sizes, **more):
    """A model made where it trains: its weights never take the host's memory."""
    if not torch.cuda.is_available():
        return kind(*sizes, **more)
    with torch.device("cuda"):
        return kind(*sizes, **more).cuda()


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4)


# ---- conformer ----

class ConvolutionModule(nn.Module):
    def __init__(self, width, kernel):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.into = nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.batch_norm = nn.BatchNorm1d(width)
        self.out = nn.Conv1d(width, width, 1)

    def forward(self, x):
        x = F.glu(self.into(self.norm(x).transpose(1, 2)), dim=1)
        return self.out(F.silu(self.batch_norm(self.depthwise(x)))).transpose(1, 2)


def feed_forward(width):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(),
                         nn.Dropout(0.1), nn.Linear(4 * width, width), nn.Dropout(0.1))


class ConformerLayer(nn.Module):
    def __init__(self, width, heads, kernel):
        super().__init__()
        self.first, self.second = feed_forward(width), feed_forward(width)
        self.before_attention = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, dropout=0.1, batch_first=True)
        self.convolution = ConvolutionModule(width, kernel)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x + 0.5 * self.first(x)
        y = self.before_attention(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.convolution(x)
        return self.norm(x + 0.5 * self.second(x))


class Conformer(nn.Module):
    def __init__(self, features, width, heads, layers, kernel, symbols):
        super().__init__()
        self.subsample = nn.Sequential(nn.Conv2d(1, width // 4, 3, stride=2), nn.ReLU(),
                                       nn.Conv2d(width // 4, width // 4, 3, stride=2), nn.ReLU())
        left = ((features - 1) // 2 - 1) // 2
        self.into = nn.Linear(width // 4 * left, width)
        self.layers = nn.ModuleList(ConformerLayer(width, heads, kernel) for _ in range(layers))
        self.head = nn.Linear(width, symbols)

    def forward(self, x):
        x = self.subsample(x.unsqueeze(1))
        x = self.into(x.transpose(1, 2).flatten(2))
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def conformer(tiny):
    size = (16, 2, 1, 3, 10) if tiny else (512, 8, 6, 31, 1000)
    batch, frames, spoken = (2, 40, 4) if tiny else (32, 1200, 60)
    width, heads, layers, kernel, symbols = size
    model = built(Conformer, 80, width, heads, layers, kernel, symbols)

    def loss(model, sound, text):
        scores = model(sound).float().log_softmax(-1).transpose(0, 1)
        lengths = (scores.shape[0],) * batch
        return F.ctc_loss(scores, text, lengths, (spoken,) * batch, zero_infinity=True)

    return training(model, loss, adamw(model), [torch.randn(batch, frames, 80),
                                                torch.randint(1, symbols, (batch, spoken))])


# ---- DLRM ----

def mlp(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class DLRM(nn.Module):
    def __init__(self, tables, rows, width, hidden):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum", sparse=True)
                                  for _ in range(tables))
        self.bottom = mlp(13, hidden, hidden // 2, width)
        count = tables + 1
        self.top = mlp(width + count * (count - 1) // 2, 2 * hidden, hidden, 1)
        self.register_buffer("pairs", torch.tril_indices(count, count, -1))

    def forward(self, dense, sparse):
        dense = self.bottom(dense)
        vectors = [bag(ids).to(dense.dtype) for bag, ids in zip(self.bags, sparse.unbind(0))]
        every = torch.stack([dense] + vectors, 1)
        products = torch.bmm(every, every.transpose(1, 2))
        return self.top(torch.cat([dense, products[:, self.pairs[0], self.pairs[1]]], 1))


def dlrm(tiny):
    tables, rows, width, hidden, batch, bag = (3, 50, 8, 16, 4, 2) if tiny else (26, 200000, 64, 512, 8192, 4)
    model = built(DLRM, tables, rows, width, hidden)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def loss(model, dense, sparse, clicks):
        return F.binary_cross_entropy_with_logits(model(dense, sparse).squeeze(1).float(), clicks)

    return training(model, loss, optimizer, [
        torch.randn(batch, 13), torch.randint(0, rows, (tables, batch, bag)),
        torch.randint(0, 2, (batch,)).float()])


# ---- U-Net ----

def twice(before, after):
    layers = []
    for width in (before, after):
        layers += [nn.Conv2d(width, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width, depth, classes):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(map(twice, [3] + widths[:-1], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in widths[-2::-1])
        self.merge = nn.ModuleList(twice(2 * w, w) for w in widths[-2::-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        skips = []
        for level, down in enumerate(self.down):
            x = down(F.max_pool2d(x, 2) if level else x)
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


def unet(tiny):
    width, depth, batch, side = (4, 2, 1, 16) if tiny else (64, 4, 4, 256)
    model = built(UNet, width, depth, 2)

    def loss(model, images, labels):
        return F.cross_entropy(model(images).float(), labels)

    return training(model, loss, adamw(model), [torch.randn(batch, 3, side, side),
                                                torch.randint(0, 2, (batch, side, side))])


# ---- GNN ----

class Convolution(nn.Module):
    """The mean of a node's neighbours beside the node itself (GraphSAGE)."""

    def __init__(self, before, after):
        super().__init__()
        self.own, self.others = nn.Linear(before, after), nn.Linear(before, after, bias=False)

    def forward(self, x, source, target, scale):
        messages = self.others(x).index_select(0, source)
        mean = torch.zeros(x.shape[0], messages.shape[1], dtype=messages.dtype, device=x.device)
        mean = mean.scatter_add(0, target.unsqueeze(1).expand_as(messages), messages)
        return self.own(x) + mean * scale.to(mean.dtype)


class GNN(nn.Module):
    def __init__(self, features, width, layers, classes):
        super().__init__()
        widths = [features] + [width] * (layers - 1) + [classes]
        self.layers = nn.ModuleList(map(Convolution, widths, widths[1:]))

    def forward(self, x, source, target):
        ones = torch.ones_like(target, dtype=torch.float)
        degree = torch.zeros(x.shape[0], device=x.device).index_add(0, target, ones)
        scale = 1 / degree.clamp(min=1).unsqueeze(1)
        for layer in self.layers[:-1]:
            x = F.dropout(F.relu(layer(x, source, target, scale)), 0.5, self.training)
        return self.layers[-1](x, source, target, scale)


def gnn(tiny):
    nodes, edges, width, layers = (20, 60, 8, 2) if tiny else (100000, 600000, 256, 3)
    model = built(GNN, 16 if tiny else 128, width, layers, 40)

    def loss(model, x, source, target, labels):
        return F.cross_entropy(model(x, source, target).float(), labels)

    return training(model, loss, adamw(model), [
        torch.randn(nodes, 16 if tiny else 128), torch.randint(0, nodes, (edges,)),
        torch.randint(0, nodes, (edges,)), torch.randint(0, 40, (nodes,))])


# ---- images, by torchvision ----

def classify(model, optimizer, images):
    def loss(model, images, labels):
        return F.cross_entropy(model(images).float(), labels)

    return training(model, loss, optimizer, [images, torch.randint(0, 10, (images.shape[0],))])


def resnet(tiny):
    from torchvision.models import resnet18, resnet50
    model = built(resnet18 if tiny else resnet50, num_classes=10 if tiny else 1000)
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images = torch.randn(2, 3, 32, 32) if tiny else torch.randn(64, 3, 224, 224)
    return classify(model, optimizer, images.contiguous(memory_format=torch.channels_last))


def vit(tiny):
    from torchvision.models import VisionTransformer, vit_b_16
    model = built(VisionTransformer, 32, 16, 1, 2, 16, 32) if tiny else built(vit_b_16)
    return classify(model, adamw(model), torch.randn(2, 3, 32, 32) if tiny else torch.randn(64, 3, 224, 224))


# ---- text ----

class Translator(nn.Module):
    def __init__(self, symbols, width, heads, layers, length):
        super().__init__()
        self.token, self.position = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.transformer = nn.Transformer(width, heads, layers, layers, 4 * width, batch_first=True)
        self.head = nn.Linear(width, symbols)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        self.register_buffer("mask", mask)

    def embed(self, tokens):
        return self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))

    def forward(self, source, target):
        return self.head(self.transformer(self.embed(source), self.embed(target), tgt_mask=self.mask))


def transformer(tiny):
    symbols, width, heads, layers, length, batch = (50, 16, 2, 1, 6, 2) if tiny else (
        32000, 512, 8, 6, 128, 64)
    model = built(Translator, symbols, width, heads, layers, length)

    def loss(model, source, target):
        return F.cross_entropy(model(source, target).flatten(0, 1).float(), target.flatten())

    return training(model, loss, adamw(model), [torch.randint(0, symbols, (batch, length)),
                                                torch.randint(0, symbols, (batch, length))])


def causal(kind, config, tiny):
    """Training of one of transformers' causal language models."""
    model = built(kind, config).train()

    def loss(model, tokens):
        return model(input_ids=tokens, labels=tokens, use_cache=False).loss

    return training(model, loss, adamw(model), [
        torch.randint(0, config.vocab_size, (2, 8) if tiny else (8, 512))])


def llamatrain(tiny):
    from transformers import LlamaConfig, LlamaForCausalLM
    symbols, width = (50, 16) if tiny else (32000, 1024)
    return causal(LlamaForCausalLM, LlamaConfig(
        hidden_size=width, intermediate_size=11 * width // 4, num_hidden_layers=1 if tiny else 6,
        num_attention_heads=2 if tiny else 16, num_key_value_heads=1 if tiny else 4, vocab_size=symbols),
        tiny)


def gemma(tiny):
    from transformers import GemmaConfig, GemmaForCausalLM
    symbols, width = (50, 16) if tiny else (32000, 1024)
    return causal(GemmaForCausalLM, GemmaConfig(
        hidden_size=width, intermediate_size=4 * width, num_hidden_layers=1 if tiny else 6,
        num_attention_heads=2 if tiny else 8, num_key_value_heads=1, head_dim=8 if tiny else 128,
        vocab_size=symbols), tiny)


def nanogpt(tiny):
    from workloads import GPT
    symbols, width, heads, layers, length, batch = (50, 16, 2, 1, 8, 2) if tiny else (
        50304, 768, 12, 12, 1024, 12)
    model = built(GPT, symbols, width, heads, layers, length)
    tokens = torch.randint(0, symbols, (batch, length + 1))
    return training(model, lambda model, tokens, targets: model(tokens, targets), adamw(model),
                    [tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()])


MODELS = {function.__name__: function for function in (
    conformer, dlrm, unet, gnn, resnet, vit, transformer, llamatrain, gemma, nanogpt)}


def make(name, tiny):
    if not tiny and not torch.cuda.is_available():
        raise RuntimeError(f"{name} in its full size wants a GPU; --tiny is for machines without")
    return MODELS[name](tiny)
