# SPDX-License-Identifier: Apache-2.0
"""Reference workloads for bench/overhead.py and the accuracy tests.

    gptsmall  a 6-layer GPT of width 128, trained with autocast and a for-loop AdamW: launch-bound
    gpt124    a GPT of 124 M parameters, context 1024, batch 16: compute-bound training
    llama     a 1.1 B Llama of random weights that generates 8 tokens: launch-bound inference
    tiny      a two-layer network, for machines without a GPU
    adds      500 small operators, each of which launches a kernel: what one launch costs
    chain     a chain of 100 operators forward and backward: what one autograd node costs

`make(name)` returns a function that runs one iteration.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import kinds


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = self.qkv(x).split(width, 2)
        mixed = F.scaled_dot_product_attention(
            query.view(shape).transpose(1, 2),
            key.view(shape).transpose(1, 2),
            value.view(shape).transpose(1, 2),
            is_causal=True,
        )
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    def __init__(self, vocabulary, width, heads, layers, context):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def gpt(vocabulary, width, heads, layers, context, batch, foreach, captured=False):
    torch.backends.cuda.matmul.allow_tf32 = True
    model = GPT(vocabulary, width, heads, layers, context).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=foreach, capturable=captured)
    tokens = torch.randint(0, vocabulary, (batch, context), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(tokens, tokens)
        loss.backward()
        optimizer.step()

    return kinds.replayed(torch, "cuda", step) if captured else step


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
        num_key_value_heads=4, vocab_size=32000,
    )
    model = LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
    prompt = torch.randint(0, 32000, (1, 64), device="cuda")

    @torch.no_grad()
    def step():
        model.generate(prompt, max_new_tokens=8, min_new_tokens=8, do_sample=False, pad_token_id=0)

    return step


def tiny():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(32, 64), torch.randn(32, 8)

    def step():
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


def adds():
    x = torch.zeros(64, device="cuda" if torch.cuda.is_available() else "cpu")

    @torch.no_grad()
    def step():
        for _ in range(500):
            x.add_(1)

    return step


def chain():
    x = torch.ones(64, device="cuda" if torch.cuda.is_available() else "cpu", requires_grad=True)

    def step():
        y = x
        for _ in range(100):
            y = y * 1.0
        y.sum().backward()
        x.grad = None

    return step


def make(name, tiny_one=False):
    del tiny_one  # these have one size
    torch.manual_seed(0)
    if name == "gptsmall":
        return gpt(512, 128, 4, 6, 64, 8, foreach=False)
    if name == "graph":  # the same step as one CUDA graph
        return gpt(512, 128, 4, 6, 64, 8, foreach=False, captured=True)
    if name == "gpt124":
        return gpt(50304, 768, 12, 12, 1024, 16, foreach=True)
    if name == "llama":
        return llama()
    if name in ("tiny", "adds", "chain"):
        return {"tiny": tiny, "adds": adds, "chain": chain}[name]()
    raise SystemExit(f"no workload {name!r}: gptsmall, graph, gpt124, llama, tiny, adds or chain")
