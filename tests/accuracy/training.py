# SPDX-License-Identifier: Apache-2.0
"""A seeded program with every kind of work that attribution must get right, for the GPU.

    python3 training.py             just run; prints a hash of all results
    python3 training.py FILE        also profile itself with torch.profiler and write, per operator
                                    name, kernels, their time and their Python lines to FILE as JSON
"""
import hashlib
import json
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
torch.backends.cudnn.benchmark = False
torch.use_deterministic_algorithms(True, warn_only=True)
device = "cuda"


class Tied(nn.Module):
    """An embedding whose weight is also the output layer's."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8000, 256)
        self.mix = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
        self.out = nn.Linear(256, 8000, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(self.mix(self.embed(tokens)))


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(context, x, factor):
        context.factor = factor
        return x * factor

    @staticmethod
    def backward(context, gradient):
        scaled = gradient * context.factor
        return scaled.clone(), None


convolutions = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
).to(device)
tied = Tied().to(device)
wide = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(4)).to(device)


def images():
    x = torch.randn(128, 3, 64, 64).pin_memory().to(device, non_blocking=True)
    y = torch.randint(0, 10, (128,)).to(device)
    F.cross_entropy(convolutions(x), y).backward()


def language():
    tokens = torch.randint(0, 8000, (16, 128), device=device)
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(tied(tokens).flatten(0, 1).float(), tokens.flatten())
    loss.backward()


def recomputed():
    x = torch.randn(2048, 1024, device=device, requires_grad=True)
    for layer in wide:
        x = checkpoint(lambda v, layer=layer: torch.relu(layer(v)), x, use_reentrant=False)
    Scale.apply(x, 2.0).square().mean().backward()


def penalty():
    x = torch.randn(1024, 1024, device=device, requires_grad=True)
    y = torch.tanh(wide[0](x)).sum()
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    gradient.square().sum().backward()


def hooked():
    x = torch.randn(1024, 1024, device=device, requires_grad=True)
    y = wide[1](x)
    y.register_hook(lambda gradient: gradient * 0.5)
    y.sum().backward()


models = [convolutions, tied, wide]
parameters = [p for model in models for p in model.parameters()]
optimizers = [torch.optim.AdamW(convolutions.parameters(), foreach=False),
              torch.optim.SGD([*tied.parameters(), *wide.parameters()], lr=0.01, foreach=True)]


def main():
    losses = 0.0
    for _ in range(10):
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        images()
        language()
        recomputed()
        penalty()
        hooked()
        for optimizer in optimizers:
            optimizer.step()
        losses += float(sum(p.double().abs().sum() for p in parameters).cpu())
    return losses


def results():
    digest = hashlib.sha256()
    for p in parameters:
        digest.update(p.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


OVERHEADS = {"Lazy Function Loading", "Runtime Triggered Module Loading", "Command Buffer Full",
             "Activity Buffer Request", "Instrumentation", "Resource"}


def operators(profile):
    """Kernels and their time by the innermost operator that launched them."""
    found = {}
    for event in profile.events():
        # Runtime calls and overheads are events too, and repeat the kernels of the operator around.
        if event.name.startswith("cu") or event.name in OVERHEADS:
            continue
        for kernel in getattr(event, "kernels", None) or []:
            if kernel.name.startswith(("Memcpy", "Memset")):
                continue
            row = found.setdefault(event.name, {"count": 0, "ns": 0.0})
            row["count"] += 1
            row["ns"] += kernel.duration * 1e3
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        from torch.profiler import ProfilerActivity, profile
        torch.zeros(1, device=device)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as observed:
            main()
            torch.cuda.synchronize()
        with open(sys.argv[1], "w") as output:
            json.dump(operators(observed), output)
    else:
        torch.zeros(1, device=device)
        with torch.profiler.record_function("accuracy"):
            main()
            torch.cuda.synchronize()
    print(results())
