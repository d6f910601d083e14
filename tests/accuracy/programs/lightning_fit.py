# SPDX-License-Identifier: Apache-2.0
"""A network in Lightning's Trainer. Fault: each step copies a table of 64 MB to the GPU."""
import sys

import torch

try:
    import lightning as L
except ImportError:
    import pytorch_lightning as L

fault, device, steps = sys.argv[1] == "fault", sys.argv[2], int(sys.argv[3])
small = device == "cpu"
width = 64 if small else 2048


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(8)], torch.nn.Linear(width, 10))
        self.table = torch.randn(8192, width)

    def training_step(self, batch, number):
        x, y = batch
        if fault:
            x = x + self.table.to(self.device)[:len(x)]  # @fault
        return torch.nn.functional.cross_entropy(self.layers(x), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


data = torch.utils.data.TensorDataset(torch.randn(512 * 8, width), torch.randint(0, 10, (512 * 8,)))
loader = torch.utils.data.DataLoader(data, batch_size=512)
trainer = L.Trainer(max_steps=steps, accelerator="cpu" if small else "gpu", devices=1, logger=False,
                    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Net(), loader)
