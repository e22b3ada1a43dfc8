"""Trains a network with TensorFlow on CPUs: the paper's kind of baseline, as a Python action of OpenWhisk or, as a program,
on bare metal.

    main({"peer": FOLDER, "rows": FILE, "count": 1024, "sample": [3, 32, 32], "resize": 0, "network": "resnet50",
          "classes": 10, "batch": 64, "epochs": 2, "seed": 1, "threads": 2, "devices": 1})

The rows are bytes: images of [channels height width], then a byte for each label. FOLDER is that of tf_train.py, whose
networks are trained. With several devices the network is mirrored on them (tf.distribute.MirroredStrategy).

It answers seconds of importing TensorFlow, of preparing (rows, network), of computing, and how much longer its first step
took than the others on average (it traces and compiles the graph); resident memory at each of the three points and at its
most; and by epoch the share of rows that were right as they were seen.
"""

import contextlib
import json
import os
import sys
import time


def memory(name):
    """VmRSS or VmHWM of this process, without pages of files: what a container is charged for."""
    sizes = {}
    with open("/proc/self/status", encoding="ascii") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            if value.strip().endswith(" kB"):
                sizes[key] = int(value.split()[0]) * 1024
    return sizes.get(name, 0) - sizes.get("RssFile", 0)


def rows_of(args, np):
    """The images as TensorFlow trains on CPUs, [rows height width channels], and their labels."""
    channels, height, width = args["sample"]
    data = np.fromfile(args["rows"], dtype=np.uint8)
    pixels = args["count"] * channels * height * width
    x = data[:pixels].reshape(args["count"], channels, height, width).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(x), data[pixels:pixels + args["count"]].astype(np.int32)


def steps(tf, ends):
    """A callback that notes when each step has ended."""
    return tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: ends.append(time.time()))


def first(begun, ends):
    """How much longer the first step took than one of the others on average; 0 where there are no others."""
    if len(ends) < 2:
        return 0.0
    return max(0.0, ends[0] - begun - (ends[-1] - ends[0]) / (len(ends) - 1))


def main(args):
    began = time.time()
    start = memory("VmRSS")
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("KERAS_HOME", os.path.join(os.path.dirname(args["rows"]), ".keras"))
    sys.path.insert(0, args["peer"])
    import numpy as np
    import tensorflow as tf
    import tf_train

    tf.config.threading.set_intra_op_parallelism_threads(args["threads"])
    devices = args.get("devices", 1)
    if devices > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * devices)
    tf.keras.utils.set_random_seed(args["seed"])
    imported, begun = time.time() - began, time.time()
    before = memory("VmRSS")
    x, y = rows_of(args, np)
    side = args.get("resize") or 0
    shape = (side, side, x.shape[3]) if side else x.shape[1:]

    def ready(image, label):
        image = tf.cast(image, tf.float32) / 255.0
        if side:
            image = tf.image.resize(image, (side, side))
        return image, label

    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=args["seed"]).batch(args["batch"]).map(ready)
    strategy = tf.distribute.MirroredStrategy(["CPU:%d" % i for i in range(devices)]) if devices > 1 else None
    with strategy.scope() if strategy else contextlib.nullcontext():
        model = tf_train.build(tf.keras, args["network"], shape, args["classes"])
        model.compile(
            optimizer=tf.keras.optimizers.Adam(learning_rate=0.001),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    prepared, prepare = memory("VmRSS"), time.time() - begun
    begun, ends = time.time(), []
    history = model.fit(data, epochs=args["epochs"], verbose=0, callbacks=[steps(tf, ends)])
    return {
        "import": imported, "prepare": prepare, "compute": time.time() - begun, "first": first(begun, ends),
        "start": start, "started": before, "prepared": prepared, "peak": max(memory("VmHWM"), memory("VmRSS")),
        "seen": [float(v) for v in history.history["accuracy"]], "tensorflow": tf.__version__,
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
