# SPDX-License-Identifier: Apache-2.0
"""Programs of kinds that cost a profiler more than a plain training loop, for bench/overhead.py --workload kinds.

    compiled   a transformer layer's training step, torch.compile(mode="reduce-overhead")
    jax        a jitted training step of JAX, which becomes one CUDA graph
    autotune   a forward pass under torch.compile(mode="max-autotune-no-cudagraphs")
    dynamic    a training step under torch.compile(dynamic=True); the batch's size changes
    fsdp2      fully_shard over a group of one rank: deep Python for each layer
    dtensor    a tensor-parallel MLP over a mesh of one rank: deep Python for each operator
    eager      small functions that call each other, with small operators in them
    hooks      forward, backward and tensor hooks on every layer
    func       gradients of each sample: torch.func.vmap over grad
    serving    requests in and out of a running batch, one CUDA graph for each token
    asyncio    coroutines that send requests to one that answers them in batches
    threads    four threads that run the same model
    loader     a DataLoader whose two workers decode images
    generators batches made by a chain of generators

`make(name, tiny)` returns a function that runs one step; its attribute `synchronize`, if it has one, waits for the work. Weights
and data are random with a fixed seed. Without a GPU all run on the CPU. A library that is missing raises ModuleNotFoundError.
"""
import os
import random
import sys
import tempfile


def torch_and_device():
    import torch

    torch.manual_seed(0)
    return torch, "cuda" if torch.cuda.is_available() else "cpu"


def encoder(torch, device, layers=1):
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(device) if layers > 1 else layer.to(device)


def mlp(torch, width=256, layers=4):
    parts = []
    for _ in range(layers):
        parts += [torch.nn.Linear(width, width), torch.nn.GELU()]
    return torch.nn.Sequential(*parts)


def compiled():
    torch, device = torch_and_device()
    model, x = encoder(torch, device), torch.randn(8, 64, 256, device=device)
    fast = torch.compile(model, mode="reduce-overhead" if device == "cuda" else "default")

    def step():
        loss = fast(x).square().mean()
        loss.backward()
        model.zero_grad(set_to_none=True)

    return step


def jax():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several of them share the GPU
    import jax
    import jax.numpy as jnp

    def loss_of(layers, x, y):
        for weight, bias in layers[:-1]:
            x = jax.nn.gelu(x @ weight + bias)
        weight, bias = layers[-1]
        return jnp.mean((x @ weight + bias - y) ** 2)

    @jax.jit
    def train(layers, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(layers, x, y)
        return jax.tree.map(lambda a, b: a - 1e-3 * b, layers, gradients), loss

    key = jax.random.key(0)
    x = jax.random.normal(key, (64, 256))
    state = {"layers": [(jax.random.normal(key, (256, 256)) * 0.03, jnp.zeros(256)) for _ in range(12)], "loss": None}

    def step():
        state["layers"], state["loss"] = train(state["layers"], x, x * 2)

    step.synchronize = lambda: state["loss"].block_until_ready()
    return step


def autotune():
    torch, device = torch_and_device()
    model, x = mlp(torch).to(device), torch.randn(64, 256, device=device)
    fast = torch.compile(model, mode="max-autotune-no-cudagraphs")

    @torch.no_grad()
    def step():
        fast(x)

    return step


def dynamic():
    torch, device = torch_and_device()
    model, sizes = mlp(torch).to(device), random.Random(0)
    fast = torch.compile(model, dynamic=True)
    x = torch.randn(256, 256, device=device)

    def step():
        fast(x[:sizes.randrange(16, 256)]).square().mean().backward()
        model.zero_grad(set_to_none=True)

    return step


def one_rank(torch, device):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    store = os.path.join(tempfile.mkdtemp(), "store")
    dist.init_process_group("nccl" if device == "cuda" else "gloo", init_method=f"file://{store}", rank=0, world_size=1)
    return init_device_mesh(device, (1,))


def fsdp2():
    torch, device = torch_and_device()
    from torch.distributed.fsdp import fully_shard

    mesh, model = one_rank(torch, device), encoder(torch, device, 6)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer, x = torch.optim.AdamW(model.parameters(), lr=1e-3), torch.randn(4, 32, 256, device=device)

    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def dtensor():
    torch, device = torch_and_device()
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh, model = one_rank(torch, device), mlp(torch).to(device)
    plan = {str(at): ColwiseParallel() if at % 4 == 0 else RowwiseParallel() for at in range(0, 8, 2)}
    model, x = parallelize_module(model, mesh, plan), torch.randn(64, 256, device=device)

    def step():
        model(x).square().mean().backward()
        model.zero_grad()

    return step


def eager():
    torch, device = torch_and_device()
    x = torch.randn(64, 64, device=device)

    def scale(a, by):
        return a * by

    def shift(a, by):
        return a + by

    def blend(a, b, depth):
        return shift(scale(a, 0.5), scale(b, 0.5)) if not depth else blend(shift(a, 0.1), scale(b, 0.9), depth - 1)

    def normal(a):
        return scale(shift(a, -a.mean()), 0.9)

    @torch.no_grad()
    def step():
        a = x
        for _ in range(8):
            a = normal(blend(a, x, 6))

    return step


def hooks():
    torch, device = torch_and_device()
    model, x = mlp(torch, layers=12).to(device), torch.randn(64, 256, device=device)
    for layer in model:
        layer.register_forward_hook(lambda module, inputs, output: output * 1.0)
        layer.register_forward_pre_hook(lambda module, inputs: None)
        layer.register_full_backward_hook(lambda module, inputs, outputs: None)
    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: gradient * 0.5)

    def step():
        model(x).square().mean().backward()
        model.zero_grad()

    return step


def func():
    torch, device = torch_and_device()
    model = mlp(torch).to(device)
    parameters, x = dict(model.named_parameters()), torch.randn(32, 256, device=device)

    def loss_of(parameters, sample):
        return torch.func.functional_call(model, parameters, (sample[None],)).square().mean()

    each = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0))

    def step():
        each(parameters, x)

    return step


def replayed(torch, device, run):
    """`run` as a CUDA graph; without a GPU as it is."""
    if device == "cpu":
        return run
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay




def serving():
    torch, device = torch_and_device()
    model, slots, chance = encoder(torch, device, 4).eval(), 16, random.Random(0)
    tokens = torch.zeros(slots, 8, 256, device=device)
    logits = torch.zeros(slots, 8, 256, device=device)
    running = {}

    def forward():
        logits.copy_(model(tokens))

    with torch.no_grad():
        replay = replayed(torch, device, forward)

    def schedule():
        for slot in range(slots):
            if slot not in running:
                running[slot] = {"left": chance.randrange(4, 32), "out": []}

    def finish(chosen):
        for slot, token in enumerate(chosen):
            request = running[slot]
            request["out"].append(token)
            request["left"] -= 1
            if not request["left"]:
                del running[slot]

    @torch.no_grad()
    def step():
        schedule()
        replay()
        finish(logits[:, -1].argmax(-1).tolist())

    return step


def asynchronous():
    import asyncio

    torch, device = torch_and_device()
    model, x = encoder(torch, device).eval(), torch.randn(4, 8, 256, device=device)
    loop = asyncio.new_event_loop()

    async def answer(queue):
        while True:
            waiting = [await queue.get()]
            while not queue.empty() and len(waiting) < 4:
                waiting.append(queue.get_nowait())
            with torch.no_grad():
                model(x[:len(waiting)])
            for done in waiting:
                done.set_result(len(waiting))

    async def ask(queue):
        for _ in range(4):
            done = loop.create_future()
            await queue.put(done)
            await done

    async def serve():
        queue = asyncio.Queue()
        server = loop.create_task(answer(queue))
        await asyncio.gather(*(ask(queue) for _ in range(4)))
        server.cancel()

    return lambda: loop.run_until_complete(serve())


def threads():
    from concurrent.futures import ThreadPoolExecutor

    torch, device = torch_and_device()
    model, x, pool = encoder(torch, device, 2).eval(), torch.randn(4, 32, 256, device=device), ThreadPoolExecutor(4)

    @torch.no_grad()
    def infer(_):
        for _ in range(4):
            model(x)

    return lambda: list(pool.map(infer, range(4)))


def loader():
    torch, device = torch_and_device()
    from torchvision.io import decode_jpeg, encode_jpeg

    files = [encode_jpeg(torch.randint(0, 255, (3, 96, 96), dtype=torch.uint8)) for _ in range(16)]

    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, at):
            return decode_jpeg(files[at % 16]).float() / 255

    batches = iter(torch.utils.data.DataLoader(Images(), batch_size=16, num_workers=2))
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, stride=2), torch.nn.ReLU(), torch.nn.Flatten(),
                                torch.nn.LazyLinear(10)).to(device)

    def step():
        model(next(batches).to(device)).square().mean().backward()
        model.zero_grad()

    return step


def generators():
    torch, device = torch_and_device()
    model, x = mlp(torch).to(device), torch.randn(256, 256, device=device)

    def samples():
        at = 0
        while True:
            yield at % 256
            at += 1

    def shuffled(source):
        held = [next(source) for _ in range(64)]
        chance = random.Random(0)
        while True:
            at = chance.randrange(64)
            yield held[at]
            held[at] = next(source)

    def batched(source):
        while True:
            yield x[[next(source) for _ in range(64)]]

    batches = batched(shuffled(samples()))

    def step():
        model(next(batches)).square().mean().backward()
        model.zero_grad()

    return step


KINDS = {"compiled": compiled, "jax": jax, "autotune": autotune, "dynamic": dynamic, "fsdp2": fsdp2, "dtensor": dtensor,
         "eager": eager, "hooks": hooks, "func": func, "serving": serving, "asyncio": asynchronous, "threads": threads,
         "loader": loader, "generators": generators}


def make(name, tiny=False):
    del tiny  # they are small enough for a CPU
    return KINDS[name]()


if __name__ == "__main__":
    run = make(sys.argv[1])
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 20):
        run()
