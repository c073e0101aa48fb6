"""Runs the program as a user would."""

import atexit
import functools
import gzip
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

PROGRAM = os.environ.get("ACCORDION", str(pathlib.Path(__file__).resolve().parent.parent / "build" / "accordion"))
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMPI_", "PMI_", "SLURM_", "TORCHELASTIC_")

# A run of a second or two: enough for every part of training to happen.
QUICK = ["--samples", "600", "--test-samples", "1000", "--epochs", "2", "--batch", "50"]


@functools.cache
def data_folder():
    """Where Fashion-MNIST lies unpacked: to unpack it takes every rank as long as the rest of a short run."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="accordion-data-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    unpacked = folder / "fashion-mnist"
    unpacked.mkdir()
    for packed in pathlib.Path("/usr/share/datasets/fashion-mnist").glob("*.gz"):
        (unpacked / packed.name).write_bytes(gzip.compress(gzip.decompress(packed.read_bytes()), compresslevel=0))
    return folder


def environment(**added):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
    return {"ACCORDION_DATA": str(data_folder())} | clean | {k: str(v) for k, v in added.items()}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def last_checkpoint(run):
    return max((pathlib.Path(run) / "checkpoints").glob("step-*"), key=lambda path: int(path.name[5:]))


def weights(run):
    """The bytes of a run's parameters and its optimizer's state."""
    return (last_checkpoint(run) / "common.safetensors").read_bytes()


def forget_after(run, step):
    """As if the run had been killed right after its checkpoint of that step."""
    (run / "summary.json").unlink()
    for path in (run / "checkpoints").iterdir():
        if int(path.name[5:]) > step:
            shutil.rmtree(path)


def read_run(folder):
    folder = pathlib.Path(folder)
    epochs = [json.loads(line) for line in (folder / "epochs.jsonl").read_text().splitlines()]
    return json.loads((folder / "config.json").read_text()), epochs, json.loads((folder / "summary.json").read_text())


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="accordion-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, *arguments, env=None, **options):
        return subprocess.Popen(
            [PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder, env=env or environment(), **options)

    def run_program(self, *arguments, status=0, timeout=120, env=None, **options):
        process = self.start(*arguments, env=env, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
        self.assertEqual(process.returncode, status, f"{arguments}\n{out}\n{err}")
        return out, err

    def read_run(self, folder):
        return read_run(folder)
