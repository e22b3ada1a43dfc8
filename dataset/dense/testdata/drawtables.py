"""Draws tables from a seed: drawtables.py COUNT SEED. A line of JSON for each has the file, what a user says about it, and what
pandas and scikit-learn make of it: the statistics of each column, the rows standardised and one-hot, the classes or targets."""
import base64
import datetime
import decimal
import io
import json
import math
import random
import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.preprocessing import OneHotEncoder, StandardScaler

MISSING = ["", "?", "NA", "N/A", "#N/A", "<NA>", "n/a", "na", "NaN", "nan", "NULL", "null", "None", "none", "-", "-nan", "#NA"]
TEXTS = ["yes", "no", "true", "FALSE", "say \"hi\"", "two\nlines", "a,b", "a;b", "a\tb", "a|b", "São Paulo", "北京", "🙂", "'", "#1",
         "x\u2028y",
         "İ", "1-2", "12:30", "3/4", "1.2.3", "0x10", "1_000", "e5", "ß", "long " * 40 + "end"]
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")  # as JSON writes it
count, r = int(sys.argv[1]), random.Random(int(sys.argv[2]))


def number(kind):
    """A number as programs write it."""
    if kind == "integers":
        return str(r.randint(-1000, 1000))
    if kind == "padded":
        return f"{r.randint(0, 99):05d}"
    if kind == "huge":
        return str(r.choice([-1, 1]) * r.randint(10**15, 10**25))
    v = r.gauss(0, 1) * 10 ** r.randint(-6, 6) if kind == "wide" else r.gauss(1e5, 1) if kind == "close" else r.gauss(5, 10)
    text = r.choice([repr, "{:.3f}".format, "{:e}".format, "{:E}".format, "{:+.2f}".format, "{:g}".format])(v)
    if "e" not in text.lower() and r.random() < 0.2:
        text = text.replace("0.", ".", 1) if text.startswith("0.") else text.split(".")[0] + "."
    return text


def marked(text, mark):
    """The number with marks of decimals and thousands."""
    sign, whole = ("", text) if text[0] not in "+-" else (text[0], text[1:])
    whole, point, rest = whole.partition(".")
    if whole.isdigit() and len(whole) > 3 and whole[0] != "0" and r.random() < 0.7:
        whole = f"{int(whole):,}".replace(",", "." if mark == "," else ",")
    return sign + whole + point.replace(".", mark) + rest


def spelled(cell, by, loose):
    if any(c in cell for c in "\"\n\r" + by) or cell != cell.strip() or r.random() < 0.1:
        cell = '"' + cell.replace('"', '""') + '"'
    elif loose:
        cell += " " * r.randint(0, 2)
    return " " * (r.randint(0, 2) if loose else 0) + cell


def csv_file(names, cells, said):
    by, end = said["drawnSeparator"], r.choice(["\n", "\r\n"])
    loose = by != "\t" and r.random() < 0.2
    lines = [by.join(spelled(c, by, loose) for c in row) + end * (2 if r.random() < 0.02 else 1) for row in [names] + cells]
    text = "".join(lines)
    if r.random() < 0.3:
        text = text.rstrip("\r\n")
    if r.random() < 0.3:
        text = "\ufeff" + text
    return text.encode()


def read_csv(file, said, numbers, missing):
    """The table as pandas reads it: columns of numbers by its own parser, others as texts."""
    by = said["drawnSeparator"]
    marks = {",": {"decimal": ",", "thousands": "."}, ".": {"thousands": ","}}.get(said["decimal"], {})
    options = dict(sep=by, skipinitialspace=by != "\t", keep_default_na=False, encoding="utf-8-sig", float_precision="round_trip")
    texts = pd.read_csv(io.BytesIO(file), dtype=str, **options).rename(columns=str.strip)
    for name in texts:
        texts[name] = texts[name].str.replace("\r\n", "\n").str.strip()
        texts[name] = texts[name].where(~texts[name].isin(missing), None)
    # Numbers are read from cells without spaces: pandas refuses spaces behind a number.
    plain = io.StringIO()
    texts[numbers].to_csv(plain, sep="~", index=False, na_rep="NA")
    values = pd.read_csv(io.StringIO(plain.getvalue()), sep="~", dtype="float64", na_values=["NA"], keep_default_na=False,
                         skip_blank_lines=False, float_precision="round_trip", **marks) if numbers else pd.DataFrame()
    for name in numbers:
        texts[name] = values[name].to_numpy()
    return texts


def table():
    rows, form = r.choice([r.randint(8, 60), r.randint(60, 300)]), r.choice(["csv", "csv", "csv", "jsonl", "json", "parquet"])
    is_csv = form == "csv"
    said = {"kinds": {}, "missing": [], "decimal": "", "separator": "", "header": "", "label": "", "targets": []}
    said["drawnSeparator"] = r.choice([",", ",", ";", "\t", "|"]) if r.random() < 0.9 else r.choice(["~", ":", "^"])
    if said["drawnSeparator"] in "~:^" and is_csv:
        said["separator"] = said["drawnSeparator"]
    if is_csv and r.random() < 0.3:
        said["decimal"] = r.choice(",.")
    if r.random() < 0.4:
        said["missing"] = r.sample(["gone", "-999", "unknown", "999", "."], 2)
    missing = MISSING + said["missing"]
    stems = ["a", "b c", "größe", "x,y", "say \"n\"", "two\nlines", "id", "a.b", "Ωμ"]
    names = [r.choice(stems) + f" {i}" for i in range(r.randint(2, 9))]
    if is_csv and r.random() < 0.2:
        names[0], said["header"] = "2020", "yes"
    kinds = ["integers", "padded", "huge", "wide", "close", "usual", "usual", "text", "text", "flag", "date", "codes", "constant", "empty"]
    columns, numbers, categories = {}, [], []
    for name in names[1:]:
        kind, gaps = r.choice(kinds), r.choice([0, 0, 0.05, 0.5])
        texts = r.sample(TEXTS, r.randint(2, 8))
        if kind in ("integers", "padded", "huge", "wide", "close", "usual"):
            draw = lambda: marked(number(kind), said["decimal"]) if said["decimal"] else number(kind)
            numbers.append(name)
            if r.random() < 0.2:
                said["kinds"][name] = "number"
        else:
            categories.append(name)
            draw = {
                "text": lambda: r.choice(texts), "flag": lambda: r.choice(texts[:2]), "constant": lambda: "same", "empty": lambda: "NA",
                "date": lambda: str(datetime.date(2024, 1, 1) + datetime.timedelta(r.randint(0, 40))),
                "codes": lambda: str(r.randint(1, 9)),
            }[kind]
            if kind == "codes":
                said["kinds"][name] = "category"
        gap = r.sample(missing if is_csv else [""] + missing, 3)
        columns[name] = [r.choice(gap) if r.random() < gaps else draw() for _ in range(rows)]
    label, is_target = names[0], r.random() < 0.3
    classes = r.choice([["p", "q"], ["0", "1", "2"], ["yes", "no"], ["-1", "1"], ["São", "two\nlines", "x"], ["1", "2", "5"]])
    values = [number("usual") if is_target else r.choice(classes) for _ in range(rows)]
    if is_target and said["decimal"]:
        values = [marked(v, said["decimal"]) for v in values]
    gaps = r.choice([0, 0, 0.03])
    values = ["NA" if r.random() < gaps else v for v in values]
    if is_target:
        said["targets"] = [label]
        numbers.append(label)
    else:
        said["label"] = label
        for i, text in enumerate(classes * 2):  # each class stands more than once
            values[i] = text
    columns[label] = values
    order = list(columns)
    r.shuffle(order)
    cells = [[columns[n][i] for n in order] for i in range(rows)]
    if form == "parquet":
        file, frame = parquet(order, cells, numbers, missing)
    elif is_csv:
        file = csv_file(order, cells, said)
        frame = read_csv(file, said, numbers, missing)
    else:
        file, frame = objects(form, order, cells, numbers, missing)
    if not is_csv:
        said["separator"] = ""
    frame = frame[frame[label].notna()]
    answer(form, file, said, frame, numbers, categories, label, is_target)


def objects(form, names, cells, numbers, missing):
    """The rows as JSON objects: numbers are often numbers of JSON, missing values often null or no key."""
    read, out = [], []
    for row in cells:
        members = []
        for name, text in zip(names, row):
            if text in missing and r.random() < 0.5:
                if r.random() < 0.5:
                    members.append(json.dumps(name) + ":null")
                continue
            spelling = json.dumps(text, ensure_ascii=r.random() < 0.5)
            if name in numbers and NUMBER.fullmatch(text) and r.random() < 0.9:
                spelling = text
            members.append(json.dumps(name) + r.choice([":", ": "]) + spelling)
        r.shuffle(members)
        out.append("{" + ",".join(members) + "}")
    out[0] = "{" + ",".join(json.dumps(n) + ":" + json.dumps(t) for n, t in zip(names, cells[0])) + "}"  # the order of the columns
    text = "\n".join(out) + "\n" if form == "jsonl" else "[" + ",\n ".join(out) + "]"
    frame = pd.DataFrame(json.loads(text, parse_float=str, parse_int=str) if form == "json" else
                         [json.loads(x, parse_float=str, parse_int=str) for x in text.strip("\n").split("\n")])
    for name in frame:
        texts = frame[name].map(lambda x: x.strip() if isinstance(x, str) else None)
        texts = texts.where(~texts.isin(missing), None)
        frame[name] = texts.astype("float64") if name in numbers else texts
    return text.encode(), frame


def parquet(names, cells, numbers, missing):
    """The rows as a Parquet file of columns of drawn types, which pandas reads. If a number may stand for no value, disdel reads the
    shortest spelling of a number: one of 32 bits is then another one within its rounding, and is not drawn."""
    columns, seen = {}, {}
    for i, name in enumerate(names):
        texts = [None if row[i].strip() in missing else row[i] for row in cells]
        if name in numbers:
            values = [None if x is None else float(x) for x in texts]
            whole = all(v is None or v == int(v) and abs(v) < 100 for v in values)
            kinds = ["float64", "float64", "decimal"] + ["float32"] * (len(missing) == len(MISSING))
            kinds += ["int8", "int16", "int32", "int64"] * whole
            kind = r.choice([k for k in kinds if k != "decimal" or all(v is None or 1e-3 < abs(v) < 1e9 for v in values)])
            if kind == "decimal":
                values = [None if v is None else decimal.Decimal(repr(v)).quantize(decimal.Decimal("1e-6")) for v in values]
                columns[name] = pa.array(values, pa.decimal128(38, 6))
                seen[name] = [None if v is None else float(v) for v in values]
            else:
                if kind.startswith("float") and r.random() < 0.5:  # NaN is a missing value, too
                    values = [math.nan if v is None and r.random() < 0.5 else v for v in values]
                columns[name] = pa.array(values, getattr(pa, kind)())
                seen[name] = columns[name].to_pandas().astype("float64").tolist()
        elif all(x is None or re.fullmatch(r"2024-..-..", x) for x in texts):
            days = [None if x is None else datetime.date.fromisoformat(x) for x in texts]
            columns[name], seen[name] = pa.array(days, pa.date32()), texts
        else:
            kind = r.choice([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
            written = [r.choice([None, x]) if x in missing else x for x in (row[i] for row in cells)]
            columns[name], seen[name] = pa.array(written, pa.string()).cast(kind), texts
        seen[name] = [x.strip() if isinstance(x, str) else x for x in seen[name]]
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, row_group_size=r.choice([7, 50, 10**6]),
                   compression=r.choice(["none", "snappy", "gzip", "zstd"]), data_page_version=r.choice(["1.0", "2.0"]),
                   use_dictionary=r.random() < 0.5, data_page_size=r.choice([100, 10**6]), store_schema=r.random() < 0.5)
    frame = pd.DataFrame({n: pd.Series(v, dtype="float64" if n in numbers else object) for n, v in seen.items()})
    return out.getvalue(), frame


def answer(form, file, said, frame, numbers, categories, label, is_target):
    columns, parts = [], []
    for name in frame:
        values = frame[name]
        c = {"name": name, "kind": "number", "missing": int(values.isna().sum())}
        if name == label:
            continue
        if values.notna().sum() == 0 or name in categories and values.nunique() == 1:
            continue
        if name in numbers:
            c |= {"mean": values.mean(), "deviation": values.std(ddof=0), "low": values.min(), "high": values.max()}
            filled = values.fillna(values.mean()).to_numpy().reshape(-1, 1)
            scaler = StandardScaler().fit(values.to_numpy().reshape(-1, 1))
            parts.append(scaler.transform(filled))
        else:
            c |= {"kind": "category", "categories": values.value_counts().to_dict()}
            known = sorted(c["categories"], key=spelling_order)
            encoder = OneHotEncoder(categories=[known], handle_unknown="ignore", sparse_output=False)
            c["order"] = known
            parts.append(encoder.fit_transform(values.fillna("\0").astype(object).to_numpy().reshape(-1, 1)))
        columns.append(c)
    told = {k: v for k, v in said.items() if k != "drawnSeparator"}
    told |= {"name": "t." + form, "file": base64.b64encode(file).decode(), "columns": columns}
    told["rows"] = np.hstack(parts).tolist() if parts else []
    if is_target:
        told["numbers"] = frame[label].tolist()
    else:
        told["classes"] = frame[label].tolist()
    print(json.dumps(told))


def spelling_order(text):
    """Numbers by their value before texts."""
    try:
        v = float(text.replace("_", "x"))
        return (0, v, text.encode()) if math.isfinite(v) else (1, 0, text.encode())
    except ValueError:
        return (1, 0, text.encode())


for _ in range(count):
    table()
