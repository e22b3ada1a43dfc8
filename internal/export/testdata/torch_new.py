"""Writes small networks as PyTorch's newer exporter has them (torch.onnx.export with dynamo, the usual one since PyTorch
2.9), as FOLDER/NAME.onnx, and FOLDER/new.json with a row and PyTorch's answers for each. Files named script are of the
older exporter, those that end with a number of that opset. It needs onnxscript and transformers. The files beside it
were written with PyTorch 2.15 and transformers 5.24. What machines and programs leave in such files is taken out."""
import contextlib
import io
import json
import sys

import onnx
import torch
import torch.nn.functional as F
from torch import nn
from transformers import BertConfig, BertForSequenceClassification


class Three(nn.Module):
    """Queries, keys and values of one layer, or of three."""

    def __init__(self, width, heads, whole, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.ModuleList([nn.Linear(width, 3 * width)] if whole else [nn.Linear(width, width) for _ in range(3)])
        self.out = nn.Linear(width, width)

    def forward(self, x):
        rows, positions, width = x.shape
        three = [layer(x) for layer in self.qkv]
        if len(three) == 1:
            three = three[0].split(width, 2)
        q, k, v = (y.view(rows, positions, self.heads, width // self.heads).transpose(1, 2) for y in three)
        if len(self.qkv) == 1:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            y = (q @ k.transpose(2, 3) / (width // self.heads) ** 0.5).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(rows, positions, width))


class Text(nn.Module):
    def __init__(self, layer, take):
        super().__init__()
        self.table, self.layer, self.take = nn.Embedding(20, 8), layer, take
        self.head = nn.Linear(12 if isinstance(layer, nn.LSTM) else 8, 3)

    def forward(self, x):
        x = self.table(x)
        x = self.layer(x)[0] if isinstance(self.layer, nn.LSTM) else self.layer(x)
        return self.head(x.mean(1) if self.take is None else x[:, self.take])


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.token = nn.Conv2d(1, 8, 2, 2), nn.Parameter(torch.randn(1, 1, 8))
        self.places = nn.Parameter(torch.randn(1, 5, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.layer(x)[:, 0])


class Masked(nn.Module):
    """BERT with a mask of padding, which is token 0."""

    def __init__(self):
        super().__init__()
        self.net = BertForSequenceClassification(BertConfig(
            vocab_size=20, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
            max_position_embeddings=5, type_vocab_size=1, num_labels=3, initializer_range=0.5))

    def forward(self, input_ids, attention_mask=None):
        mask = (input_ids != 0).long() if attention_mask is None else attention_mask
        return self.net(input_ids=input_ids, attention_mask=mask).logits


class Shared(nn.Module):
    """Four heads of queries share two of keys and values, which positions turn: halves of a head are of one chunk."""

    def __init__(self, width, positions, heads, shared):
        super().__init__()
        self.heads, self.shared, self.width = heads, shared, width // heads
        self.norm, self.out = nn.RMSNorm(width), nn.Linear(width, width)
        self.three = nn.ModuleList(nn.Linear(width, self.width * n, bias=False) for n in (heads, shared, shared))
        angles = torch.outer(torch.arange(positions), 100 ** (-torch.arange(0, self.width, 2) / self.width))
        self.register_buffer("cos", torch.cat([angles, angles], 1).cos())
        self.register_buffer("sin", torch.cat([angles, angles], 1).sin())

    def turned(self, x):
        low, high = x.chunk(2, -1)
        return x * self.cos + torch.cat([-high, low], -1) * self.sin

    def forward(self, x):
        rows, positions, width = x.shape
        q, k, v = (layer(self.norm(x)).view(rows, positions, -1, self.width).transpose(1, 2) for layer in self.three)
        k, v = (y.repeat_interleave(self.heads // self.shared, 1) for y in (self.turned(k), v))
        y = F.scaled_dot_product_attention(self.turned(q), k, v, is_causal=True)
        return F.softplus(x + self.out(y.transpose(1, 2).reshape(rows, positions, width)), beta=2)


class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(20, 8), nn.Linear(40, 3)

    def forward(self, x):
        return self.head(self.table(x).flatten(1))


class Signal(nn.Module):
    """The channels of a signal by halves, of which one gates the other, and their mean."""

    def __init__(self):
        super().__init__()
        self.table, self.conv, self.mean = nn.Embedding(20, 8), nn.Conv1d(8, 6, 3), nn.AdaptiveAvgPool1d(1)
        self.head = nn.Linear(3, 3)

    def forward(self, x):
        x = self.conv(self.table(x).transpose(1, 2))
        return self.head(self.mean(x[:, :3] * torch.sigmoid(x[:, 3:])).flatten(1))


torch.manual_seed(5)
folder, answers = sys.argv[1], {}
encoder = nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True)
for name, net, rows in [
    ("encoder", Text(encoder, None), False), ("encoder-rows", Text(encoder, None), True),
    ("causal-rows", Text(Three(8, 2, True, True), -1), True), ("three", Text(Three(8, 4, False, False), 0), False),
    ("lstm-rows", Text(nn.LSTM(8, 6, batch_first=True, bidirectional=True), -1), True), ("patches-rows", Patches(), True),
    ("masked-rows", Masked(), True), ("masked-script-rows", Masked(), True),
    ("encoder-rows-23", Text(encoder, None), True), ("causal-rows-23", Text(Three(8, 2, True, True), -1), True),
    ("masked-rows-23", Masked(), True), ("shared-rows-18", Text(Shared(8, 5, 4, 2), -1), True),
    ("shared-rows-23", Text(Shared(8, 5, 4, 2), -1), True), ("one-shared-18", Text(Shared(8, 5, 4, 1), 0), False),
    ("flat-rows", Flat(), True), ("signal-rows", Signal(), True),
]:
    net.eval()
    x = torch.randn(1, 1, 4, 4) if name.startswith("patches") else torch.randint(0, 20, (1, 5))
    inputs = [torch.cat([x, x]) if rows else x]
    names = ["input_ids", "attention_mask"] if isinstance(net, Masked) else ["x"]
    if isinstance(net, Masked):
        x[0, 3:] = 0
        inputs.append(torch.ones_like(inputs[0]))
    with contextlib.redirect_stdout(io.StringIO()):
        if "script" in name:
            torch.onnx.export(net, tuple(inputs), f"{folder}/{name}.onnx", dynamo=False, input_names=names,
                              dynamic_axes={name: {0: "rows"} for name in names})
            model = onnx.load(f"{folder}/{name}.onnx")
        else:
            shapes = {"dynamic_shapes": tuple({0: torch.export.Dim("rows")} for _ in inputs)} if rows else {}
            named = {"input_names": names} if len(names) > 1 else {}
            if name[-2:].isdigit():
                named["opset_version"] = int(name[-2:])
            model = torch.onnx.export(net, tuple(inputs), dynamo=True, verbose=False, **named, **shapes).model_proto
    del model.graph.value_info[:], model.metadata_props[:], model.graph.metadata_props[:], model.functions[:]
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for value in list(model.graph.input) + list(model.graph.output) + list(model.graph.initializer):
        del value.metadata_props[:]
    onnx.save(model, f"{folder}/{name}.onnx")
    with torch.no_grad():
        answers[name] = {"row": x.flatten().tolist(), "answers": net(x).flatten().tolist()}
with open(f"{folder}/new.json", "w") as f:
    json.dump(answers, f, indent=1)
    f.write("\n")
