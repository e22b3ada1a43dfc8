#!/usr/bin/env python3
"""Trains a network with JAX on random data, on CPUs, and prints one JSON line of figures: torch_train.py's twin.

    jax_train.py --network lenet5 --input 1x28x28 --classes 10 --batch 64 --steps 100 --warmup 10

The networks are tf_train.py's, by Keras on JAX; a step is one compiled function of all that changes. Data is NHWC;
--channels-last changes nothing here.
"""

import functools
import math
import os
import sys

import measure


def main():
    a = measure.arguments(__doc__)
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ["JAX_PLATFORMS"] = "cpu"
    if a.threads == 1:  # else it computes on all the processors that it may: taskset says which
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    import keras

    import tf_train

    keras.utils.set_random_seed(1)
    before = measure.memory("VmRSS")
    channels, height, width = a.input
    try:
        model = tf_train.build(keras, a.network, (height, width, channels), a.classes)
    except ValueError as e:
        measure.show({"error": str(e)})
        sys.exit(2)
    if a.optimizer == "sgd":
        opt = keras.optimizers.SGD(learning_rate=0.01, momentum=0.9)
    else:
        opt = keras.optimizers.Adam(learning_rate=0.001)
    opt.build(model.trainable_variables)
    criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    x = jax.random.normal(jax.random.key(1), (a.batch, height, width, channels))
    y = jax.random.randint(jax.random.key(2), (a.batch,), 0, a.classes)

    def loss_of(weights, statistics):
        logits, statistics = model.stateless_call(weights, statistics, x, training=True)
        return criterion(y, logits), statistics

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def train(weights, statistics, moments):
        (value, statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights, statistics)
        weights, moments = opt.stateless_apply(moments, gradients, weights)
        return value, (weights, statistics, moments)

    loss = None
    state = tuple([jax.numpy.copy(v.value) for v in of]
                  for of in (model.trainable_variables, model.non_trainable_variables, opt.variables))

    def step():
        nonlocal loss, state
        loss, state = train(*state)

    result = measure.run(a, step, lambda: float(loss))
    result["jax"] = jax.__version__
    result["parameters"] = sum(math.prod(v.shape) for v in model.trainable_variables)
    if a.rss:
        result["rss_before_network_bytes"] = before
    measure.show(result)


if __name__ == "__main__":
    main()
