"""The zoo against networks.py: the same weights and images give the same scores, in evaluation
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
    return np.concatenate([t.detach().numpy().ravel() for t in tensors if t.is_floating_point()]).astype(np.float32)


def zoo_forward(name, classes, weights, images):
    """What the zoo's model makes of it: a flat array, as forward.cpp describes it."""
    with tempfile.TemporaryDirectory() as folder:
        given, seen, result = (str(pathlib.Path(folder) / part) for part in ("weights", "images", "result"))
        weights.tofile(given)
        images.numpy().tofile(seen)
        command = [os.environ["FORWARD"], name, str(classes), given, seen, result]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return np.fromfile(result, np.float32)


class Models(unittest.TestCase):
    def compare(self, name, classes, model=None):
        torch.manual_seed(classes)
        model = networks.randomise(model or getattr(networks, name)(classes))
        images = torch.randn(IMAGES, 3, 32, 32)
        zoo = zoo_forward(name, classes, floats([*model.parameters(), *model.buffers()]), images)
        with torch.no_grad():
            evaluated = floats([model.eval()(images)])
            torch.manual_seed(1)
            trained = floats([model.train()(images)])
        expected = [evaluated, trained, floats(model.buffers())]
        self.assertEqual(zoo.size, sum(part.size for part in expected))
        parts = np.split(zoo, np.cumsum([part.size for part in expected])[:-1])
        for what, ours, theirs in zip(("evaluation", "training", "statistics"), parts, expected):
            error = np.abs(ours - theirs).max() / np.abs(theirs).max()
            self.assertLess(error, 1e-4, f"{name} with {classes} classes in {what}")
            self.assertGreater(np.std(theirs), 1e-3)
        self.assertGreater(np.abs(evaluated - trained).max(), 0.01 * np.abs(evaluated).max())

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


if __name__ == "__main__":
    unittest.main()
