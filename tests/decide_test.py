"""Recorded norms through a controller, and a run that follows one."""

import json
import pathlib
import unittest

from program import ProgramTest

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs" / "controllers.md"
ACCORDION = ["--controller", "accordion", "--mild", "powersgd:approx-rank=4", "--strong", "powersgd:approx-rank=1"]


class Decide(ProgramTest):
    def table(self, rows):
        file = self.folder / "norms.csv"
        file.write_text("epoch,layer,norm,lr\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
        return file

    def test_a_table(self):
        csv = self.table([(e, "w", 8 if e < 2 else 3 if e < 5 else 2.9, 0.1 if e < 7 else 0.01) for e in range(10)])
        out, _ = self.run_program("decide", "--csv", csv, *ACCORDION, "--interval", 2, "--json")
        rows = json.loads(out)
        self.assertEqual([row["level"] for row in rows], [0, 0, 0, 0, 0, 1, 1, 0, 0, 1])
        self.assertEqual(rows[3]["reason"], "norm fell 62.5 % since epoch 0, threshold 50 %")
        self.assertEqual(rows[7]["reason"], "learning rate falls at epoch 7")
        self.assertTrue(rows[5]["codec"].startswith("powersgd:approx-rank=1"))

    # Two levels that are one: the controller may say what it likes.
    def test_mild_as_strong_is_static(self):
        def losses(*arguments):
            out, _ = self.run_program("train", "--model", "cnn:width=0.25", "--workers", 4, "--samples", 600, "--test-samples", 500, "--batch", 32,
                                      "--epochs", 3, "--quiet", "--json", *arguments)
            return json.loads(out)["test_loss"]
        for codec in ("powersgd:approx-rank=2", "topk:keep=0.05"):
            self.assertEqual(losses("--codec", codec),
                             losses("--controller", "accordion", "--mild", codec, "--strong", codec, "--interval", 1))

    # Levels that change in every epoch, for pairs of every codec: ranks whose levels, or weights after an epoch, differ
    # stop the run.
    def test_ranks_agree_whatever_changes(self):
        pairs = [("none", "topk:keep=0.01"), ("fp16", "powersgd:approx-rank=1"), ("bf16", "mstopk:keep=0.01"),
                 ("randomk:keep=0.1", "sign-scaled:chunked=true"), ("dgc:keep=0.1", "dgc:keep=0.01"),
                 ("qsgd:bits=8", "qsgd:bits=4,chunked=true"), ("terngrad:share-scale=true", "threshold:lambda=0.01"),
                 ("atomo:budget=4", "sign-vote")]
        for mild, strong in pairs:
            with self.subTest(mild=mild, strong=strong):
                out, _ = self.run_program("train", "--model", "cnn:width=0.25", "--workers", 4, "--samples", 256, "--test-samples", 100, "--batch", 32,
                                          "--epochs", 3, "--lr", 0.01,
                                          "--controller", "schedule", "--plan", "mild@0-1,mild@2-3,strong", "--mild", mild,
                                          "--strong", strong, "--quiet", "--json")
                self.assertEqual(json.loads(out)["status"], "finished")

    def levels(self, *arguments):
        rows = json.loads(self.run_program("decide", "run", *arguments, "--json")[0])
        return [(row["layer"], row["level"], row["codec"], row["reason"]) for row in rows]

    def test_defaults_are_those_of_the_run(self):
        self.run_program("train", "--workers", 2, "--samples", 256, "--test-samples", 100, "--batch", 32, "--epochs", 4, *ACCORDION,
                         "--interval", 1, "--threshold", 0.01, "--quiet", "--out", "run")
        own = self.levels()
        self.assertEqual(own, self.levels(*ACCORDION, "--interval", 1, "--threshold", 0.01))
        self.assertEqual(own, self.levels("--controller", "accordion"))
        self.assertNotEqual(own, self.levels("--threshold", 1000), "what is given holds")
        # Another controller has the run's levels, and what else the run said.
        plan = self.levels("--controller", "schedule", "--plan", "strong@0-2,mild")
        self.assertEqual(plan, self.levels(*ACCORDION, "--controller", "schedule", "--plan", "strong@0-2,mild"))
        self.assertEqual({level for _, level, _, _ in plan}, {0, 1})
        # Two settings in place of the run's, and more than two.
        self.assertIn("fp16", {codec.partition(":")[0] for _, _, codec, _ in self.levels("--mild", "fp16")})
        self.assertIn("bf16", {codec.partition(":")[0] for _, _, codec, _ in self.levels("--levels", "bf16;fp16;topk")})

    def test_dense_tensors_say_so(self):
        self.run_program("train", "--workers", 2, "--samples", 64, "--test-samples", 100, "--batch", 32, "--epochs", 1, "--codec",
                         "topk:keep=0.01", "--quiet", "--out", "run")
        _, epochs, _ = self.read_run(self.folder / "run")
        recorded = [(layer["name"], layer["level"], layer["codec"], layer["reason"]) for layer in epochs[0]["layers"]]
        self.assertEqual(self.levels(), recorded)
        self.assertIn("none", {codec for _, _, codec, _ in recorded})
        out, _ = self.run_program("decide", "run")
        self.assertRegex(out, r" none +not worth compressing")

    def test_help_and_documents_list_every_controller(self):
        out, _ = self.run_program("decide", "--help")
        listed = [line.split()[0] for line in out.split("Controllers:\n")[1].splitlines() if line.strip()]
        self.assertIn("accordion", listed)
        _, err = self.run_program("decide", "--controller", "nobody", status=2)
        for name in listed:
            with self.subTest(name):
                self.assertIn(f"| `{name}` |", DOCUMENT.read_text())
                self.assertIn(name, err)

    def test_mistakes_are_named(self):
        for arguments, expected in (
                (["decide", *ACCORDION], "expected a run folder, or --csv FILE"),
                (["decide", "--csv", "nowhere.csv", *ACCORDION], "nowhere.csv: cannot read"),
                (["decide", "--csv", self.table([(0, "w", "x", 1)]), *ACCORDION], 'line 2: "x", expected a number'),
                (["train", "--controller", "accordion"], "expects mild and strong, two codec settings"),
                (["train", "--controller", "schedule", "--mild", "none", "--strong", "topk", "--plan", "mild@3"], "plan=mild@3")):
            with self.subTest(expected):
                _, err = self.run_program(*arguments, status=2)
                self.assertIn(expected, err)


if __name__ == "__main__":
    unittest.main()
