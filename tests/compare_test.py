"""Comparisons: the runs, what is kept of them, and the table."""

import csv
import io
import json
import pathlib
import signal
import time
import unittest

from program import ProgramTest, environment

SHARED = 'seeds = [1, 2]\nworkers = 2\nsamples = 600\ntest-samples = 500\nepochs = 2\nbatch = 25\n'
RECIPE = SHARED + '''
[plain]

["top 1 %"]  # sends a fiftieth
codec = "topk:keep=0.01"
'''
KEYS = ["setting", "seeds", "runs", "metric", "mean", "normal95", "student95", "paired_difference", "paired_student95",
        "pairs", "train_loss", "train_loss_difference", "train_loss_student95", "payload_bytes", "wire_bytes", "paper_floats",
        "seconds", "extra_share", "wire_ratio", "paper_floats_ratio", "seconds_ratio", "values", "folders"]
FOLDERS = ["plain/seed-1", "top_1__/seed-1", "plain/seed-2", "top_1__/seed-2"]  # In the order in which they run.


class CompareTest(ProgramTest):
    def write(self, text):
        path = self.folder / "pair.toml"
        path.write_text(text)
        return path

    def summaries(self, out):
        """When each run's summary was written: a run that is kept keeps it."""
        paths = {name: self.folder / out / name / "summary.json" for name in FOLDERS}
        return {name: path.stat().st_mtime_ns for name, path in paths.items() if path.exists()}


class Comparing(CompareTest):
    def test_runs_are_kept_across_an_interruption_and_a_change(self):
        self.write(RECIPE)
        command = ("compare", "--recipe", "pair.toml")
        out = "runs/compare-pair"

        # Interrupted in the third run.
        process = self.start(*command)
        self.addCleanup(process.kill)
        for _ in range(6000):
            if (self.folder / out / "plain/seed-2/config.json").exists():
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        stdout, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(stdout, "")
        self.assertIn("[1/4] plain, seed 1: ", err)
        self.assertIn("[3/4] plain, seed 2: interrupted", err)
        self.assertIn("the same command goes on with the rest", err)
        finished = {name: at for name, at in self.summaries(out).items()
                    if json.loads((self.folder / out / name / "summary.json").read_text())["status"] == "finished"}
        self.assertEqual(list(finished), FOLDERS[:2])

        stdout, err = self.run_program(*command, "--dry-run")
        self.assertRegex(stdout, r"\[2/4\] top 1 %, seed 1: finished, \d+\.\d\d % in ")
        self.assertRegex(stdout, r"\[3/4\] plain, seed 2: to run, because (there is none|it was )")
        self.assertEqual(len(stdout.splitlines()), 4)

        stdout, err = self.run_program(*command)
        self.assertIn("4 runs into runs/compare-pair: 2 settings, 2 seeds; 2 are there already", err)
        self.assertRegex(err, r"\[1/4\] plain, seed 1: kept, \d+\.\d\d % in \d+\.\d s, \d+\.\d MB sent\n")
        self.assertRegex(err, r"\[4/4\] top 1 %, seed 2: \d+\.\d\d % in \d+\.\d s, [\d.]+ kB sent\n")
        again = self.summaries(out)
        self.assertEqual(list(again), FOLDERS)
        self.assertEqual({name: again[name] for name in finished}, finished, "a finished run ran again")
        lines = stdout.splitlines()
        self.assertRegex(lines[0], r"\| setting +\| test accuracy, % \| ± normal \| ± Student \| paired difference \| +sent per worker \| million floats \|")
        self.assertRegex(lines[2], r"\| plain +\| +\d+\.\d\d \| +± \d+\.\d\d \| +± \d+\.\d\d \| +- \| +\d+\.\d MB \(1x\) \|")
        self.assertRegex(lines[3], r"\| top 1 % .*\([\d.]+x\)")
        self.assertRegex(lines[5], r"^top 1 %: \d+\.\d\d %, .* plain .*\(paired difference [+-]\d+\.\d\d ± \d+\.\d\d, 2 seeds\), with 0\.\d+ of its data\.$")

        # Another format asks for no run.
        stdout, err = self.run_program(*command, "--json", "--quiet")
        self.assertEqual(err, "")
        rows = json.loads(stdout)
        self.assertEqual([list(row) for row in rows], [KEYS, KEYS])
        plain, top = rows
        self.assertEqual((plain["setting"], plain["seeds"], plain["runs"], plain["metric"]), ("plain", [1, 2], 2, "test_accuracy"))
        self.assertEqual(top["folders"], [f"{out}/top_1__/seed-1", f"{out}/top_1__/seed-2"])
        for row in rows:
            runs = [self.read_run(self.folder / folder) for folder in row["folders"]]
            self.assertEqual([config["options"]["seed"] for config, _, _ in runs], [1, 2])
            self.assertEqual([config["workers"] for config, _, _ in runs], [2, 2])
            values = [epochs[-1]["test_accuracy"] for _, epochs, _ in runs]
            self.assertEqual(row["values"], values)
            mean = sum(values) / 2
            self.assertAlmostEqual(row["mean"], mean)
            spread = abs(values[0] - values[1])  # Of two values: sigma is half of it, s is spread/sqrt(2).
            self.assertAlmostEqual(row["normal95"], 1.96 * spread / 2 / 2 ** 0.5, places=9)
            self.assertAlmostEqual(row["student95"], 12.7062 * spread / 2, places=5)
            for key in ("payload_bytes", "wire_bytes", "paper_floats"):
                self.assertEqual(row[key], round(sum(summary[key] for _, _, summary in runs) / 2))
        self.assertEqual([plain["pairs"], plain["paired_difference"], top["pairs"]], [0, None, 2])
        first, second = (b - a for a, b in zip(plain["values"], top["values"]))
        self.assertAlmostEqual(top["paired_difference"], (first + second) / 2)
        self.assertAlmostEqual(top["paired_student95"], 12.7062 * abs(first - second) / 2, places=5)
        losses = [[self.read_run(self.folder / folder)[1][-1]["train_loss"] for folder in row["folders"]] for row in rows]
        self.assertAlmostEqual(top["train_loss"], sum(losses[1]) / 2)
        first, second = (b - a for a, b in zip(*losses))
        self.assertAlmostEqual(top["train_loss_difference"], (first + second) / 2)
        self.assertAlmostEqual(top["train_loss_student95"], 12.7062 * abs(first - second) / 2, places=5)
        self.assertEqual([plain["train_loss_difference"], plain["extra_share"], top["extra_share"]], [None, 1, 0])
        self.assertAlmostEqual(top["wire_ratio"], plain["wire_bytes"] / top["wire_bytes"])
        self.assertGreater(top["wire_ratio"], 10)
        table = list(csv.DictReader(io.StringIO(self.run_program(*command, "--format", "csv")[0])))
        self.assertEqual(list(table[0]), KEYS)
        self.assertEqual([row["setting"] for row in table], ["plain", "top 1 %"])
        self.assertEqual(float(table[1]["mean"]), top["mean"])
        self.assertEqual(table[1]["seeds"], "1;2")

        # An option of one setting changes: its runs are run again, and say why. One seed has no interval.
        self.write(RECIPE.replace("keep=0.01", "keep=0.02"))
        stdout, err = self.run_program(*command, "--seeds", "2", "--json")
        self.assertIn('[2/2] top 1 %, seed 2 (again, because codec was "topk:keep=0.01" and is "topk:keep=0.02"): ', err)
        self.assertIn("[1/2] plain, seed 2: kept", err)
        changed = self.summaries(out)
        self.assertEqual([name for name in FOLDERS if changed[name] != again[name]], ["top_1__/seed-2"])
        self.assertEqual([row["student95"] for row in json.loads(stdout)], [None, None])

        # So does one on the command line, which holds for every setting.
        stdout, _ = self.run_program(*command, "--samples", "200", "--nesterov", "--dry-run")
        self.assertEqual(stdout.count("because samples was 600 and is 200"), 4)
        self.assertEqual(self.summaries(out), changed)

    def test_a_run_that_fails_leaves_the_others_and_a_table(self):
        self.write(SHARED + "[plain]\n[wild]\nlr = 1e30\n")
        stdout, err = self.run_program("compare", "--recipe", "pair.toml", "--out", "here", "--seeds", "3", status=1)
        self.assertIn("the loss is no longer finite", err)
        self.assertIn("1 of 2 runs failed: wild (seed 3)", err)
        self.assertRegex(stdout, r"\| wild +\| +no run finished \|")
        self.assertIn("wild: no run finished.", stdout)
        self.assertTrue((self.folder / "here/plain/seed-3/summary.json").exists())
        self.assertFalse((self.folder / "runs").exists())


class Refusals(CompareTest):
    def refusal(self, text, *arguments, **options):
        path = self.write(text)
        out, err = self.run_program("compare", "--recipe", path, *arguments, status=2, **options)
        self.assertEqual(out, "")
        self.assertFalse((self.folder / "runs").exists(), "a run was started")
        self.assertTrue(err.startswith("accordion: "), err)
        return err.strip().removeprefix("accordion: ").replace(str(path), "FILE")

    def test_recipes(self):
        two = "[a]\n[b]\n"
        cases = {
            "": "FILE: no settings to compare, expected a [name] section for each",
            "epochs = 3\n": "FILE: no settings to compare, expected a [name] section for each",
            "epoch = 3\n" + two: 'FILE:1: unknown option "epoch"; did you mean "epochs"?',
            "[a]\nepoch = 3\n": 'FILE:2: unknown option "epoch"; did you mean "epochs"?',
            "[a]\n[b]\nepochs = 0\n": "FILE:3: epochs=0, expected at least 1",
            "[a]\nlr = 1\nlr = 2\n": "FILE:3: lr is given twice",
            "[a]\n[b]\n[a]\n": "FILE:3: [a] is given twice",
            '["a b"]\n["a/b"]\n': "FILE:2: [a/b] would share the folder a_b with [a b]; rename one",
            "[a b]\n": "FILE:1: [a b], expected `[name]` or `[\"any name\"]`",
            "[[a]]\n": "FILE:1: [[a]], expected `[name]` or `[\"any name\"]`",
            '[""]\n': "FILE:1: [\"\"], expected `[name]` or `[\"any name\"]`",
            "[a\n": "FILE:1: [a, expected `[name]` or `[\"any name\"]`",
            "seeds = []\n" + two: "FILE:1: no seeds, expected at least one",
            "seeds = [1, 2, 1]\n" + two: "FILE:1: seeds=1,2,1, but 1 twice would be the same run twice",
            "seeds = [-1]\n" + two: "FILE:1: seeds=-1, expected at least 0",
            'seeds = "all"\n' + two: "FILE:1: seeds=all, expected a whole number",
            "seed = 1\n" + two: "FILE:1: seed, expected `seeds = [1, 2, 3]` before the first [setting]",
            "[a]\nseeds = [1]\n": "FILE:2: seeds, expected before the first [setting]: all settings share them",
            'out = "x"\n' + two: "FILE:1: out is not an option of a setting: each run has its own folder",
            "[a]\n[b]\nschedule = \"step\"\n": "FILE:2: [b]: train: schedule=step without milestones",
            "[a]\n[b]\ncodec = \"topq\"\n": 'FILE:2: [b]: unknown codec "topq"; did you mean "topk"?',
            "[a]\n[b]\nmodel = \"cmm\"\n": 'FILE:2: [b]: unknown model "cmm"; did you mean "cnn"?',
        }
        for text, expected in cases.items():
            with self.subTest(text):
                self.assertEqual(self.refusal(text)[:len(expected)], expected)

    def test_the_command_line(self):
        two = "[a]\n[b]\n"
        cases = {
            ("--seeds", "1,1"): "compare: seeds=1,1, but 1 twice would be the same run twice",
            ("--format", "html"): 'compare: unknown format "html"',
            ("--format", "csv", "--json"): "compare: format=csv with --json, expected one of them",
            ("--epochs", "0"): "compare: epochs=0, expected at least 1",
            ("--seed", "3"): "unknown option --seed; did you mean --seeds?",
        }
        for arguments, expected in cases.items():
            with self.subTest(arguments):
                self.assertEqual(self.refusal(two, *arguments)[:len(expected)], expected)
        env = environment(RANK=0, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=29500)
        self.assertIn("it starts the ranks of its runs itself", self.refusal(two, env=env))
        _, err = self.run_program("compare", status=2)
        self.assertIn("compare: no --recipe", err)

    def test_a_recipe_of_the_tree_is_a_comparison(self):
        recipe = pathlib.Path(__file__).resolve().parent.parent / "recipes" / "demo.toml"
        out, _ = self.run_program("compare", "--recipe", recipe, "--dry-run")
        self.assertIn("mild, seed 1: to run, because there is none", out)
        self.assertIn("accordion, seed 1: to run, because there is none", out)


if __name__ == "__main__":
    unittest.main()
