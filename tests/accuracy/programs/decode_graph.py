# SPDX-License-Identifier: Apache-2.0
"""A decoder as inference servers run it: a prefill, then replays of one CUDA graph. Fault: between two replays the
host sleeps for 4 ms, as a slow scheduler does."""
import sys
import time

import torch

fault, steps = sys.argv[1] == "fault", int(sys.argv[3])
WIDTH, LAYERS = 2048, 16
layer = torch.nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, batch_first=True, norm_first=True, dropout=0)
net = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).cuda().half().eval()


def capture(tokens):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        net(tokens)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = net(tokens)
    return graph, out


def schedule():
    time.sleep(0.004)  # @fault


with torch.no_grad():
    one = torch.randn(8, 1, WIDTH, device="cuda", dtype=torch.half)
    graph, out = capture(one)
    for _ in range(4):
        net(torch.randn(8, 1024, WIDTH, device="cuda", dtype=torch.half))  # the prompts
    torch.cuda.synchronize()
    for _ in range(steps):
        if fault:
            schedule()
        graph.replay()
        one.copy_(out)
        torch.cuda.synchronize()
