"""Writes networks with squeeze and excitation, and recurrent ones, with PyTorch's exporter, then trains them: NAME.onnx, and NAME.values with
the rows as float32. It prints NAME, the number of rows and the losses of three steps of SGD on these rows. Their classes
are 0, 1, 2, 0, ... The file has the weights from before the training."""
import sys
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(1)


def unit(ins, outs, side=1, stride=1, groups=1, act=nn.SiLU):
    steps = [nn.Conv2d(ins, outs, side, stride, side // 2, groups=groups, bias=False), nn.BatchNorm2d(outs)]
    return nn.Sequential(*steps, *([act()] if act else []))


class Gate(nn.Module):
    def __init__(self, planes, squeezed, act):
        super().__init__()
        self.down, self.up, self.act = nn.Conv2d(planes, squeezed, 1), nn.Conv2d(squeezed, planes, 1), act()

    def forward(self, x):
        return torch.sigmoid(self.up(self.act(self.down(nn.functional.adaptive_avg_pool2d(x, 1))))) * x


class Inverted(nn.Module):
    """A block of EfficientNet."""

    def __init__(self, ins, outs, ratio, side, stride):
        super().__init__()
        wide = ins * ratio
        steps = [unit(ins, wide)] if ratio > 1 else []
        steps += [unit(wide, wide, side, stride, wide), Gate(wide, max(1, ins // 4), nn.SiLU)]
        steps += [unit(wide, outs, act=None)]
        self.steps, self.residual = nn.Sequential(*steps), ins == outs and stride == 1

    def forward(self, x):
        return x + self.steps(x) if self.residual else self.steps(x)


class Bottleneck(nn.Module):
    """A block of RegNetY."""

    def __init__(self, ins, outs, width, stride):
        super().__init__()
        self.short = unit(ins, outs, 1, stride, act=None) if ins != outs or stride > 1 else nn.Identity()
        self.steps = nn.Sequential(unit(ins, outs, act=nn.ReLU), unit(outs, outs, 3, stride, outs // width, nn.ReLU),
                                   Gate(outs, round(ins / 4), nn.ReLU), unit(outs, outs, act=None))

    def forward(self, x):
        return torch.relu(self.short(x) + self.steps(x))


def headed(planes, *steps):
    return nn.Sequential(*steps, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(planes, 3))


class Reader(nn.Module):
    """Two layers of two directions, which read words."""

    def __init__(self, kind):
        super().__init__()
        self.words, self.fc = nn.Embedding(20, 6), nn.Linear(10, 3)
        self.reader = kind(6, 5, 2, bidirectional=True, batch_first=True)

    def forward(self, x):
        state = self.reader(self.words(x))[1]
        state = state[0] if isinstance(state, tuple) else state
        return self.fc(torch.cat([state[-2], state[-1]], 1))


class Grown(nn.Module):
    """A transposed convolution after one over positions."""

    def __init__(self):
        super().__init__()
        self.a, self.up, self.fc = nn.Conv1d(3, 4, 3, 2), nn.ConvTranspose1d(4, 6, 3, 2, 1, groups=2), nn.Linear(6, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.up(torch.relu(self.a(x)))).mean(2))


rows = 6
for name, net in [
    ("efficientnet", headed(24, unit(3, 8, 3, 2), Inverted(8, 4, 1, 3, 1), Inverted(4, 6, 6, 3, 2),
                            Inverted(6, 6, 6, 5, 1), unit(6, 24))),
    ("regnet_y", headed(16, unit(3, 8, 3, 2, act=nn.ReLU), Bottleneck(8, 8, 4, 2), Bottleneck(8, 16, 4, 1),
                        Bottleneck(16, 16, 4, 1))),
    ("lstm", Reader(nn.LSTM)), ("gru", Reader(nn.GRU)), ("grown", Grown()),
]:
    if isinstance(net, Reader):
        x = torch.randint(0, 20, (rows, 9))
    else:
        x = torch.randn(rows, 3, 15) if isinstance(net, Grown) else torch.randn(rows, 3, 24, 20)
    classes = torch.arange(rows) % 3
    # Without folding, the batch norms stay layers.
    torch.onnx.export(net.eval(), x, f"{sys.argv[1]}/{name}.onnx", do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE)
    with open(f"{sys.argv[1]}/{name}.values", "wb") as f:
        f.write(x.float().numpy().tobytes())
    net.train()
    sgd, losses = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9), []
    for _ in range(3):
        loss = nn.functional.cross_entropy(net(x), classes)
        sgd.zero_grad(), loss.backward(), sgd.step()
        losses.append(loss.item())
    print(name, rows, *(f"{v:.9g}" for v in losses))
