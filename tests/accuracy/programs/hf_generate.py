# SPDX-License-Identifier: Apache-2.0
"""GPT-2 with random weights, generating. Fault: every token's scores are sorted on the host."""
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LogitsProcessor, LogitsProcessorList

fault, device, steps = sys.argv[1] == "fault", sys.argv[2], int(sys.argv[3])
small = device == "cpu"
config = GPT2Config(n_layer=2 if small else 12, n_embd=64 if small else 768, n_head=4 if small else 12,
                    bos_token_id=0, eos_token_id=None, pad_token_id=0)
model = GPT2LMHeadModel(config).to(device).eval()


class Rank(LogitsProcessor):
    def __call__(self, tokens, scores):
        order = scores.cpu().sort(dim=-1).values  # @fault
        return scores - order[:, :1].to(scores.device)


prompt = torch.randint(0, 1000, (8, 512 if not small else 16), device=device)
processors = LogitsProcessorList([Rank()] if fault else [])
with torch.no_grad():
    model.generate(prompt, max_new_tokens=steps, do_sample=False, logits_processor=processors)
