"""The networks of the benchmark in plain torch.nn, parameter names and layouts as torchvision has them.

build(name, (channels, height, width), classes) makes one of NETWORKS.
"""

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F


class LeNet5(nn.Module):
    """LeNet-5 with ReLU and max pooling, padded (LeCun 1998)."""

    def __init__(self, shape, classes):
        super().__init__()
        channels, height, width = shape
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        features = 16 * ((height // 2 - 4) // 2) * ((width // 2 - 4) // 2)  # 400 at 28x28
        self.fc1 = nn.Linear(features, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x), inplace=True), 2)
        x = F.max_pool2d(F.relu(self.conv2(x), inplace=True), 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x), inplace=True)
        x = F.relu(self.fc2(x), inplace=True)
        return self.fc3(x)


def conv(inputs, outputs, kernel, stride=1):
    """A convolution that keeps the size (at stride 1) and leaves the bias to the batch norm behind it."""
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def projection(inputs, outputs, stride):
    return nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, planes, stride, shortcut=projection):
        super().__init__()
        self.conv1 = conv(inputs, planes, 3, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = conv(planes, planes, 3)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = shortcut(inputs, planes, stride) if stride != 1 or inputs != planes else None

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return F.relu(out, inplace=True)


class Bottleneck(nn.Module):
    """torchvision's bottleneck: the stride is in the 3x3 convolution ("v1.5"), not in the first 1x1 as in the paper."""

    expansion = 4

    def __init__(self, inputs, planes, stride):
        super().__init__()
        outputs = planes * self.expansion
        self.conv1 = conv(inputs, planes, 1)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = conv(planes, planes, 3, stride)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = conv(planes, outputs, 1)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = projection(inputs, outputs, stride) if stride != 1 or inputs != outputs else None

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = F.relu(self.bn2(self.conv2(out)), inplace=True)
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return F.relu(out, inplace=True)


def stage(block, inputs, planes, count, stride):
    """One stage of a ResNet, and the channels it ends with."""
    blocks = []
    for i in range(count):
        blocks.append(block(inputs, planes, stride if i == 0 else 1))
        inputs = planes * block.expansion
    return nn.Sequential(*blocks), inputs


class ResNet(nn.Module):
    """torchvision's ResNet (He 2015)."""

    def __init__(self, block, counts, shape, classes):
        super().__init__()
        self.conv1 = conv(shape[0], 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        width = 64
        self.layer1, width = stage(block, width, 64, counts[0], 1)
        self.layer2, width = stage(block, width, 128, counts[1], 2)
        self.layer3, width = stage(block, width, 256, counts[2], 2)
        self.layer4, width = stage(block, width, 512, counts[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        x = self.maxpool(F.relu(self.bn1(self.conv1(x)), inplace=True))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class OptionA(nn.Module):
    """The shortcut without parameters: every stride-th pixel, channels padded with zeros on both sides."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.stride = stride
        self.before = (outputs - inputs) // 2
        self.behind = outputs - inputs - self.before

    def forward(self, x):
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.before, self.behind))


class OptionABlock(BasicBlock):
    def __init__(self, inputs, planes, stride):
        super().__init__(inputs, planes, stride, OptionA)


class ResNetCIFAR(nn.Module):
    """ResNet of 6n+2 layers for CIFAR, shortcuts of option A (He 2015, 4.2)."""

    def __init__(self, n, shape, classes):
        super().__init__()
        self.conv1 = conv(shape[0], 16, 3)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1, _ = stage(OptionABlock, 16, 16, n, 1)
        self.layer2, _ = stage(OptionABlock, 16, 32, n, 2)
        self.layer3, _ = stage(OptionABlock, 32, 64, n, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class VGG16(nn.Module):
    """VGG-16 (Simonyan 2014, torchvision). Without adaptive, the head sits on the flattened features: 512 at 32x32."""

    def __init__(self, shape, classes, adaptive):
        super().__init__()
        layers, (inputs, height, width) = [], shape
        for planes in (64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"):
            if planes == "M":
                layers.append(nn.MaxPool2d(2))
                height, width = height // 2, width // 2
            else:
                layers += [nn.Conv2d(inputs, planes, 3, padding=1), nn.ReLU(inplace=True)]
                inputs = planes
        if adaptive:
            height, width = 7, 7
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7) if adaptive else nn.Identity()
        self.classifier = nn.Sequential(
            nn.Linear(512 * height * width, 4096), nn.ReLU(inplace=True), nn.Dropout(0.5),
            nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(0.5),
            nn.Linear(4096, classes),
        )

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def keras_batch_norm(channels):
    """Keras' momentum 0.99 is the part of the old value, PyTorch's that of the new one."""
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


def strided(layer, stride):
    """What Keras does before a 3x3 convolution of stride 2: zeros below and on the right only."""
    if stride == 1:
        layer.padding = (1, 1)
        return [layer]
    return [nn.ZeroPad2d((0, 1, 0, 1)), layer]


class MobileNetV1(nn.Module):
    """MobileNet of width 1 (Howard 2017, Keras Applications)."""

    def __init__(self, shape, classes):
        super().__init__()
        inputs = 32
        layers = strided(nn.Conv2d(shape[0], inputs, 3, 2, bias=False), 2) + [keras_batch_norm(inputs), nn.ReLU6(inplace=True)]
        blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
        for planes, stride in blocks:
            layers += strided(nn.Conv2d(inputs, inputs, 3, stride, groups=inputs, bias=False), stride)
            layers += [keras_batch_norm(inputs), nn.ReLU6(inplace=True)]
            layers += [nn.Conv2d(inputs, planes, 1, bias=False), keras_batch_norm(planes), nn.ReLU6(inplace=True)]
            inputs = planes
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(1e-3)
        self.conv_preds = nn.Conv2d(inputs, classes, 1)  # Keras' dense layer is this convolution

    def forward(self, x):
        return torch.flatten(self.conv_preds(self.dropout(self.avgpool(self.features(x)))), 1)


class UnscaledConv(nn.Sequential):
    """Keras Applications' conv2d_bn: no bias, batch norm without scale, ReLU. Stride 1 keeps the size unless valid."""

    def __init__(self, inputs, outputs, kernel, stride=1, valid=False):
        kernel = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        padding = (0, 0) if valid else (kernel[0] // 2, kernel[1] // 2)
        norm = keras_batch_norm(outputs)
        norm.register_parameter("weight", None)
        super().__init__(OrderedDict(
            conv=nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False), bn=norm, relu=nn.ReLU(inplace=True)))


def chain(inputs, *convs):
    """Convolutions one behind the other: (outputs, kernel[, stride, valid])."""
    layers = []
    for outputs, *rest in convs:
        layers.append(UnscaledConv(inputs, outputs, *rest))
        inputs = outputs
    return nn.Sequential(*layers)


class Branches(nn.Module):
    """Runs every branch on the same input and puts their channels together."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def pooled(inputs, outputs):
    return nn.Sequential(nn.AvgPool2d(3, 1, 1, count_include_pad=False), UnscaledConv(inputs, outputs, 1))


def inception_a(inputs, pool):
    return Branches(chain(inputs, (64, 1)), chain(inputs, (48, 1), (64, 5)),
                    chain(inputs, (64, 1), (96, 3), (96, 3)), pooled(inputs, pool))


def inception_b(inputs, mid):
    row, column = (1, 7), (7, 1)
    return Branches(chain(inputs, (192, 1)), chain(inputs, (mid, 1), (mid, row), (192, column)),
                    chain(inputs, (mid, 1), (mid, column), (mid, row), (mid, column), (192, row)), pooled(inputs, 192))


def inception_c(inputs):
    def fork():
        return Branches(UnscaledConv(384, 384, (1, 3)), UnscaledConv(384, 384, (3, 1)))
    return Branches(chain(inputs, (320, 1)), nn.Sequential(chain(inputs, (384, 1)), fork()),
                    nn.Sequential(chain(inputs, (448, 1), (384, 3)), fork()), pooled(inputs, 192))


class InceptionV3(nn.Module):
    """Inception v3 (Szegedy 2015) as Keras Applications has it: no auxiliary head, from 75x75 on."""

    def __init__(self, shape, classes):
        super().__init__()
        if min(shape[1:]) < 75:
            raise ValueError("inceptionv3 needs an input of 75x75 at least")
        self.stem = nn.Sequential(
            chain(shape[0], (32, 3, 2, True), (32, 3, 1, True), (64, 3)), nn.MaxPool2d(3, 2),
            chain(64, (80, 1, 1, True), (192, 3, 1, True)), nn.MaxPool2d(3, 2))
        self.mixed = nn.Sequential(
            inception_a(192, 32), inception_a(256, 64), inception_a(288, 64),
            Branches(chain(288, (384, 3, 2, True)), chain(288, (64, 1), (96, 3), (96, 3, 2, True)), nn.MaxPool2d(3, 2)),
            inception_b(768, 128), inception_b(768, 160), inception_b(768, 160), inception_b(768, 192),
            Branches(chain(768, (192, 1), (320, 3, 2, True)),
                     chain(768, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2, True)), nn.MaxPool2d(3, 2)),
            inception_c(1280), inception_c(2048))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.predictions = nn.Linear(2048, classes)

    def forward(self, x):
        return self.predictions(torch.flatten(self.avgpool(self.mixed(self.stem(x))), 1))


NETWORKS = {
    "lenet5": LeNet5,
    "resnet18": lambda shape, classes: ResNet(BasicBlock, (2, 2, 2, 2), shape, classes),
    "resnet50": lambda shape, classes: ResNet(Bottleneck, (3, 4, 6, 3), shape, classes),
    "resnet152": lambda shape, classes: ResNet(Bottleneck, (3, 8, 36, 3), shape, classes),
    "resnet20-cifar": lambda shape, classes: ResNetCIFAR(3, shape, classes),
    "vgg16": lambda shape, classes: VGG16(shape, classes, adaptive=True),
    "vgg16-cifar": lambda shape, classes: VGG16(shape, classes, adaptive=False),
    "mobilenetv1": MobileNetV1,
    "inceptionv3": InceptionV3,
}


def build(name, shape, classes):
    model = NETWORKS[name](shape, classes)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            # PyTorch's default shrinks the signal layer by layer: VGG would train on numbers next to zero.
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model
