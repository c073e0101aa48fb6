"""The exchange against the reference, step by step, over level changes and numbers of ranks.

Every rank's mean and residual are compared. A run ends with a step of `none`, which sends whatever is still owed.
REPLAY names the program that runs the exchange.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

import philox
from reference import Nothing, PowerSgd, Qsgd, SignScaled, SignVote, Tensor, TopK, Where

SEED = 20240229
SHAPES = [(40, 30), (6, 5, 3, 3), (3, 200), (200, 2), (1, 700), (33, 31), (17,)]


def gradients_of(steps, ranks):
    """[step, rank, element]: correlated over steps and ranks, with the awkward cases in some tensors."""
    random = np.random.default_rng(7)
    size = sum(int(np.prod(shape)) for shape in SHAPES)
    common = random.standard_normal(size) * np.exp(random.standard_normal(size))
    noise = random.standard_normal((steps, ranks, size))
    all_steps = (common * np.linspace(1, 0.2, steps)[:, None, None] + noise).astype(np.float32)
    parts = dict(enumerate(np.split(all_steps, np.cumsum([int(np.prod(s)) for s in SHAPES])[:-1], axis=2)))
    parts[0][0] = 0  # Nothing on any rank at first: PowerSGD's basis must not die of it.
    if ranks > 1:
        parts[1][2:4, 0] = 0  # Nothing on one rank: it does not vote.
    parts[5][...] = np.round(2 * parts[5]) / 2  # Equal magnitudes, zeros, and -0.
    return np.concatenate([parts[i] for i in range(len(SHAPES))], axis=2).astype(np.float32)


def replay(ranks, settings, steps, gradients):
    """What the exchange makes of it: means and residuals, [step, rank, element]."""
    with tempfile.TemporaryDirectory() as folder:
        names = ("plan.json", "gradients", "means", "residuals")
        plan, given, means, residuals = (str(pathlib.Path(folder) / name) for name in names)
        with open(plan, "w") as file:
            json.dump({"ranks": ranks, "seed": SEED, "codecs": settings, "shapes": SHAPES, "steps": steps}, file)
        gradients.tofile(given)
        command = [os.environ["REPLAY"], plan, given, means, residuals]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return [np.fromfile(path, np.float32).reshape(gradients.shape) for path in (means, residuals)]


class Codecs(unittest.TestCase):
    def compare(self, codecs, order, tolerance):
        """Runs `order`, places in `codecs` (setting and reference), on 1, 2 and 4 ranks. Half of the tensors are one
        place ahead of the others, so that buckets are mixed. The tolerance is relative to what is compressed."""
        settings = [setting for setting, _ in codecs]
        none = settings.index("none")
        order = order + [none]
        steps = [[order[min(step + tensor % 2, len(order) - 1)] for tensor in range(len(SHAPES))]
                 for step in range(len(order))]
        self.assertGreaterEqual(len(steps), 12)
        edges = np.cumsum([int(np.prod(shape)) for shape in SHAPES])[:-1]
        for ranks in (1, 2, 4):
            gradients = gradients_of(len(steps), ranks)
            means, residuals = replay(ranks, settings, steps, gradients)
            parts = zip(SHAPES, *(np.split(all_of, edges, axis=2) for all_of in (gradients, means, residuals)))
            for tensor, (shape, given, mean, residual) in enumerate(parts):
                expected = Tensor(shape)
                for step, levels in enumerate(steps):
                    setting, codec = codecs[levels[tensor]]
                    out = expected.step(codec, given[step], Where(SEED, tensor, step))
                    left = 0 if expected.residual is None else expected.residual
                    for what, got, right in (("mean", mean[step], out), ("residual", residual[step], left)):
                        error = np.linalg.norm(got - right, axis=1).max()
                        self.assertLessEqual(
                            error, tolerance * expected.size,
                            f"{what} of {setting}, {ranks} ranks, step {step}, tensor {shape}: differs most at "
                            f"{np.unravel_index(np.argmax(np.abs(got - right)), got.shape)} (rank, element)")

    def test_topk_to_the_bit(self):
        codecs = [("none", Nothing()), ("topk:keep=0.1", TopK(0.1)), ("topk:keep=0.01", TopK(0.01)),
                  ("topk:keep=0.6", TopK(0.6))]
        self.compare(codecs, [1, 1, 1, 2, 2, 2, 2, 0, 1, 1, 1, 3, 3, 1, 2], 0)

    def test_sign_vote_to_the_bit(self):
        codecs = [("none", Nothing()), ("sign-vote", SignVote()), ("topk:keep=0.1", TopK(0.1))]
        self.compare(codecs, [1, 1, 1, 0, 1, 1, 1, 2, 2, 1, 1, 1], 0)

    def test_sign_scaled(self):
        codecs = [("none", Nothing()), ("sign-scaled", SignScaled()), ("topk:keep=0.1", TopK(0.1))]
        self.compare(codecs, [1, 1, 1, 1, 0, 1, 1, 1, 2, 2, 1, 1, 1], 2e-6)

    def test_qsgd_draw_for_draw(self):
        codecs = [("none", Nothing()), ("qsgd:bits=4", Qsgd(4)), ("qsgd:bits=2,block=100", Qsgd(2, block=100)),
                  ("qsgd:bits=8", Qsgd(8)), ("qsgd:bits=4,norm=l2", Qsgd(4, norm="l2")),
                  ("qsgd:bits=4,coding=elias", Qsgd(4)), ("qsgd:bits=8,share-scale=true", Qsgd(8, shared=True))]
        self.compare(codecs, [1, 1, 2, 2, 0, 3, 3, 4, 4, 5, 5, 6, 6, 1], 1e-6)

    def test_powersgd(self):
        codecs = [("none", Nothing())] + [(f"powersgd:approx-rank={r}", PowerSgd(r)) for r in (1, 2, 3, 4)]
        self.compare(codecs, [4, 4, 4, 4, 1, 1, 1, 2, 2, 0, 2, 2, 2, 4, 4], 1e-4)

    def test_from_one_codec_to_another(self):
        codecs = [("none", Nothing()), ("topk:keep=0.1", TopK(0.1)), ("powersgd:approx-rank=2", PowerSgd(2)),
                  ("sign-scaled", SignScaled()), ("qsgd:bits=8", Qsgd(8))]
        self.compare(codecs, [1, 1, 2, 2, 2, 3, 3, 2, 2, 1, 4, 1, 1, 3, 0, 2], 1e-4)


class Philox(unittest.TestCase):
    # The known answers that Random123 publishes.
    def test_known_answers(self):
        self.assertEqual([hex(word) for word in philox.philox(0, [0], 10)[0]],
                         ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"])
        self.assertEqual([hex(word) for word in philox.philox(0, [0], 7)[0]],
                         ["0x5f6fb709", "0xd893f64", "0x4f121f81", "0x4f730a48"])


if __name__ == "__main__":
    unittest.main()
