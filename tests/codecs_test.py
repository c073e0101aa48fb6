"""Every codec trains: two workers, a few epochs, an accuracy that a broken codec misses."""

import json
import unittest

from program import ProgramTest

# A codec that sends nothing of the large layers (threshold:lambda=1e30) stays below this: see `test_the_bar_is_high_enough`.
BAR = 0.7

SETTINGS = {
    "none": [],
    "fp16": [],
    "bf16": [],
    "topk:keep=0.01": [],
    "mstopk:keep=0.01": [],
    "randomk:keep=0.1": ["--lr", "0.02"],
    "dgc:keep=0.01": [],
    "sign-vote": ["--lr", "0.002", "--momentum", "0"],
    "sign-scaled": [],
    "qsgd:bits=4": [],
    "terngrad": [],
    "powersgd:approx-rank=2": [],
    "atomo:budget=4": [],
    "threshold:lambda=0.006": [],
}


class Codecs(ProgramTest):
    def accuracy(self, setting, *arguments):
        out, _ = self.run_program("train", "--model", "cnn:width=0.25", "--workers", 2, "--samples", 6000, "--test-samples", 2000, "--batch", 32,
                                  "--epochs", 3, "--lr", 0.05, "--codec", setting, *arguments, "--json", "--quiet", timeout=300)
        return json.loads(out)

    def test_every_codec_trains(self):
        dense = None
        for setting, arguments in SETTINGS.items():
            with self.subTest(setting):
                result = self.accuracy(setting, *arguments)
                self.assertGreater(result["test_accuracy"], BAR)
                dense = dense or result
                if setting != "none":
                    self.assertLess(result["payload_bytes"], 0.55 * dense["payload_bytes"])

    def test_the_bar_is_high_enough(self):
        self.assertLess(self.accuracy("threshold:lambda=1e30")["test_accuracy"], BAR - 0.01)


if __name__ == "__main__":
    unittest.main()
