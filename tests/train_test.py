"""Training, its record, and what survives when it ends early."""

import json
import os
import pathlib
import resource
import signal
import time
import unittest

from program import QUICK, ProgramTest, environment, weights


def without_times(epochs):
    timed = ("seconds", "input_wait_seconds", "hidden_share", "step_split", "waited_for_rank", "waited_seconds")
    return [{k: v for k, v in epoch.items() if k not in timed} for epoch in epochs]


class Training(ProgramTest):
    def test_the_record_is_complete_and_exact(self):
        out, err = self.run_program("train", "--workers", 4, *QUICK, "--out", "run")
        config, epochs, summary = self.read_run(self.folder / "run")
        self.assertEqual(config["workers"], 4)
        self.assertEqual(config["options"]["batch"], 50)
        self.assertEqual([e["epoch"] for e in epochs], [0, 1])
        for epoch in epochs:
            self.assertEqual(epoch["steps"], 3)  # 600 samples, 4 x 50 a step
            self.assertEqual(epoch["global_batch"], 200)
            self.assertEqual(epoch["paper_floats"], 3 * 220234)
            self.assertEqual(epoch["payload_bytes"], 4 * 3 * 220234)
            self.assertEqual(epoch["wire_bytes"], 4 * 3 * 220234 * 2 * 3 // 4)
            self.assertEqual([layer["name"] for layer in epoch["layers"]],
                             ["conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                              "hidden.weight", "hidden.bias", "out.weight", "out.bias"])
            self.assertTrue(all(layer["norm"] > 0 and layer["codec"] == "none" for layer in epoch["layers"]))
        self.assertEqual(summary["status"], "finished")
        self.assertEqual(summary["test_accuracy"], epochs[-1]["test_accuracy"])
        self.assertGreater(summary["test_accuracy"], 0.3)  # chance is 0.1
        self.assertLess(epochs[1]["train_loss"], epochs[0]["train_loss"])
        self.assertGreater(len(weights(self.folder / "run")), 2 * 4 * 220234, "parameters and their momentum")
        self.assertIn("Run folder: run", out)
        self.assertEqual(err.count("epoch "), 2, "one plain line an epoch where there is no terminal")

    def test_two_runs_with_one_seed_are_bit_identical_and_another_seed_is_not(self):
        for name, seed in (("a", 3), ("b", 3), ("c", 4)):
            self.run_program("train", "--workers", 3, *QUICK, "--seed", seed, "--crop-padding", 2, "--flip", "--rotate", 10,
                             "--nesterov", "--out", name, "--quiet")
        runs = {name: self.read_run(self.folder / name)[1] for name in "abc"}
        self.assertEqual(without_times(runs["a"]), without_times(runs["b"]))
        self.assertNotEqual(without_times(runs["a"]), without_times(runs["c"]))
        self.assertTrue(weights(self.folder / "a") == weights(self.folder / "b"))

    def test_workers_and_accumulation_do_not_change_what_is_learned(self):
        # The same 600 samples in the same global batches of 120, the last one cut short: only rounding differs.
        losses = {}
        for name, workers, batch, accumulate in (("1", 1, 120, 1), ("2", 2, 60, 1), ("4", 4, 30, 1), ("3", 3, 8, 5)):
            self.run_program("train", "--workers", workers, "--batch", batch, "--accumulate", accumulate, "--samples", 500,
                             "--test-samples", 500, "--epochs", 2, "--out", name, "--quiet")
            losses[name] = [epoch["train_loss"] for epoch in self.read_run(self.folder / name)[1]]
        for name in "234":
            for ours, alone in zip(losses[name], losses["1"]):
                self.assertAlmostEqual(ours, alone, delta=1e-4, msg=name)

    def test_more_workers_than_samples_in_the_last_step(self):
        # 203 samples, 5 x 20 a step: the last step has 3 samples for 5 ranks.
        self.run_program("train", "--workers", 5, "--batch", 20, "--samples", 203, "--test-samples", 100, "--epochs", 1, "--out", "run", "--quiet")
        _, epochs, _ = self.read_run(self.folder / "run")
        self.assertEqual(epochs[0]["steps"], 3)
        self.assertGreater(epochs[0]["train_loss"], 0)

    def test_optimizers_schedules_and_models(self):
        for arguments in (["--optimizer", "adamw", "--lr", "0.001", "--schedule", "cosine", "--warmup-epochs", "0.5"],
                          ["--model", "resnet20", "--samples", "64", "--batch", "16", "--no-decay-batchnorm"]):
            out, _ = self.run_program("train", "--workers", 2, *QUICK, *arguments, "--json")
            self.assertEqual(json.loads(out)["status"], "finished")

    def test_quiet_prints_nothing(self):
        out, err = self.run_program("train", "--workers", 2, *QUICK, "--quiet", "--out", "run")
        self.assertEqual((out, err), ("", ""))


class Endings(ProgramTest):
    def start_long_run(self, workers, *arguments):
        process = self.start("train", "--workers", workers, "--samples", 600, "--test-samples", 500, "--batch", 20, "--epochs", 10000,
                             "--out", "run", *arguments)
        self.addCleanup(process.kill)
        self.wait_for_epochs(2)
        return process

    def wait_for_epochs(self, count):
        record = self.folder / "run" / "epochs.jsonl"
        for _ in range(600):
            if record.exists() and record.read_text().count("\n") >= count:
                return
            time.sleep(0.1)
        self.fail("no epochs recorded")

    def test_signals_end_a_run_cleanly(self):
        for workers, number in ((3, signal.SIGINT), (3, signal.SIGTERM), (1, signal.SIGINT)):
            with self.subTest(workers=workers, signal=number):
                process = self.start_long_run(workers, "--overwrite")
                process.send_signal(number)
                out, err = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 128 + number, err)
                self.assertIn("Interrupted after", out)
                _, epochs, summary = self.read_run(self.folder / "run")
                self.assertEqual(summary["status"], "interrupted")
                self.assertEqual(summary["epochs"], len(epochs))
                (self.folder / "run" / "epochs.jsonl").unlink()

    def test_a_run_is_not_overwritten_by_accident(self):
        self.run_program("train", *QUICK, "--out", "run", "--quiet")
        _, err = self.run_program("train", *QUICK, "--out", "run", "--quiet", status=2)
        self.assertIn("run", err)
        self.assertIn("--overwrite", err)
        self.run_program("train", *QUICK, "--out", "run", "--quiet", "--overwrite")

    def test_a_folder_that_cannot_be_written(self):
        (self.folder / "file").write_text("")
        _, err = self.run_program("train", "--workers", 2, *QUICK, "--out", "file/run", status=1)
        self.assertIn("file/run", err)
        self.assertIn("Not a directory", err)

    def test_a_full_disk_leaves_a_readable_record(self):
        # No file may grow past 3000 bytes: some epochs fit, the next one does not.
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

        _, err = self.run_program("train", *QUICK, "--epochs", 50, "--out", "run", status=1, preexec_fn=limit)
        self.assertIn("run/", err)
        self.assertIn("File too large", err)
        for line in (self.folder / "run" / "epochs.jsonl").read_text().splitlines():
            json.loads(line)

    def test_divergence_is_an_error_that_says_where(self):
        _, err = self.run_program("train", "--workers", 2, *QUICK, "--lr", "1e30", "--out", "run", status=1)
        self.assertIn("the loss is no longer finite at epoch 0", err)
        self.assertEqual(json.loads((self.folder / "run" / "summary.json").read_text())["status"], "failed")

    def test_a_data_file_that_is_short_or_vanishes(self):
        data = self.folder / "mnist"
        data.mkdir()
        source = "/usr/share/datasets/fashion-mnist"
        for name in os.listdir(source):
            os.symlink(f"{source}/{name}", data / name)
        images = data / "train-images-idx3-ubyte.gz"
        images.unlink()
        _, err = self.run_program("train", "--data", "mnist", "--data-dir", data, *QUICK, status=1)
        self.assertIn("train-images-idx3-ubyte", err)
        images.write_bytes(pathlib.Path(source, images.name).read_bytes()[:100000])
        _, err = self.run_program("train", "--data", "mnist", "--data-dir", data, *QUICK, status=1)
        self.assertIn("train-images-idx3-ubyte.gz", err)
        self.assertIn("byte", err)


if __name__ == "__main__":
    unittest.main()
