#!/usr/bin/python3
"""Continues texts of one token by the most probable ones with PyTorch, which keeps keys and values, and prints one JSON
line of figures. A step is a token.

    torch_continue.py --network gpt-small --input 1x1x256 --classes 8192 --batch 1 --steps 1275 --warmup 2
"""

import measure


class Text:
    """A text of a GPT of sequences.py, with the keys and values of its tokens."""

    def __init__(self, torch, model, positions):
        self.torch, self.model, self.positions = torch, model, positions
        heads = [b.attention.heads for b in model.blocks]
        self.keys = [torch.zeros(1, h, positions, 64) for h in heads]
        self.values = [torch.zeros(1, h, positions, 64) for h in heads]
        self.begin()

    def begin(self):
        self.token, self.at = self.torch.ones(1, 1, dtype=self.torch.long), 0

    def attend(self, i, attention, y):
        import sequences

        q, k, v = attention.joined(y).view(1, 1, 3, attention.heads, 64).permute(2, 0, 3, 1, 4)
        self.keys[i][:, :, self.at : self.at + 1] = k
        self.values[i][:, :, self.at : self.at + 1] = v
        y = sequences.attend(q, self.keys[i][:, :, : self.at + 1], self.values[i][:, :, : self.at + 1], False)
        return attention.out(y.transpose(1, 2).reshape(1, 1, -1))

    def step(self):
        """Adds a token."""
        if self.at == self.positions - 1:
            self.begin()
        m = self.model
        y = m.tokens(self.token) + m.positions.weight[self.at]
        for i, b in enumerate(m.blocks):
            y = b.branch(y, b.norm1, lambda x: self.attend(i, b.attention, x))
            y = b.branch(y, b.norm2, lambda x: b.down(self.torch.nn.functional.gelu(b.up(x), approximate="tanh")))
        self.token = (m.norm(y) @ m.tokens.weight.T).argmax(-1)
        self.at += 1


def main():
    a = measure.arguments(__doc__)
    import torch

    import sequences

    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    model = sequences.build(a.network, a.input, a.classes).eval()
    text = Text(torch, model, a.input[2])
    with torch.inference_mode():
        check(torch, model, text)
        text.begin()
        result = measure.run(a, text.step, lambda: 0.0)
    result["torch"] = torch.__version__
    measure.show(result)


def check(torch, model, text):
    """Fails unless the tokens are those of whole rows."""
    row = [text.token.item()]
    for _ in range(5):
        text.step()
        whole = model(torch.tensor([row]))[0, -1].argmax().item()
        assert whole == text.token.item(), (row, whole)
        row.append(whole)


if __name__ == "__main__":
    main()
