"""Opens the exports of a folder with the programs that they are for, and prints what these read as JSON."""

import json
import os
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions want to be asked before they read folders

import mlflow_runs
import pyarrow.parquet
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

folder = pathlib.Path(sys.argv[1])
rows = pyarrow.parquet.read_table(folder / "rounds.parquet").to_pylist()

runs = sorted(path for path in (folder / "runs").iterdir() if path.is_dir())
events = EventAccumulator(str(runs[0]))
events.Reload()
points = {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}

found = mlflow_runs.runs((folder / "mlruns").as_uri())
print(json.dumps({"parquet": rows, "tensorboard": points, "mlflow": found}))
