"""The networks of sequences of the benchmark in plain torch.nn, as disdel's zoo has them.

build(name, (channels, height, width), classes) makes one of NETWORKS. Networks of tokens take [rows, positions]; a
language model gives [rows, positions, tokens].
"""

import torch
from torch import nn
from torch.nn import functional as F

DROPOUT = 0.1


def defined(q, k, v, is_causal=False):
    """Attention by its definition."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if is_causal:
        n = scores.shape[-1]
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), float("-inf"))
    return scores.softmax(-1) @ v


def attend(q, k, v, causal):
    """Scaled dot-product attention: PyTorch's own from 2.0 on, else by its definition."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return defined(q, k, v, causal)


class Attention(nn.Module):
    def __init__(self, width, causal):
        super().__init__()
        self.heads, self.causal = width // 64, causal
        self.joined = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        rows, positions, width = x.shape
        parts = self.joined(x).view(rows, positions, 3, self.heads, 64).permute(2, 0, 3, 1, 4)
        y = attend(parts[0], parts[1], parts[2], self.causal)
        return self.out(y.transpose(1, 2).reshape(rows, positions, width))


class Block(nn.Module):
    def __init__(self, width, causal=False, post=False, dropout=0.0, approximate="none"):
        super().__init__()
        self.attention = Attention(width, causal)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.post, self.dropout, self.approximate = post, dropout, approximate

    def forward(self, x):
        x = self.branch(x, self.norm1, self.attention)
        return self.branch(x, self.norm2, lambda y: self.down(F.gelu(self.up(y), approximate=self.approximate)))

    def branch(self, x, norm, of):
        y = F.dropout(of(x if self.post else norm(x)), self.dropout, self.training)
        return norm(x + y) if self.post else x + y


class GPT(nn.Module):
    def __init__(self, layers, width, positions, tokens):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(tokens, width), nn.Embedding(positions, width)
        self.blocks = nn.Sequential(*(Block(width, True, dropout=DROPOUT, approximate="tanh") for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        y = F.dropout(self.tokens(x) + self.positions.weight[: x.shape[1]], DROPOUT, self.training)
        return F.linear(self.norm(self.blocks(y)), self.tokens.weight)


class BERT(nn.Module):
    def __init__(self, layers, width, positions, classes):
        super().__init__()
        self.words, self.positions = nn.Embedding(30522, width, padding_idx=0), nn.Embedding(positions, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.Sequential(*(Block(width, post=True, dropout=DROPOUT) for _ in range(layers)))
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, classes)

    def forward(self, x):
        y = F.dropout(self.norm(self.words(x) + self.positions.weight[: x.shape[1]]), DROPOUT, self.training)
        y = torch.tanh(self.pooler(self.blocks(y)[:, 0]))
        return self.classifier(F.dropout(y, DROPOUT, self.training))


class ViT(nn.Module):
    def __init__(self, patch, layers, width, side, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (side // patch) ** 2 + 1, width))
        self.blocks = nn.Sequential(*(Block(width) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.first.expand(len(x), -1, -1), y], 1) + self.positions
        return self.head(self.norm(self.blocks(y))[:, 0])


class LSTM(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.words, self.lstm = nn.Embedding(20000, 128, padding_idx=0), nn.LSTM(128, 256, batch_first=True)
        self.classifier = nn.Linear(256, classes)

    def forward(self, x):
        return self.classifier(self.lstm(self.words(x))[0][:, -1])


NETWORKS = {
    "gpt-small": lambda shape, classes: GPT(6, 384, shape[2], classes),
    "bert-tiny": lambda shape, classes: BERT(2, 128, shape[2], classes),
    "vit-tiny-cifar": lambda shape, classes: ViT(4, 12, 192, shape[1], classes),
    "lstm": lambda shape, classes: LSTM(classes),
}


def build(name, shape, classes):
    return NETWORKS[name](shape, classes)


def batch(name, rows, shape, classes):
    """Inputs, and what a step compares the outputs with."""
    if name == "vit-tiny-cifar":
        return torch.randn(rows, *shape), torch.randint(classes, (rows,))
    tokens = torch.randint(1, classes if name == "gpt-small" else 20000, (rows, shape[2]))
    return tokens, tokens if name == "gpt-small" else torch.randint(classes, (rows,))


def loss_of(name, outputs, targets):
    if name == "gpt-small":
        return F.cross_entropy(outputs[:, :-1].flatten(0, 1), targets[:, 1:].flatten())
    return F.cross_entropy(outputs, targets)
