"""Reads tables with Python's csv module: {"text", "separator"} in each line of stdin, the records of one in each line
of stdout as [[line, [cells]]], or {"error"}. A line number is that of the record's first line, as editors count: newlines end lines."""
import csv, io, json, sys

for request in sys.stdin:
    r = json.loads(request)
    text, by, out = r["text"].removeprefix("\ufeff"), r["separator"], []
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=by, strict=True, skipinitialspace=by != "\t")
    try:
        before = 0
        for cells in reader:
            if cells:  # no blank line
                out.append([before + 1, cells])
            before = reader.line_num
        print(json.dumps(out))
    except csv.Error as e:
        print(json.dumps({"error": str(e), "line": reader.line_num}))
