"""examples/pytorch as its users start it, under torchrun."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import torch

from ranks import free_port  # Which also keeps oneDNN to what the machine allows, here and in the processes that are started.

PROJECT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = PROJECT / "examples" / "pytorch" / "fashion_mnist.py"
TORCHRUN = PROJECT / "tests" / "torchrun.py"


class Example(unittest.TestCase):
    def run_example(self, *options):
        """Accuracy in per cent, and megabytes sent."""
        # Debian 12's torchrun crashes without -r 1 -t 1 under Python 3.11; Debian 13's torch has no libuv. As docs/pytorch.md has it.
        own_store = torch.__version__.startswith("1.")
        place = ["--master_port", str(free_port())] if own_store else ["--rdzv_backend", "c10d", "--rdzv_conf", "store_type=file"]
        command = [sys.executable, str(TORCHRUN), "-r", "1", "-t", "1", *place, "--nproc_per_node", "2", str(EXAMPLE), "--epochs", "2",
                   "--samples", "2000", *options]
        without_libuv = {} if own_store else {"USE_LIBUV": "0", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        run = subprocess.run(command, capture_output=True, text=True, timeout=300,
                             env=os.environ | {"GLOO_SOCKET_IFNAME": "lo"} | without_libuv)
        self.assertEqual(run.returncode, 0, run.stderr)
        accuracy, sent = re.search(r"accuracy ([\d.]+) %, ([\d.]+) MB sent by each worker", run.stdout).groups()
        return float(accuracy), float(sent)

    def test_with_and_without_the_hook(self):
        plain, all_of_it = self.run_example()
        with tempfile.TemporaryDirectory() as folder:
            # By default the guard may leave all dense.
            accuracy, sent = self.run_example("--accordion", "--guard", "none", "--record", f"{folder}/run")
            self.assertTrue(pathlib.Path(folder, "run", "summary.json").exists())
        self.assertGreater(plain, 50)
        self.assertGreater(accuracy, 50)
        self.assertLess(sent, 0.2 * all_of_it)


if __name__ == "__main__":
    unittest.main()
