"""Writes recurrent networks that disdel has no layers for: NAME.onnx, and an empty NAME.values. It prints the names."""
import sys
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")


class Reader(nn.Module):
    def __init__(self, head, both=False, kind=nn.LSTM, **changes):
        super().__init__()
        self.words, self.fc, self.head = nn.Embedding(20, 6), nn.Linear(10 if both else 5, 3), head
        self.reader = kind(6, 5, bidirectional=both, batch_first=True, **changes)

    def forward(self, x):
        return self.fc(self.head(self.reader, self.words(x)))


def lengths(reader, x):
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([7, 5]), batch_first=True)
    return reader(packed)[1][0][-1]


start = torch.ones(1, 2, 5)
for name, net in [
    ("state", Reader(lambda r, x: r(x, (start, start))[0][:, -1])),
    ("cells", Reader(lambda r, x: r(x)[1][1][-1])),
    ("middle", Reader(lambda r, x: r(x)[0][:, 3])),
    ("lengths", Reader(lengths)),
    ("plain", Reader(lambda r, x: r(x)[0][:, -1], kind=nn.RNN)),
    ("order", Reader(lambda r, x: torch.cat([r(x)[1][0][1], r(x)[1][0][0]], 1), True)),
]:
    torch.onnx.export(net.eval(), torch.randint(0, 20, (2, 7)), f"{sys.argv[1]}/{name}.onnx")
    open(f"{sys.argv[1]}/{name}.values", "w").close()
    print(name)
