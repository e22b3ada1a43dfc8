"""Loads a folder with transformers, and prints what it answers for the rows of standard input, as JSON."""

import json
import sys

import torch
import transformers

folder, shape = sys.argv[1], [int(n) for n in sys.argv[2].split("x")]
config = transformers.AutoConfig.from_pretrained(folder)
kind = getattr(transformers, config.architectures[0])
net, info = kind.from_pretrained(folder, output_loading_info=True)
for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
    if info[what]:
        sys.exit(f"{what}: {info[what]}")
net.eval()
x = torch.tensor(json.load(sys.stdin)).reshape(shape)
out = []
with torch.no_grad():
    for row in x.split(1):  # GPT-2 classifies rows one by one, unless a token is padding
        if len(shape) == 4:
            y = net(row).logits
        elif config.model_type == "gpt2":
            y = net(row.long()).logits
        else:
            y = net(row.long(), attention_mask=(row > 0).long()).logits
        out.append(torch.softmax(y[:, -1] if y.dim() == 3 else y, -1))
print(json.dumps(torch.cat(out).flatten().tolist()))
