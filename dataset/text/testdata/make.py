"""Writes the fixtures beside it: tokenizers of PyPI's tokenizers 0.20.3, drawn texts, and their tokens.

Run it where that package is installed: python make.py [SEED]. Texts have characters of Unicode 13 only, as that
version of the library.
"""

import gzip
import json
import pathlib
import random
import sys
import unicodedata

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

drawn = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
here = pathlib.Path(__file__).parent
blocks = [(0x20, 0x7E)] * 12 + [
    (0x09, 0x0D), (0x20, 0x20), (0x80, 0xFF), (0x100, 0x17F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF), (0x620, 0x6FF),
    (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x2000, 0x206F), (0x2150, 0x218F), (0x3000, 0x30FF), (0x4E00, 0x4FFF),
    (0xAC00, 0xADFF), (0xFF00, 0xFFEF), (0x1F300, 0x1F3FF), (0x1D400, 0x1D4FF), (0x300, 0x36F), (0x20000, 0x200FF),
]  # fmt: skip
endings = ["'s", "'LL", "'re ", "I'm", "\t", "\r\n", "   x", "12345", "<|end|>", "[MASK]", " [MASK] ", "\n\n", " \n "]
syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


def strange() -> str:
    out = ""
    for _ in range(drawn.randint(1, 12)):
        low, high = drawn.choice(blocks)
        out += "".join(chr(drawn.randint(low, high)) for _ in range(drawn.randint(1, 5)))
        if drawn.random() < 0.4:
            out += drawn.choice(endings)
    return "".join(c for c in out if unicodedata.category(c) != "Cn")


def common() -> str:
    words = ["".join(drawn.choice(syllables[:12]) for _ in range(drawn.randint(1, 3))) for _ in range(drawn.randint(1, 20))]
    return " ".join(words) + drawn.choice(["", ".", "!\n", " 42."])


texts = [strange() for _ in range(150)] + [common() for _ in range(100)]
special = ["<|end|>"]


def byte_level(pre_tokenizer, normalizer=None):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizer, decoders.ByteLevel()
    if normalizer:
        t.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    t.train_from_iterator(texts, trainer)
    return t


def pieces(normalizer, pre_tokenizer, special, **decoder):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre_tokenizer, decoders.WordPiece(**decoder)
    t.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False))
    return t


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
rest = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
around = [("[CLS]", 2), ("[SEP]", 3)]
all_five = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
made = {
    "gpt2": byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "roberta": byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "llama": byte_level(pre_tokenizers.Sequence([split(words + r"\p{N}{1,3}" + rest), plain])),
    "qwen": byte_level(pre_tokenizers.Sequence([split(words + r"\p{N}" + rest), plain]), normalizers.NFC()),
    "stages": byte_level(
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.Punctuation(),
                split(r"\s?\w+|\s+(?!\S)|\s+"),
                plain,
            ]
        )
    ),
    "bert": pieces(normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), all_five),
    "cased": pieces(normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer(), all_five),
    "pieces": pieces(
        normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]),
        pre_tokenizers.Whitespace(),
        ["[UNK]"],
        cleanup=False,
    ),
}
made["roberta"].post_processor = processors.RobertaProcessing(sep=("<|end|>", 0), cls=("<|end|>", 0))
made["llama"].post_processor = processors.Sequence(
    [
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|end|> $A", special_tokens=[("<|end|>", 0)]),
    ]
)
for name in ("bert", "cased"):
    made[name].post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=around)

fixture = {"texts": texts, "tokenizers": {}}
for name, t in made.items():
    fixture["tokenizers"][name] = {
        "file": json.loads(t.to_str()),
        "plain": [t.encode(x, add_special_tokens=False).ids for x in texts],
        "special": [t.encode(x).ids for x in texts],
        "decoded": [t.decode(t.encode(x).ids) for x in texts],
    }
data = json.dumps(fixture, ensure_ascii=False, separators=(",", ":")).encode()
(here / "tokenizers.json.gz").write_bytes(gzip.compress(data, 9, mtime=0))
