"""Every controller in a run: what it decides is recorded, follows from the record, and can be repeated."""

import json
import unittest

from program import ProgramTest

SMALL = ["--model", "cnn:width=0.5", "--workers", 2, "--samples", 768, "--test-samples", 500, "--batch", 32, "--quiet"]
RANKS = ["--mild", "powersgd:approx-rank=4", "--strong", "powersgd:approx-rank=1"]


class Control(ProgramTest):
    def train(self, out, *arguments):
        text, _ = self.run_program("train", *SMALL, "--out", out, "--json", *arguments)
        return json.loads(text)

    def epochs(self, out):
        return self.read_run(self.folder / out)[1]

    # Levels, codecs and reasons of a run, of every window.
    def recorded(self, out):
        epochs = self.epochs(out)
        windows = [window for epoch in epochs for window in epoch.get("windows", [])]
        return [{layer["name"]: layer for layer in window["layers"]} for window in windows or epochs]

    # Decides over the record with the options of the run.
    def check_decided(self, out):
        recorded = self.recorded(out)
        rows = json.loads(self.run_program("decide", out, "--json")[0])
        compressed = 0
        for row in rows:
            layer = recorded[row["epoch"]][row["layer"]]
            self.assertEqual(row["level"], layer["level"])
            compressed += layer["codec"] != "none"
            self.assertEqual((row["codec"], row["reason"]), (layer["codec"], layer["reason"]))
        self.assertEqual(len(rows), len(recorded) * len(recorded[0]))
        return compressed

    def test_every_controller_decides_as_its_record(self):
        for name, arguments in {
                "accordion": [*RANKS, "--schedule", "step", "--milestones", 2],
                "aggregated": [*RANKS, "--norms", "aggregated"],
                "adaqs": ["--mild", "powersgd:approx-rank=4", "--strong", "powersgd:approx-rank=1", "--threshold", 0.97],
                "lgreco": ["--mild", "topk:keep=0.16", "--strong", "topk:keep=0.01"],
                "auto": ["--codec", "powersgd", "--tolerance", 0.6],
                "rethink": ["--density", 0.01]}.items():
            with self.subTest(name):
                controller = "accordion" if name == "aggregated" else name
                summary = self.train(name, "--epochs", 3, "--interval", 1, "--controller", controller, *arguments)
                self.assertGreater(self.check_decided(name), 0)
                if name == "rethink":
                    self.assertGreater(summary["density"], 0.0002)
                    self.assertLess(summary["density"], 0.5)
        self.assertEqual({layer["level"] for layer in self.recorded("accordion")[2].values()}, {0}, "the rate has just fallen")
        # L-GreCo sends no more than its uniform level would, at no more than its error.
        last = self.recorded("lgreco")[1]
        tried = [layer for layer in last.values() if "level_bytes" in layer]
        self.assertTrue(tried)
        chosen = self.recorded("lgreco")[2]
        middle = len(tried[0]["level_bytes"]) // 2
        for key, slack in (("level_bytes", 1), ("level_errors", 1 + len(tried) / 10000)):
            sent = sum(layer[key][chosen[layer["name"]]["level"]] for layer in tried)
            self.assertLessEqual(sent, slack * sum(layer[key][middle] for layer in tried))

    def test_windows_of_steps(self):
        first = self.train("windows", "--epochs", 2, "--controller", "accordion", *RANKS, "--window", 5, "--interval", 1)
        epochs = self.epochs("windows")  # 12 steps each
        self.assertEqual([[(w["window"], w["steps"]) for w in e["windows"]] for e in epochs],
                         [[(0, 5), (1, 5)], [(2, 5), (3, 5), (4, 4)]])
        levels = {layer["level"] for window in self.recorded("windows") for layer in window.values()}
        self.assertEqual(levels, {0, 1}, "a norm that stands still ends the critical regime")
        self.assertIn("since window", json.dumps(epochs))
        self.check_decided("windows")
        again = self.train("again", "--epochs", 2, "--replay", "windows")
        self.assertEqual((first["test_loss"], first["wire_bytes"]), (again["test_loss"], again["wire_bytes"]))

    def test_batch_size(self):
        for controller, levels in (("accordion", []), ("joint", RANKS)):
            with self.subTest(controller):
                out = controller + "-batch"
                self.train(out, "--epochs", 4, "--controller", controller, "--batch-mild", 64, "--batch-strong", 256,
                           "--interval", 1, "--threshold", 100, "--lr", 0.01, *levels)
                epochs = self.epochs(out)
                self.assertEqual([e["global_batch"] for e in epochs], [64, 64, 256, 256])
                self.assertEqual([e["steps"] for e in epochs], [12, 12, 3, 3])
                for e in epochs:
                    self.assertAlmostEqual(e["lr"], e["schedule_lr"] * e["global_batch"] / 64)
                    self.assertTrue(e["batch_reason"])

    # One collective per optimizer step: twice the batch, half the data.
    def test_a_larger_batch_sends_less(self):
        self.train("grown", "--epochs", 2, "--controller", "smith", "--batch-mild", 64, "--batch-strong", 256, "--schedule", "step",
                   "--milestones", 1, "--decay", 2, "--lr", 0.01)
        first, second = self.epochs("grown")
        self.assertEqual((first["global_batch"], second["global_batch"]), (64, 128))
        self.assertEqual(first["payload_bytes"], 2 * second["payload_bytes"])

    # Bit for bit the run that it replays, levels and batch sizes included.
    def test_replay(self):
        run = ["--epochs", 4, "--lr", 0.02]
        control = ["--controller", "joint", *RANKS, "--batch-mild", 64, "--batch-strong", 128, "--interval", 1, "--threshold", 0.9]
        first = self.train("first", *run, *control)
        again = self.train("again", *run, "--replay", "first")
        for key in ("test_loss", "train_loss", "payload_bytes", "wire_bytes", "steps"):
            self.assertEqual(first[key], again[key], key)
        levels = [{name: layer["level"] for name, layer in epoch.items()} for epoch in self.recorded("first")]
        self.assertEqual(levels, [{name: layer["level"] for name, layer in epoch.items()} for epoch in self.recorded("again")])
        self.assertIn("replayed: ", json.dumps(self.recorded("again")))
        longer = self.train("longer", "--epochs", 5, "--lr", 0.02, "--replay", "first")
        self.assertEqual(longer["epochs"], 5, "the last decision holds")

    # What a controller watches costs nothing that training could notice.
    def test_watching_changes_nothing(self):
        plain = self.train("plain", "--epochs", 2, "--codec", "powersgd:approx-rank=2")
        watched = self.train("watched", "--epochs", 2, "--controller", "lgreco", "--levels",
                             "powersgd:approx-rank=2;powersgd:approx-rank=2")
        self.assertEqual(plain["test_loss"], watched["test_loss"])

    # A diagnostic: training does not notice it.
    def test_hessian(self):
        run = ["--epochs", 3, "--interval", 1, "--lr", 0.01]
        plain, diagnosed = self.train("plain", *run), self.train("diagnosed", *run, "--diagnose", "hessian")
        self.assertEqual(plain["test_loss"], diagnosed["test_loss"])
        self.assertEqual(diagnosed["detectors"]["comparisons"], 2)
        self.assertEqual(len(diagnosed["detectors"]["points"]), 3)
        for epoch in self.epochs("diagnosed"):
            self.assertGreater(epoch["hessian_eigenvalue"], 0)

    def test_mistakes_are_named(self):
        self.train("short", "--epochs", 1)
        for arguments, expected in (
                (["train", "--controller", "accordion", "--batch-mild", 96, "--batch-strong", 192, "--workers", 2, "--batch", 32],
                 "batch-mild=96, expected a multiple of batch x workers, 32 x 2 = 64"),
                (["train", "--controller", "smith"], "expects batch-mild and batch-strong"),
                (["train", "--controller", "adaqs", "--mild", "none", "--strong", "topk"], "expected levels=A;B;C"),
                (["train", "--replay", "nowhere"], "nowhere"),
                (["train", "--replay", "short", "--controller", "accordion", *RANKS], "expected none beside it"),
                (["train", "--replay", "short", *SMALL, "--model", "resnet20"], "as in this run's model"),
                (["train", "--replay", "short", "--out", "short", "--overwrite", *SMALL], "expected another folder"),
                (["decide", "short", "--controller", "lgreco", "--levels", "none;topk"], "needs more than norms"),
                (["decide", "short", "--controller", "adaqs", "--levels", "none;topk"], "needs more than norms")):
            with self.subTest(expected):
                _, err = self.run_program(*arguments, status=2)
                self.assertIn(expected, err)


if __name__ == "__main__":
    unittest.main()
