"""Writes drawn tables as Parquet: FOLDER SEED NUMBER. Prints, as JSON, the rows of each as they were drawn."""
import json
import random
import sys

import pyarrow
from pyarrow import parquet


def column(draw, kind, rows):
    gaps, run, value, out = draw.choice([0, 0.1, 0.9]), draw.choice([1, 9, 40]), None, []
    for _ in range(rows):
        if value is None or draw.random() < 1 / run:
            value = {"bool": draw.random() < 0.5, "int": draw.randint(-(2**40), 2**40), "double": draw.gauss(0, 1),
                     "text": draw.choice(["red", "", "a,b", "ü"])}[kind]
        out.append(None if draw.random() < gaps else value)
    return out


def write(file, draw):
    kinds = {"a": "bool", "b": "bool"} | {name: draw.choice(["bool", "int", "double", "text"]) for name in "cd"}
    rows = draw.choice([1, 7, 8, 200])
    types = {"bool": pyarrow.bool_(), "int": pyarrow.int64(), "double": pyarrow.float64(), "text": pyarrow.string()}
    values = {name: column(draw, kind, rows) for name, kind in kinds.items()}
    table = pyarrow.table({n: pyarrow.array(v, types[kinds[n]]) for n, v in values.items()})
    plain = draw.random() < 0.5
    encodings = {n: "RLE" for n, kind in kinds.items() if kind == "bool"} if plain else None
    with parquet.ParquetWriter(file, table.schema, use_dictionary=not plain, column_encoding=encodings,
                               data_page_version=draw.choice(["1.0", "2.0"]), data_page_size=draw.choice([1, 1 << 20]),
                               compression=draw.choice(["none", "snappy", "gzip", "zstd", "brotli"]),
                               write_page_checksum=draw.random() < 0.5) as out:
        for part in (table.slice(0, rows // 2), table.slice(0, 0), table.slice(rows // 2)):
            out.write_table(part)
    return [[values[name][row] for name in kinds] for row in range(rows)]


folder, seed, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
json.dump([write(f"{folder}/{k}.parquet", random.Random(seed * 1000 + k)) for k in range(number)], sys.stdout)
