"""What the program says: help, refusals, lists."""

import json
import pathlib
import shutil
import subprocess
import unittest

from program import PROGRAM, QUICK, ProgramTest, environment


class Refusals(ProgramTest):
    def refusal(self, *arguments):
        out, err = self.run_program(*arguments, status=2)
        self.assertEqual(out, "")
        self.assertNotIn("terminate", err)
        return err.strip()

    def test_typos_are_met_with_the_nearest_name(self):
        def names(verb):
            rows = json.loads(self.run_program(verb, "--json")[0])
            return ", ".join(dict.fromkeys(row["name"] for row in rows))

        cases = {
            ("trian",): 'accordion: unknown verb "trian"; did you mean "train"? There are: train, resume, export, compare, report, watch, decide, traffic, calibrate, advise, models, data, bench',
            ("train", "--epoch", "3"): "accordion: unknown option --epoch; did you mean --epochs? See accordion train --help",
            ("train", "--model", "resnet81"):
                'accordion: unknown model "resnet81"; did you mean "resnet18"? There are: ' + names("models"),
            ("train", "--data", "fashionmnist"):
                'accordion: train: unknown data "fashionmnist"; did you mean "fashion-mnist"? There are: ' + names("data"),
            ("train", "--codec", "topk:keep=0"): "accordion: topk: keep=0, expected (0, 1]",
            ("data", "cifar-10"): 'accordion: unknown data set "cifar-10"; did you mean "cifar10"? There are: ' + names("data"),
        }
        for arguments, expected in cases.items():
            self.assertEqual(self.refusal(*arguments), expected)
        self.assertRegex(self.refusal("train", "--codec", "topq"),
                         '^accordion: unknown codec "topq"; did you mean "topk"\\? There are: none, (.*, )?topk, ')

    def test_values_out_of_range_are_named_with_the_range(self):
        cases = {
            ("--epochs", "0"): "accordion: train: epochs=0, expected at least 1",
            ("--epochs", "three"): "accordion: train: epochs=three, expected a whole number",
            ("--momentum", "1.5"): "accordion: train: momentum=1.5, expected [0, 1)",
            ("--workers", "0"): "accordion: train: workers=0, expected [1, 1024]",
            ("--workers", "128", "--codec", "sign-vote:count=true"):
                "accordion: sign-vote: count=true on 128 ranks, expected at most 127: a byte holds no more",
            ("--workers", "259", "--codec", "qsgd:bits=8,share-scale=true"):
                "accordion: qsgd: share-scale=true on 259 ranks, expected at most 258: their sum must fit 16 bits",
            ("--port", "70000"): "accordion: train: port=70000, expected [0, 65535]",
            ("--schedule", "step"):
                "accordion: train: schedule=step without milestones, expected the epochs at which the rate falls",
            ("--lr", "inf"): "accordion: train: lr=inf, expected above 0",
            ("--timeout", "1e300"): "accordion: train: timeout=1e+300, expected [0.001, 1e+07]",
            ("--samples", "99999999"):
                "accordion: train: samples=99999999, expected at most 60000, the training samples of fashion-mnist",
        }
        for arguments, expected in cases.items():
            self.assertEqual(self.refusal("train", *arguments), expected)

    def test_lost_output_is_no_success(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "models", "--json"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard output", result.stderr)

    def test_bench_refuses_before_it_starts_anything(self):
        self.assertIn('unknown model "cnm"; did you mean "cnn"?', self.refusal("bench", "ddp", "--models", "cnm"))
        self.assertIn("workers", self.refusal("bench", "ddp", "--workers", "0"))
        self.assertIn("There are: ddp", self.refusal("bench", "ddq"))
        self.assertIn('unknown model "resnet5"; did you mean "resnet50"?',
                      self.refusal("bench", "codecs", "--model", "resnet5"))
        self.assertIn("threads=0", self.refusal("bench", "codecs", "--threads", "0"))
        self.assertIn('unknown codec "topq"', self.refusal("bench", "codecs", "--codecs", "fp16;topq"))

    def test_no_verb(self):
        self.assertIn("There are: train", self.refusal())

    def test_environment_of_a_launcher_that_makes_no_sense(self):
        out, err = self.run_program("train", status=2, env=environment(RANK="abc", WORLD_SIZE=2))
        self.assertIn("RANK", err)
        self.assertIn("abc", err)


class WithoutTorch(ProgramTest):
    def test_what_needs_no_torch_does_not_load_it(self):
        listed = subprocess.run(["ldd", PROGRAM], stdout=subprocess.PIPE, text=True).stdout
        self.assertIn("libstdc++", listed)
        self.assertNotIn("torch", listed)

    def test_what_needs_it_says_what_is_missing(self):
        alone = pathlib.Path(shutil.copy(PROGRAM, self.folder))
        self.assertEqual(subprocess.run([alone, "--version"], stdout=subprocess.DEVNULL).returncode, 0)
        for arguments in (["models"], ["bench", "codecs"], ["train", "--quiet"]):
            result = subprocess.run([alone, *arguments], stderr=subprocess.PIPE, text=True, env=environment(), cwd=self.folder)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn(f"{alone}-torch cannot be started: it is not there", result.stderr)


class Recipes(ProgramTest):
    def test_the_command_line_overrides_the_recipe_and_what_is_printed_reads_back(self):
        recipe = self.folder / "a.toml"
        recipe.write_text('model = "resnet20"\nepochs = 7\nmilestones = [3, 5]\nschedule = "step"\nflip = true\nworkers = 3\n')
        out, _ = self.run_program("train", "--recipe", recipe, "--epochs", "9", "--no-flip", "--print-config")
        for line in ('model = "resnet20"', "epochs = 9", "milestones = [3,5]", "flip = false", "workers = 3"):
            self.assertIn(line, out.splitlines())
        again = self.folder / "b.toml"
        again.write_text(out)
        out_again, _ = self.run_program("train", "--recipe", again, "--print-config")
        self.assertEqual(out, out_again)

    def test_any_text_survives_print_config(self):
        odd = 'a # "b", \\c\\ [d] \'e\' = f'
        out, _ = self.run_program("train", "--out", odd, "--print-config")
        recipe = self.folder / "a.toml"
        recipe.write_text(out)
        self.assertEqual(self.run_program("train", "--recipe", recipe, "--print-config")[0], out)
        recipe.write_text("# a comment\n\nout = 'x # y'  # another\nmilestones = [ 1, 2, ] # list\nschedule = \"step\"\n")
        out, _ = self.run_program("train", "--recipe", recipe, "--print-config")
        self.assertIn('out = "x # y"', out)
        self.assertIn("milestones = [1,2]", out)

    def test_mistakes_name_the_file(self):
        recipe = self.folder / "a.toml"
        recipe.write_text("epoch = 7\n")
        _, err = self.run_program("train", "--recipe", recipe, status=2)
        self.assertIn(f'{recipe}:1: unknown option "epoch"; did you mean "epochs"?', err)
        recipe.write_text("epochs = -1\n")
        _, err = self.run_program("train", "--recipe", recipe, status=2)
        self.assertIn(f"{recipe}:1: epochs=-1, expected at least 1", err)
        for text in ("epochs", "epochs = ", 'out = "open', "milestones = [1, 2", "epochs = 3 4", "model = cnn", "epochs = {n = 3}", "[section]"):
            recipe.write_text("seed = 1\n" + text + "\n")
            _, err = self.run_program("train", "--recipe", recipe, status=2)
            self.assertIn(f"{recipe}:2: ", err)
        recipe.write_text("seed = 1\n[mild]\nseed = 2\n")
        _, err = self.run_program("train", "--recipe", recipe, status=2)
        self.assertIn(f"{recipe}:2: [mild] begins a setting of a comparison", err)
        recipe.write_text("seed = 1\nseed = 2\n")
        _, err = self.run_program("train", "--recipe", recipe, status=2)
        self.assertIn(f"{recipe}:2: seed is given twice", err)
        recipe.write_text("warmup-lr = 1\nwarmup_lr = 2\n")
        _, err = self.run_program("train", "--recipe", recipe, status=2)
        self.assertIn(f"{recipe}:2: warmup_lr is given twice", err)
        recipe.write_text("epochs = 3.0\n")
        _, err = self.run_program("train", "--recipe", recipe, status=2)
        self.assertIn(f"{recipe}:1: epochs=3.0, expected a whole number", err)
        recipe.write_text("model = cnn\n")
        _, err = self.run_program("train", "--recipe", recipe, status=2)
        self.assertIn(f"{recipe}:1: model = cnn, expected `option = value`, text in quotes", err)
        for text in ("epochs = 1\n" + "a." * 100_000 + "a = 1\n", "epochs = 1\n" + "[" * 100_000 + "\n"):
            recipe.write_text(text)
            _, err = self.run_program("train", "--recipe", recipe, status=2)
            self.assertRegex(err, f"{recipe}:2: a line of [0-9]+ bytes, expected at most 4096")
        _, err = self.run_program("train", "--recipe", "/dev/zero", status=2)
        self.assertIn("--recipe /dev/zero: cannot be read", err)
        recipe.write_bytes(b'"\x1b]0;mine\x07" = 1\n')
        _, err = self.run_program("train", "--recipe", recipe, status=2)
        self.assertNotIn("\x1b", err, "a terminal would obey it")
        _, err = self.run_program("train", "--recipe", self.folder, status=2)
        self.assertIn("cannot be read", err)
        _, err = self.run_program("train", "--recipe", "nowhere.toml", status=2)
        self.assertIn("--recipe nowhere.toml: cannot be read", err)


class BenchCodecs(ProgramTest):
    QUICK = ("bench", "codecs", "--model", "resnet18", "--repetitions", "1")

    def test_json_has_the_documented_keys(self):
        out, _ = self.run_program(*self.QUICK, "--codecs", "topk:keep=0.01;powersgd:approx-rank=2", "--no-peers", "--json")
        rows = json.loads(out)
        self.assertEqual([row["codec"] for row in rows], ["topk:keep=0.01", "powersgd:approx-rank=2"])
        for row in rows:
            self.assertEqual((row["model"], row["threads"], row["parameters"]), ("resnet18", 1, 11173962))
            for key in ("encode_ms", "decode_ms", "decode4_ms", "bound_ms", "over_bound"):
                self.assertGreater(row[key], 0, key)
            self.assertIsNone(row["torch_ms"])
        self.assertAlmostEqual(rows[0]["payload_ratio"], 50, delta=0.1)

    def test_a_missing_interpreter_costs_a_column_not_the_table(self):
        out, err = self.run_program(*self.QUICK, "--codecs", "sign-vote", "--python", "/nowhere/python3")
        self.assertIn("/nowhere/python3 cannot import torch", err)
        self.assertRegex(out, r"sign-vote +x32.0 ")


class BenchModels(ProgramTest):
    def bench(self, *arguments):
        return json.loads(self.run_program("bench", "models", "--json", "--seconds", 0, *arguments)[0])

    def test_every_kind(self):
        rows = self.bench("--batch", 4, "--bptt", 5, "--model", "cnn;gpt:layers=1,width=16;dlrm:embedding=4")
        self.assertEqual([(row["model"], row["data"], row["unit"], row["bptt"]) for row in rows],
                         [("cnn", "fashion-mnist", "images", None), ("gpt:layers=1,width=16", "sotu", "tokens", 5),
                          ("dlrm:embedding=4", "clicks", "rows", None)])
        for row in rows:
            for key in ("parameters", "threads", "steps", "step_ms", "samples_per_second", "epoch_seconds"):
                self.assertGreater(row[key], 0, key)
            samples = 4 * (row["bptt"] or 1)
            self.assertAlmostEqual(row["samples_per_second"], 1000 * samples / row["step_ms"])
        cnn = rows[0]
        self.assertEqual((cnn["parameters"], cnn["batch"], cnn["steps"]), (220234, 4, 1))
        self.assertAlmostEqual(cnn["epoch_seconds"] * cnn["samples_per_second"], 60000, delta=1)

    def test_leaves_no_model_out(self):
        zoo = {row["name"] for row in json.loads(self.run_program("models", "--json")[0])}
        self.assertEqual({row["model"] for row in self.bench("--batch", 2, "--bptt", 2, "--threads", 1)}, zoo)

    def test_data_set_and_threads_as_told(self):
        row, = self.bench("--model", "cnn", "--data", "cifar100", "--batch", 2, "--threads", 1)
        self.assertEqual((row["data"], row["parameters"], row["threads"]), ("cifar100", 288100, 1))
        row, = self.bench("--data", "clicks")
        self.assertEqual(row["model"], "dlrm")
        out, _ = self.run_program("bench", "models", "--model", "dlrm", "--batch", 2, "--seconds", 0)
        self.assertRegex(out, r"dlrm +clicks +\d+ +2 +1 +[\d.]+ +[\d.]+ rows ")

    def test_mistakes_are_named(self):
        for arguments, expected in (
                (["--model", "cnm"], 'unknown model "cnm"; did you mean "cnn"?'),
                (["--model", "lstm", "--data", "cifar10"], "model=lstm learns from text, but the data set holds images"),
                (["--data", "cifar11"], 'unknown data set "cifar11"'),
                (["--model", "gpt:heads=3"], "gpt: heads=3, expected a divisor of width=128"),
                (["--model", "gpt:context=8", "--bptt", 9], "windows of bptt=9 tokens, expected at most context=8")):
            with self.subTest(expected):
                self.assertIn(expected, self.run_program("bench", "models", *arguments, status=2)[1])


class Lists(ProgramTest):
    def test_models(self):
        rows = json.loads(self.run_program("models", "--json")[0])
        counts = {(row["name"], row["data"]): row["parameters"] for row in rows}
        self.assertEqual(counts["resnet18", "cifar10"], 11173962)
        self.assertEqual(counts["resnet18", "cifar100"], 11220132)
        self.assertEqual(counts["lstm", "wikitext2-nominal"], 28949319)
        for name, data in (("cnn", "mnist"), ("lstm", "wikitext2"), ("gpt", "sotu"), ("dlrm", "clicks")):
            self.assertGreater(counts[name, data], 0)
        self.assertNotIn(("lstm", "cifar10"), counts)
        self.assertIn("11173962", self.run_program("models")[0])

    def test_data(self):
        rows = json.loads(self.run_program("data", "--json")[0])
        names = [row["name"] for row in rows]
        self.assertEqual(names[0], "fashion-mnist")
        for name in ("mnist", "cifar10", "cifar100", "wikitext2", "sotu", "clicks"):
            self.assertEqual(names.count(name), 1)
        clicks = next(row for row in rows if row["name"] == "clicks")
        self.assertEqual((clicks["kind"], clicks["synthetic"], clicks["here"], clicks["folder"]), ("rows", True, True, None))
        self.assertEqual(clicks["train_samples"], 100000)
        self.assertRegex(self.run_program("data")[0], r"clicks +100000 \+ 10000 rows +made up on the spot")

    def test_data_that_cannot_be_fetched(self):
        _, err = self.run_program("data", "wikitext2", "--data-dir", self.folder, status=1)
        for text in ("wiki.train.tokens", "wikitext2", "no package registry carries it", "CC BY-SA 3.0"):
            self.assertIn(text, err)
        self.assertIn("not here; accordion data wikitext2 says how", self.run_program("data", "--data-dir", self.folder)[0])
        self.assertIn("needs no files", self.run_program("data", "clicks", "--data-dir", self.folder)[0])

    def test_help_names_every_option_and_its_range(self):
        out, _ = self.run_program("train", "--help")
        for text in ("--weight-decay", "--recipe", "--milestones", "[0, 1)"):
            self.assertIn(text, out)

    def test_a_missing_data_set_says_how_to_get_it(self):
        _, err = self.run_program("train", "--data", "cifar100", "--data-dir", self.folder, *QUICK, status=1)
        self.assertIn("train.bin", err)
        _, err = self.run_program("train", "--data", "cifar10", "--data-dir", self.folder, "--workers", 2, *QUICK, status=1)
        self.assertIn("accordion data cifar10", err)
        self.assertEqual(err.count("accordion data cifar10"), 1, "said once, not once a rank")


if __name__ == "__main__":
    unittest.main()
