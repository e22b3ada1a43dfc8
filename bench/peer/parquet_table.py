"""Writes a Parquet table of COLUMNS drawn float32 columns and a label, at least MEGABYTES large ("write FILE MEGABYTES
COLUMNS"), or reads one into arrays and prints the seconds that took ("read FILE")."""
import sys
import time

import numpy
import pyarrow
from pyarrow import parquet

todo, file = sys.argv[1:3]
if todo == "write":
    megabytes, columns = int(sys.argv[3]), int(sys.argv[4])
    rng, rows = numpy.random.default_rng(1), 100_000
    names = [f"value{i}" for i in range(columns)]
    writer = None
    for _ in range(-(-megabytes * 1_000_000 // (rows * 4 * (columns + 1)))):
        group = pyarrow.table({n: rng.standard_normal(rows, dtype=numpy.float32) for n in names}
                              | {"label": rng.integers(0, 10, rows, dtype=numpy.int32)})
        writer = writer or parquet.ParquetWriter(file, group.schema)
        writer.write_table(group)
    writer.close()
else:
    began = time.perf_counter()
    source = parquet.ParquetFile(file)
    x = numpy.empty((source.metadata.num_rows, source.metadata.num_columns - 1), numpy.float32)
    y = numpy.empty(len(x), numpy.int32)
    at = 0
    for group in range(source.num_row_groups):
        table = source.read_row_group(group)
        for i, column in enumerate(table.columns[:-1]):
            x[at:at + len(table), i] = column.to_numpy()
        y[at:at + len(table)] = table.columns[-1].to_numpy()
        at += len(table)
    print(time.perf_counter() - began)
