"""Prints the runs that MLflow's client reads at a tracking address as JSON."""

import json
import sys

from mlflow.tracking import MlflowClient


def runs(address):
    client = MlflowClient(tracking_uri=address)
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
    return found


if __name__ == "__main__":
    print(json.dumps(runs(sys.argv[1])))
