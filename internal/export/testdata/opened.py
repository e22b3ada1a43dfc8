"""Opens the exports of a folder with the programs that they are for, and prints what these read as JSON."""

import json
import os
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions want to be asked before they read folders

import pyarrow.parquet
from mlflow.tracking import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

folder = pathlib.Path(sys.argv[1])
rows = pyarrow.parquet.read_table(folder / "rounds.parquet").to_pylist()

runs = sorted(path for path in (folder / "runs").iterdir() if path.is_dir())
events = EventAccumulator(str(runs[0]))
events.Reload()
points = {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}

client = MlflowClient(tracking_uri=(folder / "mlruns").as_uri())
found = []
for experiment in client.search_experiments():
    for run in client.search_runs([experiment.experiment_id], order_by=["attributes.run_name"]):
        history = lambda name: [[m.step, m.value] for m in client.get_metric_history(run.info.run_id, name)]
        found.append(
            {
                "experiment": experiment.name,
                "status": run.info.status,
                "name": run.info.run_name,
                "batchSize": run.data.params["training.batchSize"],
                "tag": run.data.tags["_.._team"],
                "train_loss": history("train_loss"),
                "accuracy": history("accuracy"),
            }
        )
print(json.dumps({"parquet": rows, "tensorboard": points, "mlflow": found}))
