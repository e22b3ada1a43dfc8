#!/usr/bin/env python3
"""Trains a network with TensorFlow on random data, on CPUs, and prints one JSON line of figures: torch_train.py's twin.

    tf_train.py --network lenet5 --input 1x28x28 --classes 10 --batch 64 --steps 100 --warmup 10

Where TensorFlow cannot be imported it prints {"error": ...} and exits with 3. Data is NHWC, the layout in which
TensorFlow trains on CPUs; --channels-last changes nothing here.
"""

import math
import os
import sys

import measure


def batch_norm(layers, x, relu=True):
    """With PyTorch's epsilon and momentum, as the ResNets are torchvision's."""
    x = layers.BatchNormalization(epsilon=1e-5, momentum=0.9)(x)
    return layers.ReLU()(x) if relu else x


def conv(layers, x, planes, kernel, stride=1):
    """Pads as PyTorch does, the same on every side; padding="same" would not at stride 2."""
    if kernel > 1:
        x = layers.ZeroPadding2D(kernel // 2)(x)
    return layers.Conv2D(planes, kernel, stride, use_bias=False)(x)


def project(layers, x, planes, stride):
    return batch_norm(layers, conv(layers, x, planes, 1, stride), relu=False)


def option_a(layers, x, planes, stride):
    """Every stride-th pixel, channels padded with zeros on both sides."""
    pad = planes - x.shape[-1]
    x = layers.MaxPooling2D(1, stride)(x)  # windows of one pixel: picks every stride-th
    x = layers.Permute((1, 3, 2))(x)  # ZeroPadding2D pads the two axes in the middle
    x = layers.ZeroPadding2D(((0, 0), (pad // 2, pad - pad // 2)))(x)
    return layers.Permute((1, 3, 2))(x)


def basic(layers, x, planes, stride, shortcut=project):
    same = stride == 1 and x.shape[-1] == planes
    beside = x if same else shortcut(layers, x, planes, stride)
    x = batch_norm(layers, conv(layers, x, planes, 3, stride))
    x = batch_norm(layers, conv(layers, x, planes, 3), relu=False)
    return layers.ReLU()(layers.Add()([x, beside]))


def bottleneck(layers, x, planes, stride):
    same = stride == 1 and x.shape[-1] == 4 * planes
    beside = x if same else project(layers, x, 4 * planes, stride)
    x = batch_norm(layers, conv(layers, x, planes, 1))
    x = batch_norm(layers, conv(layers, x, planes, 3, stride))
    x = batch_norm(layers, conv(layers, x, 4 * planes, 1), relu=False)
    return layers.ReLU()(layers.Add()([x, beside]))


def resnet(layers, x, classes, block, counts):
    x = batch_norm(layers, conv(layers, x, 64, 7, 2))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))  # zeros do no harm behind a ReLU
    for s, count in enumerate(counts):
        for i in range(count):
            x = block(layers, x, 64 << s, 2 if i == 0 and s > 0 else 1)
    return layers.Dense(classes)(layers.GlobalAveragePooling2D()(x))


def resnet20_cifar(layers, x, classes):
    x = batch_norm(layers, conv(layers, x, 16, 3))
    for s in range(3):
        for i in range(3):
            x = basic(layers, x, 16 << s, 2 if i == 0 and s > 0 else 1, option_a)
    return layers.Dense(classes)(layers.GlobalAveragePooling2D()(x))


def lenet5(layers, x, classes):
    x = layers.Conv2D(6, 5, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D(2)(x)
    x = layers.Conv2D(16, 5, activation="relu")(x)
    x = layers.Flatten()(layers.MaxPooling2D(2)(x))
    x = layers.Dense(120, activation="relu")(x)
    x = layers.Dense(84, activation="relu")(x)
    return layers.Dense(classes)(x)


def vgg16(layers, x, classes, adaptive):
    for planes, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            x = layers.Conv2D(planes, 3, padding="same", activation="relu", kernel_initializer="he_normal")(x)
        x = layers.MaxPooling2D(2)(x)
    if adaptive:  # Keras has no adaptive pooling: to 7x7 from a divisor or a multiple of it is all that inputs need here
        height, width = x.shape[1:3]
        if height % 7 == 0 and width % 7 == 0:
            x = layers.AveragePooling2D((height // 7, width // 7))(x)
        elif 7 % height == 0 and 7 % width == 0:
            x = layers.UpSampling2D((7 // height, 7 // width))(x)
        else:
            raise ValueError(f"vgg16: cannot pool {height}x{width} to 7x7")
    x = layers.Flatten()(x)
    for _ in range(2):
        x = layers.Dropout(0.5)(layers.Dense(4096, activation="relu")(x))
    return layers.Dense(classes)(x)


def mobilenet(layers, x, classes):
    """MobileNet layer by layer: Keras Applications' refuses inputs below 32x32."""
    def norm(x):
        return layers.ReLU(6.0)(layers.BatchNormalization()(x))

    def pad(x, stride):
        return x if stride == 1 else layers.ZeroPadding2D(((0, 1), (0, 1)))(x)

    x = norm(layers.Conv2D(32, 3, 2, use_bias=False)(pad(x, 2)))
    for planes, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]:
        x = layers.DepthwiseConv2D(3, stride, "same" if stride == 1 else "valid", use_bias=False)(pad(x, stride))
        x = norm(layers.Conv2D(planes, 1, use_bias=False)(norm(x)))
    return layers.Dense(classes)(layers.Dropout(1e-3)(layers.GlobalAveragePooling2D()(x)))


def build(keras, name, shape, classes):
    """The network with logits as output, not probabilities: softmax is part of the loss, as in PyTorch."""
    layers = keras.layers
    options = {"weights": None, "input_shape": shape, "classes": classes, "classifier_activation": None}
    if name == "inceptionv3":
        return keras.applications.InceptionV3(**options)  # it refuses inputs below 75x75 itself
    if name == "mobilenetv1" and min(shape[:2]) >= 32:
        return keras.applications.MobileNet(**options)
    x = keras.Input(shape)
    y = {
        "lenet5": lambda: lenet5(layers, x, classes),
        "resnet18": lambda: resnet(layers, x, classes, basic, (2, 2, 2, 2)),
        "resnet50": lambda: resnet(layers, x, classes, bottleneck, (3, 4, 6, 3)),
        "resnet152": lambda: resnet(layers, x, classes, bottleneck, (3, 8, 36, 3)),
        "resnet20-cifar": lambda: resnet20_cifar(layers, x, classes),
        "vgg16": lambda: vgg16(layers, x, classes, adaptive=True),
        "vgg16-cifar": lambda: vgg16(layers, x, classes, adaptive=False),
        "mobilenetv1": lambda: mobilenet(layers, x, classes),
    }[name]()
    return keras.Model(x, y)


def main():
    a = measure.arguments(__doc__)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # the comparison is of CPUs
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        import tensorflow as tf
    except ImportError as e:
        measure.show({"error": f"tensorflow cannot be imported: {e}"})
        sys.exit(3)

    tf.config.threading.set_intra_op_parallelism_threads(a.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)  # or it would compute on more threads than --threads says
    tf.random.set_seed(1)
    before = measure.memory("VmRSS")
    channels, height, width = a.input
    try:
        model = build(tf.keras, a.network, (height, width, channels), a.classes)
    except ValueError as e:
        measure.show({"error": str(e)})
        sys.exit(2)
    if a.optimizer == "sgd":
        opt = tf.keras.optimizers.SGD(learning_rate=0.01, momentum=0.9)
    else:
        opt = tf.keras.optimizers.Adam(learning_rate=0.001)
    x = tf.random.normal((a.batch, height, width, channels))
    y = tf.random.uniform((a.batch,), maxval=a.classes, dtype=tf.int32)
    criterion = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    loss = None

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            value = criterion(y, model(x, training=True))
        variables = model.trainable_variables
        opt.apply_gradients(zip(tape.gradient(value, variables), variables))
        return value

    def step():
        nonlocal loss
        loss = train(x, y)

    result = measure.run(a, step, lambda: float(loss))
    result["tensorflow"] = tf.__version__
    result["parameters"] = sum(math.prod(v.shape) for v in model.trainable_variables)
    if a.rss:
        result["rss_before_network_bytes"] = before
    measure.show(result)


if __name__ == "__main__":
    main()
