"""Who held the memory? A loop that looks like the training of a model is recorded, and drawn as a flame graph of its peak."""

import os
import sys
import tempfile

import zeusm.memory as zm
from zeusm.__main__ import main as zeusm

LAYERS, STEPS = 6, 3


class Layer:
    def __init__(self, number):
        self.size = 200_000 + 90_000 * number
        self.weights = zm.MemoryUSMDevice(self.size)
        self.kept = []

    def forward(self):
        self.kept.append(self.activations())

    def activations(self):
        return zm.MemoryUSMDevice(3 * self.size)

    def backward(self):
        gradients = zm.MemoryUSMDevice(self.size)
        self.kept.pop()
        return gradients


def load_batch():
    return zm.MemoryUSMHost(600_000)


def train(layers):
    for _ in range(STEPS):
        batch = load_batch()
        for layer in layers:
            layer.forward()
        gradients = [layer.backward() for layer in reversed(layers)]
        del batch, gradients


def main(path):
    with tempfile.TemporaryDirectory() as folder:
        history = os.path.join(folder, "history.json")
        with zm.record_history() as recording:
            train([Layer(number) for number in range(LAYERS)])
        recording.save(history)
        return zeusm(
            ["memory", "export", history, "--to", "flamegraph", "--at", "peak", "-o", path]
        )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
