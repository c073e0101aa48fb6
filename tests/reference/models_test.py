"""The zoo against networks.py: the same weights and inputs give the same scores, in evaluation
and in training, dropout included, and leave the same statistics. FORWARD names the program that runs the zoo's.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import torch

import networks

IMAGES = 6


def floats(tensors):
    parts = [t.detach().numpy().ravel() for t in tensors if t.is_floating_point()]
    return np.concatenate([np.empty(0), *parts]).astype(np.float32)


def zoo_forward(name, shape, weights, inputs):
    """What the zoo's model makes of it: a flat array, as forward.cpp describes it."""
    with tempfile.TemporaryDirectory() as folder:
        given, seen, result = (str(pathlib.Path(folder) / part) for part in ("weights", "inputs", "result"))
        weights.tofile(given)
        inputs.numpy().astype(np.float32).tofile(seen)
        command = [os.environ["FORWARD"], name, shape, given, seen, result]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return np.fromfile(result, np.float32)


class Models(unittest.TestCase):
    def compare(self, name, classes, model=None):
        torch.manual_seed(classes)
        model = networks.randomise(model or getattr(networks, name)(classes))
        evaluated, trained = self.compare_scores(name, f"images:{classes}", model, torch.randn(IMAGES, 3, 32, 32))
        self.assertGreater(np.abs(evaluated - trained).max(), 0.01 * np.abs(evaluated).max())

    def compare_scores(self, name, shape, model, inputs):
        zoo = zoo_forward(name, shape, floats([*model.parameters(), *model.buffers()]), inputs)
        with torch.no_grad():
            evaluated = floats([model.eval()(inputs)])
            torch.manual_seed(1)
            trained = floats([model.train()(inputs)])
        expected = [evaluated, trained, floats(model.buffers())]
        self.assertEqual(zoo.size, sum(part.size for part in expected))
        parts = np.split(zoo, np.cumsum([part.size for part in expected])[:-1])
        for what, ours, theirs in zip(("evaluation", "training", "statistics"), parts, expected):
            if theirs.size == 0:
                continue
            error = np.abs(ours - theirs).max() / np.abs(theirs).max()
            self.assertLess(error, 1e-4, f"{name} on {shape} in {what}")
            self.assertGreater(np.std(theirs), 1e-3)
        return evaluated, trained

    def test_resnet18(self):
        self.compare("resnet18", 10)
        self.compare("resnet18", 100)

    def test_vgg19bn(self):
        self.compare("vgg19bn", 10)
        self.compare("vgg19bn", 100)

    def test_senet(self):
        self.compare("senet", 10)
        self.compare("senet", 100)
        self.compare("seresnet18", 10)

    def test_wideresnet(self):
        self.compare("wideresnet:width=0.2", 10, networks.wideresnet(10, k=2))

    def test_densenet(self):
        self.compare("densenet", 10)

    def test_googlenet(self):
        self.compare("googlenet", 10)

    # Training goes on with the state that evaluation has left.
    def test_lstm(self):
        for layers in (1, 3):
            torch.manual_seed(layers)
            model = networks.randomise_all(networks.Lstm(50, layers, 12, 0.4))
            tokens = torch.randint(50, (4, 9))
            _, trained = self.compare_scores(f"lstm:layers={layers},hidden=12", "text:50:9", model, tokens)
            with torch.no_grad():
                model.eval().state = None
                evaluated, again = floats([model(tokens)]), floats([model(tokens)])
            self.assertGreater(np.abs(evaluated - again).max(), 0.01 * np.abs(evaluated).max(), "the state matters")
            self.assertGreater(np.abs(trained - again).max(), 0.01 * np.abs(again).max(), "and so does dropout")

    def test_gpt(self):
        torch.manual_seed(2)
        model = networks.randomise_all(networks.Gpt(50, 3, 4, 24, 16, 0.1))
        evaluated, trained = self.compare_scores(
            "gpt:layers=3,heads=4,width=24,context=16", "text:50:11", model, torch.randint(50, (4, 11)))
        self.assertGreater(np.abs(evaluated - trained).max(), 0.01 * np.abs(evaluated).max())

    def test_dlrm(self):
        torch.manual_seed(3)
        sizes = (20, 7, 3, 11)
        model = networks.randomise_all(networks.Dlrm(5, sizes, 6, 16, 12))
        rows = torch.cat([torch.randn(32, 5), *(torch.randint(size, (32, 1)) for size in sizes)], 1)
        self.compare_scores("dlrm:embedding=6,bottom=16,top=12", "tables:5:20:7:3:11", model, rows)


if __name__ == "__main__":
    unittest.main()
