# SPDX-License-Identifier: Apache-2.0
"""BERT with random weights in Hugging Face's Trainer. Fault: making each batch takes 25 ms of Python."""
import sys
import tempfile
import time

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

fault, device, steps = sys.argv[1] == "fault", sys.argv[2], int(sys.argv[3])
small = device == "cpu"


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 10000

    def __getitem__(self, index):
        return {"input_ids": torch.full((128,), index % 999), "labels": index % 2}


def collate(rows):
    end = time.thread_time() + (0.025 if fault else 0)
    while time.thread_time() < end:
        sum(range(100))  # @fault
    return {"input_ids": torch.stack([row["input_ids"] for row in rows]),
            "labels": torch.tensor([row["labels"] for row in rows])}


config = BertConfig(num_hidden_layers=2 if small else 6, hidden_size=64 if small else 512,
                    intermediate_size=128 if small else 2048, num_attention_heads=8)
arguments = TrainingArguments(tempfile.mkdtemp(), max_steps=steps, per_device_train_batch_size=8 if small else 64,
                              report_to=[], save_strategy="no", use_cpu=small, logging_steps=1000,
                              disable_tqdm=True, remove_unused_columns=False)
trainer = Trainer(BertForSequenceClassification(config), arguments, train_dataset=Texts(), data_collator=collate)
trainer.train()
