"""Checkpoints: a run that was stopped, killed or damaged goes on as if it had not been."""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

from program import PROGRAM, ProgramTest, environment, forget_after, free_port, last_checkpoint, weights
from train_test import without_times

# A run of 3 epochs with 6 steps each, in about a second.
RUN = ["--model", "cnn:width=0.25", "--samples", "600", "--test-samples", "500", "--epochs", "3", "--batch", "50"]


def read_safetensors(path):
    """An independent reader: names to (dtype, shape, bytes)."""
    data = pathlib.Path(path).read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    body = data[8 + length:]
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        assert entry["data_offsets"][0] == end, name
        end = entry["data_offsets"][1]
    assert end == len(body)
    return {name: (e["dtype"], e["shape"], body[slice(*e["data_offsets"])]) for name, e in header.items()}


class ResumeTest(ProgramTest):
    def train(self, name, *arguments, workers=2, **options):
        return self.run_program("train", "--workers", workers, *RUN, *arguments, "--out", name, **options)

    def assert_same_run(self, name, other):
        """Weights, record and traffic, to the last bit."""
        a, b = self.folder / name, self.folder / other
        (_, epochs, summary), (_, other_epochs, other_summary) = self.read_run(a), self.read_run(b)
        self.assertEqual(without_times(epochs), without_times(other_epochs))
        self.assertEqual(summary["status"], other_summary["status"])
        self.assertTrue(weights(a) == weights(b), "the weights differ")

    def kill_after(self, name, epochs, *arguments, workers=2, victim=signal.SIGKILL):
        """Kills a rank of a run when so many epochs are recorded."""
        process = self.start("train", "--workers", workers, *RUN, *arguments, "--out", name)
        self.addCleanup(process.kill)
        record = self.folder / name / "epochs.jsonl"
        while process.poll() is None and not (record.exists() and record.read_text().count("\n") >= epochs):
            time.sleep(0.005)
        ranks = subprocess.run(["pgrep", "-P", str(process.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
        if ranks:
            os.kill(int(ranks[-1]), victim)
        process.communicate(timeout=60)
        return process.returncode


class Checkpoints(ResumeTest):
    def test_a_checkpoint_is_what_its_manifest_says(self):
        self.train("run", "--codec", "topk:keep=0.1", "--checkpoint-every", "1epoch", "--keep", "2", "--quiet")
        folders = sorted(path.name for path in (self.folder / "run/checkpoints").iterdir())
        self.assertEqual(folders, ["step-12", "step-18"])
        folder = last_checkpoint(self.folder / "run")
        manifest = json.loads((folder / "manifest.json").read_text())
        self.assertEqual((manifest["step"], manifest["epoch"], manifest["epoch_step"], manifest["workers"]), (18, 3, 0, 2))
        self.assertEqual([f["name"] for f in manifest["files"]],
                         ["common.safetensors", "rank-0.safetensors", "rank-1.safetensors"])
        for file in manifest["files"]:
            data = (folder / file["name"]).read_bytes()
            self.assertEqual((len(data), hashlib.sha256(data).hexdigest()), (file["bytes"], file["sha256"]))
        common = read_safetensors(folder / "common.safetensors")
        self.assertEqual(common["model/conv1.weight"][:2], ("F32", [8, 1, 3, 3]))
        self.assertEqual(common["optimizer/conv1.weight/momentum_buffer"][:2], ("F32", [8, 1, 3, 3]))
        parts = [read_safetensors(folder / f"rank-{rank}.safetensors") for rank in (0, 1)]
        residual = "state/engine/exchange/hidden.weight/residual"
        self.assertNotEqual(parts[0][residual], parts[1][residual], "each rank has its own")

    def test_every_way_to_say_when(self):
        self.train("steps", "--checkpoint-every", "4steps", "--keep", "9", "--quiet")
        self.assertEqual(sorted(int(p.name[5:]) for p in (self.folder / "steps/checkpoints").iterdir()), [4, 8, 12, 16, 18])
        self.train("never", "--checkpoint-every", "never", "--quiet")
        self.assertEqual(list((self.folder / "never/checkpoints").iterdir()), [])
        _, err = self.run_program("export", "never", "model", status=1)
        self.assertIn("no checkpoint", err)
        _, err = self.train("x", "--checkpoint-every", "4hours", status=2)
        self.assertIn("checkpoint-every=4hours", err)

    def test_the_model_goes_to_python_and_back(self):
        self.train("run", "--quiet")
        out, _ = self.run_program("export", "run", "model.safetensors")
        self.assertIn("8 tensors", out)
        common = read_safetensors(last_checkpoint(self.folder / "run") / "common.safetensors")
        model = read_safetensors(self.folder / "model.safetensors")
        self.assertEqual(model, {name[6:]: value for name, value in common.items() if name.startswith("model/")})
        try:
            from safetensors.numpy import load_file  # The usual library; Debian 12 has no package of it.
        except ImportError:
            pass
        else:
            theirs = {name: ("F32", list(array.shape), array.tobytes()) for name, array in load_file(self.folder / "model.safetensors").items()}
            self.assertEqual(theirs, model)
            print("read by the safetensors library too", file=sys.stderr)
        # Trained on from there, the first loss is lower than that of random weights.
        self.train("more", "--initial", "model.safetensors", "--quiet")
        first = [self.read_run(self.folder / name)[1][0]["train_loss"] for name in ("run", "more")]
        self.assertLess(first[1], 0.95 * first[0])
        _, err = self.train("x", "--initial", "model.safetensors", "--model", "cnn:width=2", status=1)
        self.assertIn("model.safetensors: conv1.weight is F32 [8, 1, 3, 3], expected F32 [64, 1, 3, 3]", err)


class Resuming(ResumeTest):
    def test_stopped_by_a_signal(self):
        self.train("whole", "--codec", "powersgd:approx-rank=2", "--quiet")
        for number in (signal.SIGTERM, signal.SIGINT):
            shutil.rmtree(self.folder / "stopped", ignore_errors=True)
            process = self.start("train", "--workers", 2, *RUN, "--codec", "powersgd:approx-rank=2", "--out", "stopped")
            self.addCleanup(process.kill)
            while not (self.folder / "stopped/epochs.jsonl").exists():
                time.sleep(0.002)
            process.send_signal(number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + number)
            _, err = self.run_program("resume", "stopped")
            self.assertIn("going on from", err)
            self.assert_same_run("stopped", "whole")

    # As if the run had ended right after a checkpoint: in mid-epoch, and at an epoch's end.
    def test_gone_on_with_from_any_checkpoint(self):
        adapting = ["--controller", "accordion", "--interval", "1"]
        for at, arguments in enumerate((
                          ["--codec", "powersgd:approx-rank=2"],
                          ["--codec", "dgc:keep=0.01", "--weight-decay", "0.001"],
                          ["--codec", "qsgd:bits=4", "--optimizer", "adamw", "--lr", "0.001"],
                          [*adapting, "--mild", "topk:keep=0.5", "--strong", "topk:keep=0.01", "--window", "2"],
                          [*adapting, "--batch-mild", "100", "--batch-strong", "200"],
                          ["--codec", "sign-scaled:chunked=true", "--crop-padding", "2", "--flip", "--diagnose", "hessian"],
                          ["--model", "resnet20", "--samples", "48", "--batch", "4", "--test-samples", "50", "--data", "fashion-mnist",
                           "--codec", "topk:keep=0.01"])):
            with self.subTest(arguments=arguments):
                shutil.rmtree(self.folder / "whole", ignore_errors=True)
                self.train("whole", *arguments, "--checkpoint-every", "2steps", "--keep", "99", "--quiet")
                for step in [(4, 6, 10)[at % 3], 8][:1 + (at == 0)]:
                    shutil.rmtree(self.folder / "part", ignore_errors=True)
                    shutil.copytree(self.folder / "whole", self.folder / "part")
                    forget_after(self.folder / "part", step)
                    self.run_program("resume", "part", "--quiet")
                    self.assert_same_run("part", "whole")

    def test_killed_and_gone_on_with_from_the_checkpoint_before(self):
        options = ["--controller", "accordion", "--mild", "powersgd:approx-rank=4", "--strong", "powersgd:approx-rank=1",
                   "--interval", "1", "--checkpoint-every", "4steps", "--quiet"]
        self.train("whole", *options, workers=3)
        for epochs in (0, 1):
            shutil.rmtree(self.folder / "killed", ignore_errors=True)
            if self.kill_after("killed", epochs, *options, workers=3) == 0:
                continue
            self.run_program("resume", "killed", "--quiet")
            self.assert_same_run("killed", "whole")

    def test_damaged_checkpoints_give_way_to_those_before(self):
        options = ["--codec", "topk:keep=0.05", "--checkpoint-every", "2steps", "--keep", "9", "--quiet"]
        self.train("whole", *options)
        self.train("run", *options)
        (self.folder / "run/summary.json").unlink()
        checkpoints = self.folder / "run/checkpoints"
        for step, name in ((18, "manifest.json"), (16, "rank-1.safetensors"), (14, "common.safetensors")):
            path = checkpoints / f"step-{step}" / name
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
        _, err = self.run_program("resume", "run")
        self.assertIn("step-16: cannot be read by rank 1", err)
        self.assertIn("going on from", err)
        self.assertIn("step-12: epoch 3\n", err)
        self.assert_same_run("run", "whole")

    def test_a_worker_that_is_killed_is_started_again(self):
        options = ["--codec", "powersgd:approx-rank=1", "--checkpoint-every", "2steps", "--quiet"]
        self.train("whole", *options)
        self.assertEqual(self.kill_after("killed", 1, *options, "--max-restarts", "2"), 0)
        self.assert_same_run("killed", "whole")

    def test_torchrun_starts_again(self):
        options = ["--codec", "topk:keep=0.1", "--checkpoint-every", "2steps", "--quiet"]
        self.train("whole", *options)
        script = self.folder / "once.sh"  # The first time, one of the ranks dies in mid-run.
        script.write_text('#!/bin/sh\nif [ "$TORCHELASTIC_RESTART_COUNT$RANK" = 01 ]; then "$@" & pid=$!\n'
                          'while [ ! -d run/checkpoints/step-8 ]; do sleep 0.01; done; kill -9 $pid; exit 1; fi\nexec "$@"\n')
        script.chmod(0o755)
        process = subprocess.run(
            [sys.executable, str(pathlib.Path(__file__).resolve().with_name("torchrun.py")), "-r", "1", "-t", "1", "--no_python",
             "--nproc_per_node", "2", "--max_restarts", "2", "--master_port", str(free_port()), str(script), PROGRAM, "train",
             *RUN, *options, "--threads", "1", "--out", "run"],
            cwd=self.folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertEqual(process.returncode, 0, process.stdout)
        self.assert_same_run("run", "whole")

    def test_compare_goes_on_with_a_run_that_was_cut_short(self):
        recipe = self.folder / "two.toml"
        recipe.write_text('model = "cnn:width=0.25"\nsamples = 600\ntest-samples = 500\nepochs = 30\nbatch = 50\nworkers = 2\nseeds = "1"\n'
                          'checkpoint-every = "1epoch"\n[plain]\ncodec = "none"\n')
        process = self.start("compare", "--recipe", recipe, "--out", "both")
        self.addCleanup(process.kill)
        record = self.folder / "both/plain/seed-1/epochs.jsonl"
        while not (record.exists() and record.read_text().count("\n") >= 3):
            time.sleep(0.01)
        _, err = self.run_program("compare", "--recipe", recipe, "--out", "both", status=2)
        self.assertIn("both: another process is writing there", err)
        _, err = self.train("both/plain/seed-1", "--overwrite", status=2)
        self.assertIn("both/plain/seed-1: another process is writing there", err)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        before = record.read_text().splitlines()
        out, err = self.run_program("compare", "--recipe", recipe, "--out", "both")
        self.assertEqual(record.read_text().splitlines()[:len(before)], before, "no epoch was trained again")
        self.assertEqual(len(record.read_text().splitlines()), 30)


class OtherWorkers(ResumeTest):
    def test_residuals_are_handed_on_and_the_global_batch_stays(self):
        for now in (1, 4):
            with self.subTest(workers=now):
                shutil.rmtree(self.folder / "run", ignore_errors=True)
                self.kill_after("run", 1, "--codec", "topk:keep=0.2", "--lr", "0.02", "--checkpoint-every", "2steps", "--quiet")
                if (self.folder / "run/summary.json").exists():
                    (self.folder / "run/summary.json").unlink()
                _, err = self.run_program("resume", "run", "--workers", now)
                self.assertIn(f"with {now} workers instead of 2", err)
                config, epochs, summary = self.read_run(self.folder / "run")
                self.assertEqual((config["workers"], config["options"]["batch"]), (now, 100 // now))
                self.assertEqual([e["global_batch"] for e in epochs], [100] * 3)
                self.assertEqual([e["steps"] for e in epochs], [6] * 3)
                self.assertLess(epochs[2]["train_loss"], epochs[0]["train_loss"])

    def test_a_number_that_does_not_divide_the_batch(self):
        self.train("run", "--quiet")
        (self.folder / "run/summary.json").unlink()
        _, err = self.run_program("resume", "run", "--workers", 3, status=2)
        self.assertIn("100 samples at a time", err)


class Mistakes(ResumeTest):
    def test_what_cannot_be_gone_on_with(self):
        _, err = self.run_program("resume", "nothing", status=2)
        self.assertIn("nothing is not a folder", err)
        self.train("run", "--quiet")
        _, err = self.run_program("resume", "run")
        self.assertIn("has finished", err)
        _, err = self.train("run", "--resume", "--lr", "0.2", status=2)
        self.assertIn("holds another run to go on with: lr was 0.1 and is 0.2", err)
        _, err = self.run_program("train", "--resume", status=2)
        self.assertIn("resume without out", err)

    def test_a_full_disk_costs_a_checkpoint_and_no_run(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", disk], capture_output=True).returncode != 0:
            self.skipTest("no small file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        self.train("whole", "--model", "cnn", "--quiet")
        # Room for the record and one checkpoint of about 1.8 MB, and not for a second one beside it.
        _, err = self.train("disk/run", "--model", "cnn", "--checkpoint-every", "6steps", "--keep", "1")
        self.assertIn("warning: no checkpoint was written", err)
        self.assertIn("No space left on device", err)
        _, epochs, summary = self.read_run(disk / "run")
        self.assertEqual(summary["status"], "finished")
        self.assertEqual(without_times(epochs), without_times(self.read_run(self.folder / "whole")[1]))
        self.run_program("export", "disk/run", "model.safetensors")


class Waiting(ResumeTest):
    def test_the_record_says_whom_the_others_waited_for(self):
        process = self.start("train", "--workers", 3, "--samples", 600, "--test-samples", 100, "--epochs", 6, "--batch", 50,
                             "--threads", 1, "--out", "run", "--quiet")
        self.addCleanup(process.kill)
        while not (self.folder / "run/epochs.jsonl").exists():
            time.sleep(0.005)
        ranks = {}
        for pid in subprocess.run(["pgrep", "-P", str(process.pid)], stdout=subprocess.PIPE, text=True).stdout.split():
            variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            ranks[int(next(v for v in variables if v.startswith(b"RANK="))[5:])] = int(pid)
        while process.poll() is None:  # Rank 1 is slow: it gets a fifth of its time.
            for number, seconds in ((signal.SIGSTOP, 0.04), (signal.SIGCONT, 0.01)):
                try:
                    os.kill(ranks[1], number)
                except ProcessLookupError:
                    break
                time.sleep(seconds)
        process.communicate(timeout=60)
        _, epochs, _ = self.read_run(self.folder / "run")
        waited = [epoch for epoch in epochs if epoch["waited_for_rank"] == 1]
        self.assertGreaterEqual(len(waited), 5, epochs)
        for epoch in waited:
            self.assertGreater(epoch["waited_seconds"], 0.02)
            self.assertLess(epoch["waited_seconds"], epoch["seconds"])


if __name__ == "__main__":
    unittest.main()
