# SPDX-License-Identifier: Apache-2.0
"""Graph convolutions of torch_geometric. Fault: the whole graph is copied to the GPU in each step."""
import sys

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

fault, device, steps = sys.argv[1] == "fault", sys.argv[2], int(sys.argv[3])
nodes, edges, width = (500, 2000, 16) if device == "cpu" else (100000, 1000000, 256)
graph = Data(x=torch.randn(nodes, width), edge_index=torch.randint(0, nodes, (2, edges)),
             y=torch.randint(0, 10, (nodes,)))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(width, width), GCNConv(width, 10)

    def forward(self, data):
        return self.second(self.first(data.x, data.edge_index).relu(), data.edge_index)


net = Net().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
there = graph.clone().to(device)
for _ in range(steps):
    data = graph.clone().to(device) if fault else there  # @fault
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(data), data.y)
    loss.backward()
    optimizer.step()
    if device == "cuda":
        torch.cuda.synchronize()
