"""Writes small folders as a hub has them, and what PyTorch answers: rows.json, beside the folders.

Run it with transformers and torch: python make.py. The weights are drawn from a seed.
"""

import itertools
import json
import os

import torch
from transformers import (BertConfig, BertForMaskedLM, BertForSequenceClassification, DistilBertConfig,
                          DistilBertForSequenceClassification, GPT2Config, GPT2LMHeadModel, GPT2Model,
                          GPT2ForSequenceClassification, LlamaConfig, LlamaForCausalLM,
                          LlamaForSequenceClassification, ViTConfig, ViTForImageClassification)

HERE = os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(1)

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "film", "good", "bad", "was", "##s", "##ly", ".", ","]
words += ["word%d" % i for i in range(40 - len(words))]

bert = dict(vocab_size=40, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20,
            max_position_embeddings=12, initializer_range=0.4)
gpt = dict(vocab_size=40, n_embd=8, n_layer=2, n_head=2, n_positions=12, initializer_range=0.4)
llama = dict(vocab_size=40, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
             intermediate_size=20, max_position_embeddings=12, initializer_range=0.4)
made = {
    "bert": BertForSequenceClassification(BertConfig(**bert, num_labels=3, id2label={0: "bad", 1: "fair", 2: "good"},
                                                     label2id={"bad": 0, "fair": 1, "good": 2})),
    "bert-masked": BertForMaskedLM(BertConfig(**bert)),
    "distilbert": DistilBertForSequenceClassification(DistilBertConfig(
        vocab_size=40, dim=8, n_layers=2, n_heads=2, hidden_dim=20, max_position_embeddings=12, initializer_range=0.4)),
    "gpt2": GPT2LMHeadModel(GPT2Config(**gpt)),
    "gpt2-body": GPT2Model(GPT2Config(**gpt)),
    "gpt2-classes": GPT2ForSequenceClassification(GPT2Config(**gpt, num_labels=3, pad_token_id=0)),
    "vit": ViTForImageClassification(ViTConfig(
        hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, image_size=8, patch_size=4,
        num_labels=5, initializer_range=0.4)),
}



def decoders():
    """Networks of Llama's kind, drawn after the others so that those stay as they are."""
    torch.manual_seed(2)
    yield "llama", LlamaForCausalLM(LlamaConfig(**llama))
    yield "llama-tied", LlamaForCausalLM(LlamaConfig(**llama, tie_word_embeddings=True))
    yield "llama-classes", LlamaForSequenceClassification(LlamaConfig(**llama, num_labels=3, pad_token_id=0))


rows = {}
for name, net in itertools.chain(made.items(), decoders()):
    net.eval()
    with torch.no_grad():
        for weight in net.parameters():  # norms and biases as a training leaves them
            if weight.dim() == 1:
                weight += 0.2 * torch.randn_like(weight)
    shards = {"max_shard_size": "6KB"} if name == "distilbert" else {}
    net.save_pretrained(os.path.join(HERE, name), safe_serialization=True, **shards)
    if name == "vit":
        x = torch.randn(3, 3, 8, 8)
        y = torch.softmax(net(x).logits, -1)
    elif name.startswith(("gpt2", "llama")):
        x = torch.randint(1, 40, (3, 12))
        y = net(x).last_hidden_state @ net.wte.weight.T if name == "gpt2-body" else net(x).logits
        if name.endswith("-classes"):
            y = torch.softmax(y, -1)
    else:
        x = torch.randint(1, 40, (3, 12))
        x[1, 7:] = 0
        x[2, 3:] = 0
        if name == "bert-masked":
            continue
        y = torch.softmax(net(x, attention_mask=(x > 0).long()).logits, -1)
    rows[name] = {"rows": x.flatten().tolist(), "answers": y.flatten().tolist()}
with open(os.path.join(HERE, "bert", "vocab.txt"), "w") as f:
    f.write("\n".join(words) + "\n")
with open(os.path.join(HERE, "rows.json"), "w") as f:
    json.dump(rows, f)
