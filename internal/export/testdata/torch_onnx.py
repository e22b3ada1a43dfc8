"""Writes networks with PyTorch's exporter: NAME.onnx, and NAME.values with two rows and PyTorch's answers as float32."""
import sys
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(1)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2 = nn.Linear(400, 32), nn.Linear(32, 10, bias=False)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        return self.fc2(nn.functional.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.other = nn.BatchNorm2d(8), nn.BatchNorm2d(8)
        self.short, self.fc = nn.Conv2d(3, 8, 1, stride=2), nn.Linear(8, 4)

    def forward(self, x):
        y = self.other(self.b(nn.functional.silu(self.norm(self.a(x)))))
        y = nn.functional.hardswish(y + self.short(x))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(y, 1), 1))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.a, self.b = nn.BatchNorm2d(3), nn.Conv2d(3, 5, 1), nn.Conv2d(3, 4, 3, padding=1)
        self.pool, self.fc = nn.MaxPool2d(3, 2, ceil_mode=True), nn.Linear(9, 3)

    def forward(self, x):
        x = self.norm(x)
        x = torch.cat([nn.functional.relu6(self.a(x)), nn.functional.leaky_relu(self.b(x), 0.1)], 1)
        x = nn.functional.dropout(self.pool(x), 0.5, self.training)
        return torch.softmax(self.fc(x.mean([2, 3])), 1)


class Windows(nn.Module):
    """An attention in shifted windows of a map that is no multiple of them, and a layer that merges pixels."""

    def __init__(self, size=(4, 3), shift=(2, 1), cosine=False):
        super().__init__()
        self.size, self.shift, self.cosine, self.heads = size, shift, cosine, 2
        self.patch, self.qkv, self.out = nn.Conv2d(3, 8, 2, 2), nn.Linear(8, 24), nn.Linear(8, 8)
        self.norm, self.merged, self.fc = nn.LayerNorm(8), nn.LayerNorm(32), nn.Linear(32, 5, bias=False)
        h, w = size
        self.table = nn.Parameter(torch.randn((2 * h - 1) * (2 * w - 1), self.heads))
        self.scale = nn.Parameter(torch.tensor([2.0, 5.0]).view(2, 1, 1))
        row, column = torch.arange(h * w) // w, torch.arange(h * w) % w
        apart = (row[:, None] - row + h - 1) * (2 * w - 1) + column[:, None] - column + w - 1
        self.register_buffer("apart", apart.view(-1))
        tall, wide = 6 + -6 % h, 8 + -8 % w
        part = 2 * (torch.arange(tall) >= tall - shift[0]).view(-1, 1) + (torch.arange(wide) >= wide - shift[1]).long()
        part = self.parted(part.view(1, tall, wide, 1))[..., 0]
        self.register_buffer("mask", (part.unsqueeze(1) != part.unsqueeze(2)).float() * -100)

    def parted(self, x):
        h, w = self.size
        b, height, width, c = x.shape
        return x.view(b, height // h, h, width // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, h * w, c)

    def forward(self, x):
        x = self.patch(x).permute(0, 2, 3, 1)
        (h, w), (down, right) = self.size, self.shift
        _, height, width, c = x.shape
        y = nn.functional.pad(self.norm(x), (0, 0, 0, -width % w, 0, -height % h))
        tall, wide = y.shape[1], y.shape[2]
        y = self.qkv(self.parted(torch.roll(y, (-down, -right), (1, 2))))
        y = y.view(-1, h * w, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v, mask = y[0], y[1], y[2], self.mask
        if self.cosine:
            s = nn.functional.normalize(q, dim=-1) @ nn.functional.normalize(k, dim=-1).transpose(-2, -1)
            s = s * torch.clamp(self.scale, max=4.6).exp()
        else:
            s = q * 0.7 @ k.transpose(-2, -1)
        s = s + self.table[self.apart].view(h * w, h * w, -1).permute(2, 0, 1)
        s = (s.view(-1, len(mask), self.heads, h * w, h * w) + mask.unsqueeze(1)).view(-1, self.heads, h * w, h * w)
        y = self.out((s.softmax(-1) @ v).transpose(1, 2).reshape(-1, h * w, c))
        y = y.view(-1, tall // h, wide // w, h, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, tall, wide, c)
        x = x + torch.roll(y, (down, right), (1, 2))[:, :height, :width]
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.fc(self.merged(x)).permute(0, 3, 1, 2).mean([2, 3])


class Squeeze(nn.Module):
    def __init__(self, gate):
        super().__init__()
        self.a, self.down, self.up, self.fc = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1), nn.Linear(8, 4)
        self.gate = gate

    def forward(self, x):
        x = nn.functional.silu(self.a(x))
        x = self.gate(self.up(torch.relu(self.down(nn.functional.adaptive_avg_pool2d(x, 1))))) * x
        return self.fc((x * torch.tanh(x)).mean([2, 3]))


class Scaled(nn.Module):
    """Blocks of ConvNeXt and ShuffleNet."""

    def __init__(self):
        super().__init__()
        self.a, self.norm = nn.Conv2d(3, 6, 2, 2), nn.LayerNorm(6, eps=1e-6)
        self.up, self.down, self.fc = nn.Linear(6, 10), nn.Linear(10, 6, bias=False), nn.Linear(6, 4)
        self.scale = nn.Parameter(torch.randn(6, 1, 1))
        nn.init.normal_(self.norm.weight), nn.init.normal_(self.norm.bias)

    def forward(self, x):
        x = self.a(x)
        y = self.down(nn.functional.gelu(self.up(self.norm(x.permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)
        x = x + self.scale * y
        left, right = x.chunk(2, 1)
        x = torch.cat([right, torch.relu(left)], 1)
        x = x.view(x.size(0), 3, 2, x.size(2), x.size(3)).transpose(1, 2).contiguous().view(x.size(0), -1, *x.shape[2:])
        one, two = torch.split(x, [2, 4], 1)
        return self.fc(torch.cat([two, one], 1).mean([2, 3]))


class Grouped(nn.Module):
    """Norms of groups of channels, and of each channel."""

    def __init__(self):
        super().__init__()
        self.a, self.norm, self.each = nn.Conv2d(3, 6, 3), nn.GroupNorm(2, 6, eps=1e-3), nn.InstanceNorm2d(6, affine=True)
        self.plain, self.fc = nn.GroupNorm(3, 6, affine=False), nn.Linear(6, 4)
        for one in (self.norm.weight, self.norm.bias, self.each.weight, self.each.bias):
            nn.init.normal_(one)

    def forward(self, x):
        x = torch.relu(self.each(self.norm(self.a(x))))
        return self.fc(nn.functional.adaptive_avg_pool2d(self.plain(x) * x, 1).flatten(1))


class Heads(nn.Module):
    """A block of a transformer over embedded tokens; positions come first within."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(20, 12), nn.Linear(12, 3)
        self.block = nn.TransformerEncoderLayer(12, 3, 16)

    def forward(self, x):
        return self.head(self.block(self.table(x).transpose(0, 1)).mean(0))


class Patches(nn.Module):
    """A block of torchvision's vision transformer."""

    def __init__(self, draw=torch.randn, bias=True):
        super().__init__()
        self.a, self.fc = nn.Conv2d(3, 12, 4, 4), nn.Linear(12, 5)
        self.token, self.places = nn.Parameter(draw(1, 1, 12)), nn.Parameter(torch.randn(1, 7, 12))
        self.norm, self.heads = nn.LayerNorm(12, eps=1e-6), nn.MultiheadAttention(12, 3, batch_first=True, bias=bias)
        self.other, self.up, self.down = nn.LayerNorm(12, eps=1e-6), nn.Linear(12, 20), nn.Linear(20, 12)
        if bias:
            nn.init.normal_(self.heads.in_proj_bias), nn.init.normal_(self.heads.out_proj.bias)

    def forward(self, x):
        n = x.shape[0]
        x = self.a(x).reshape(n, 12, 6).permute(0, 2, 1)
        x = torch.cat([self.token.expand(n, -1, -1), x], dim=1) + self.places
        y = self.norm(x)
        x = x + self.heads(y, y, y, need_weights=False)[0]
        x = x + self.down(nn.functional.gelu(self.up(self.other(x))))
        return self.fc(x[:, 0])


class Joined(nn.Module):
    """Vectors side by side, one of them between 0 and 6."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.fc = nn.Linear(7, 5), nn.Linear(7, 9), nn.Linear(21, 3)
        self.b.weight.data *= 9  # beyond 6

    def forward(self, x):
        b = torch.minimum(torch.maximum(self.b(x), torch.zeros(1)), torch.full((1,), 6.0))
        return self.fc(torch.cat([torch.relu(self.a(x)), b, x], 1))


class Larger(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.fc = nn.Conv2d(2, 5, 3), nn.Linear(5, 3)
        self.one, self.each = nn.PReLU(), nn.PReLU(5)
        self.each.weight.data.uniform_(-0.5, 0.5)

    def forward(self, x):
        x = self.one(self.a(x))
        x = nn.functional.interpolate(self.each(nn.Upsample(scale_factor=(3, 2))(x)), scale_factor=2)
        return self.fc(nn.functional.max_pool2d(x, 5, 3).mean([2, 3]))


class Reader(nn.Module):
    """An embedding and a recurrence; head makes a vector of all positions and of the states at the end."""

    def __init__(self, kind, head, both=False, layers=1, rows_first=True):
        super().__init__()
        self.words, self.head = nn.Embedding(20, 6), head
        self.reader = kind(6, 5, layers, bidirectional=both, batch_first=rows_first)
        self.fc = nn.Linear(10 if both else 5, 3)

    def forward(self, x):
        y, h = self.reader(self.words(x))
        return self.fc(self.head(y, h[0] if isinstance(h, tuple) else h))


class Signal(nn.Module):
    """Convolutions over positions, of channels that come first."""

    def __init__(self):
        super().__init__()
        self.a, self.norm, self.pool = nn.Conv1d(3, 4, 3, 2, 1), nn.BatchNorm1d(4), nn.MaxPool1d(2)
        self.b, self.reader, self.fc = nn.ConvTranspose1d(4, 6, 4, 2, 1, groups=2), nn.GRU(6, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x):
        x = self.b(self.pool(torch.relu(self.norm(self.a(x)))))
        return self.fc(self.reader(x.transpose(1, 2))[1].squeeze(0))


class Words(nn.Module):
    """Convolutions over positions, of words."""

    def __init__(self):
        super().__init__()
        self.words, self.a, self.b = nn.Embedding(20, 6), nn.Conv1d(6, 8, 3, padding=2, dilation=2), nn.Conv1d(8, 8, 2, groups=4)
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        x = torch.tanh(self.b(torch.relu(self.a(self.words(x).transpose(1, 2)))))
        return self.fc(nn.functional.adaptive_avg_pool1d(x, 1).squeeze(-1))


class Table(nn.Module):
    """A recurrence over rows of numbers whose channels come last."""

    def __init__(self):
        super().__init__()
        self.reader, self.fc = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x):
        return self.fc(torch.tanh(self.reader(x)[0])).mean(1)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.up = nn.Conv2d(2, 6, 3, 2), nn.ConvTranspose2d(6, 4, 3, 2, 1, output_padding=1, groups=2)
        self.more, self.fc = nn.ConvTranspose2d(4, 3, (2, 3), (1, 2), bias=False, dilation=(2, 1)), nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(torch.relu(self.more(torch.relu(self.up(self.a(x))))).mean([2, 3]))


class Hard(nn.Module):
    """hardSwish and hardSigmoid in the steps of Keras and PaddlePaddle, and a hardSigmoid of ONNX's usual slope."""

    def __init__(self):
        super().__init__()
        self.a, self.gate, self.fc, self.more = nn.Conv2d(3, 6, 3, 2), nn.Conv2d(6, 6, 1), nn.Linear(6, 5), nn.Linear(5, 3)

    def slope(self, x):  # PyTorch's own function has the slope 1/6; its exporter is told to write ONNX's 1/5
        return nn.functional.hardsigmoid(x) if torch.onnx.is_in_onnx_export() else torch.clamp(0.2 * x + 0.5, 0, 1)

    def forward(self, x):
        x = self.a(x)
        x = x * torch.clamp(x + 3, 0, 6) / 6
        x = x * self.slope(self.gate(x.mean([2, 3], keepdim=True)))
        x = torch.clamp(3 + x, 0, 6) * (1 / 6) * x
        y = self.fc(x.mean([2, 3]))
        return self.more(torch.clamp(y + 3, 0, 6) / 6)


def normed(*more):
    net = nn.Sequential(nn.Linear(7, 5), nn.LayerNorm(5, eps=0.01), nn.Tanh(), *more, nn.Linear(5, 2))
    nn.init.normal_(net[1].weight), nn.init.normal_(net[1].bias)
    return net


for name, net, sides, changes in [
    ("lenet", LeNet(), [1, 28, 28], {}), ("lenet_rows", LeNet(), [1, 28, 28], {"dynamic_axes": {"in": {0: "rows"}}}),
    ("block", Block(), [3, 15, 17], {}), ("block_unfolded", Block(), [3, 15, 17], {"do_constant_folding": False,
                                          "training": torch.onnx.TrainingMode.PRESERVE}),
    ("branches", Branches(), [3, 12, 12], {"opset_version": 11}), ("branches9", Branches(), [3, 12, 12],
                                                                 {"opset_version": 9}),
    ("grouped", Grouped(), [3, 9, 8], {}), ("grouped_rows", Grouped(), [3, 9, 8], {"dynamic_axes": {"in": {0: "rows"}}}),
    ("squeeze", Squeeze(nn.Sigmoid()), [3, 9, 8], {}), ("squeeze_hard", Squeeze(nn.Hardsigmoid()), [3, 9, 8], {}),
    ("scaled", Scaled(), [3, 8, 6], {"opset_version": 17}), ("scaled_steps", Scaled(), [3, 8, 6], {"opset_version": 13}),
    ("one_patches", Patches(), [3, 8, 12], {"opset_version": 17}),
    ("one_patches_without_bias", Patches(bias=False), [3, 8, 12], {"opset_version": 17}),
    ("one_patches_untrained", Patches(torch.zeros), [3, 8, 12], {"opset_version": 17}),
    ("one_windows", Windows(), [3, 12, 16], {"opset_version": 17}),
    ("one_windows_by_cosine", Windows((2, 4), (1, 0), True), [3, 12, 16], {"opset_version": 17}),
    ("larger", Larger(), [2, 6, 7], {}), ("larger11", Larger(), [2, 6, 7], {"opset_version": 11}),
    ("lstm_last", Reader(nn.LSTM, lambda y, h: y[:, -1]), 7, {}),
    ("lstm_state", Reader(nn.LSTM, lambda y, h: h[-1], layers=2), 7, {"dynamic_axes": {"in": {0: "rows"}}}),
    ("lstm_both", Reader(nn.LSTM, lambda y, h: torch.cat([h[-2], h[-1]], 1), True, 2), 7, {}),
    ("gru_both", Reader(nn.GRU, lambda y, h: y.mean(1), True), 7, {}), ("gru_first", Reader(nn.GRU, lambda y, h: y[:, 0], True), 7, {}),
    ("gru_squeezed", Reader(nn.GRU, lambda y, h: h.squeeze(0)), 7, {"opset_version": 11}),
    ("lstm_turned", Reader(nn.LSTM, lambda y, h: y[-1], rows_first=False), 7, {}), ("one_gru", Reader(nn.GRU, lambda y, h: y[:, -1], layers=3), 7, {}),
    ("heads", Heads(), 7, {}), ("heads_rows", Heads(), 7, {"dynamic_axes": {"in": {0: "rows"}}}),
    ("signal", Signal(), [3, 16], {}), ("words", Words(), 7, {}), ("table", Table(), [6, 4], {}), ("decoder", Decoder(), [2, 7, 8], {}),
    ("hard", Hard(), [3, 9, 8], {}), ("hard_rows", Hard(), [3, 9, 8], {"dynamic_axes": {"in": {0: "rows"}}}),
    ("joined", Joined(), [7], {}), ("perceptron", nn.Sequential(nn.Linear(7, 5), nn.ELU(), nn.Linear(5, 2), nn.Sigmoid()), [7], {}),
    ("layer_norm", normed(), [7], {"opset_version": 17}), ("layer_norm_steps", normed(nn.LayerNorm(5, elementwise_affine=False)), [7], {"opset_version": 11}),
]:
    for m in net.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
            m.running_mean.normal_(0, 0.3), m.running_var.uniform_(0.5, 2), m.weight.data.normal_(1, 0.2)
    net.eval()
    x = torch.randint(0, 20, (2, sides)) if isinstance(sides, int) else torch.randn(2, *sides)
    x = x.t() if name.endswith("_turned") else x
    one = x[:1] if name.startswith("one_") else x
    for version in range(9, 18) if name.startswith("hard") else []:
        torch.onnx.register_custom_op_symbolic("aten::hardsigmoid", lambda g, x: g.op("HardSigmoid", x), version)
    torch.onnx.export(net, one, f"{sys.argv[1]}/{name}.onnx", **{"input_names": ["in"], **changes})
    for version in range(9, 18) if name.startswith("hard") else []:
        torch.onnx.unregister_custom_op_symbolic("aten::hardsigmoid", version)
    with open(f"{sys.argv[1]}/{name}.values", "wb") as f:
        rows = x.t() if name.endswith("_turned") else x
        f.write(rows.float().numpy().tobytes() + net(x).detach().numpy().tobytes())
    print(name)
