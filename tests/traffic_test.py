"""What a run would send: the published tables, and what runs then count."""

import json
import pathlib
import unittest

from program import ProgramTest, environment

RECIPES = pathlib.Path(__file__).resolve().parent.parent / "recipes" / "paper"
SMALL = RECIPES.parent / "small"
COUNTERS = ["payload_bytes", "wire_bytes", "paper_floats"]
MILLION, BILLION = 1e6, 1e9

# The published counts as they are printed, setting by setting. Where one does not fit, the second is ours, to as many digits.
TABLES = {
    "table1-resnet18-powersgd": (MILLION, {"rank 2": ["2418.4"], "rank 1": ["1350.4"], "accordion": ["1571.8"]}),
    "table1-vgg19bn-powersgd": (MILLION, {"rank 4": ["6752.0"], "rank 1": ["2074.9"], "accordion": ["2945.1"]}),
    "table1-senet-powersgd": (MILLION, {"rank 4": ["4361.3", "5254.7"], "rank 1": ["1392.6", "1677.9"],
                                        "accordion": ["2264.4"]}),
    "table2-resnet18-powersgd": (MILLION, {"rank 2": ["2426.3"], "rank 1": ["1355.7"], "accordion": ["1566.3"]}),
    "table2-densenet-powersgd": (MILLION, {"rank 2": ["3387.4"], "rank 1": ["2155.6"], "accordion": ["2284.9"]}),
    "table2-senet-powersgd": (MILLION, {"rank 2": ["2878.1"], "rank 1": ["1683.1"], "accordion": ["2175.6"]}),
    "table3-resnet18-topk": (BILLION, {"K 99 %": ["2626.1"], "K 10 %": ["262.8"], "accordion": ["976.7"]}),
    "table3-googlenet-topk": (BILLION, {"K 99 %": ["1430.9"], "K 10 %": ["145.2"], "accordion": ["383.8"]}),
    "table3-senet-topk": (BILLION, {"K 99 %": ["2648.7"], "K 10 %": ["267.9"], "accordion": ["869.8"]}),
    "table4-resnet18-topk": (BILLION, {"K 99 %": ["2636.9"], "K 25 %": ["659.4"], "accordion": ["923.6"]}),
    "table4-googlenet-topk": (BILLION, {"K 99 %": ["1452.4"], "K 25 %": ["367.3"], "accordion": ["539.9"]}),
    "table4-senet-topk": (BILLION, {"K 99 %": ["2659.5"], "K 25 %": ["671.9"], "accordion": ["966.13"]}),
    "table5-resnet18-batch": (BILLION, {"batch 512": ["326.5", "325.2"], "batch 4096": ["40.22"], "accordion": ["59.22"]}),
    "table5-googlenet-batch": (BILLION, {"batch 512": ["181.28"], "batch 4096": ["22.19"], "accordion": ["32.68"]}),
    "table5-densenet-batch": (BILLION, {"batch 512": ["29.4"], "batch 4096": ["3.6"], "accordion": ["5.3"]}),
    "table6-resnet18-batch": (BILLION, {"batch 512": ["326.5"], "batch 4096": ["40.39"], "accordion": ["54.96", "59.47"]}),
    "table6-googlenet-batch": (BILLION, {"batch 512": ["182.1"], "batch 4096": ["22.5"], "accordion": ["33.1"]}),
    "table6-densenet-batch": (BILLION, {"batch 512": ["30.126"], "batch 4096": ["3.72"], "accordion": ["5.48"]}),
}
MISPRINTS = 4


def last_digit(printed):
    return 10.0 ** -len(printed.partition(".")[2])


def fits(printed, value):
    """Within one unit of the last digit: the tables mix rounding and truncation."""
    return abs(value - float(printed)) <= last_digit(printed) * (1 + 1e-9)


class TrafficTest(ProgramTest):
    def traffic(self, *arguments, **options):
        out, err = self.run_program("traffic", *arguments, "--json", **options)
        self.assertEqual(err, "")
        return json.loads(out)

    def published(self, name, *arguments):
        """Rows by setting, with no data set in reach."""
        nowhere = environment(HOME=self.folder, ACCORDION_DATA=self.folder)
        rows = self.traffic("--recipe", RECIPES / f"{name}.toml", *arguments, env=nowhere)
        return {row["setting"]: row for row in rows}


class PublishedTables(TrafficTest):
    def test_every_cell(self):
        misprints = 0
        for name, (unit, cells) in TABLES.items():
            rows = self.published(name)
            self.assertEqual(list(rows), list(cells))
            for setting, (printed, *ours) in cells.items():
                with self.subTest(name, setting=setting):
                    row = rows[setting]
                    most = row["paper_floats"] / unit
                    least = row["least"]["paper_floats"] / unit if not row["exact"] else most
                    self.assertEqual(row["exact"], setting != "accordion")
                    if setting == "accordion" and "batch" not in name:  # Somewhere in between.
                        self.assertTrue(least <= float(printed) <= most)
                        continue
                    # Batches that grew as early as they can are the published ones.
                    misprints += len(ours)
                    self.assertEqual(fits(printed, least), not ours, least)
                    self.assertTrue(fits(ours[0] if ours else printed, least), least)
        self.assertEqual(misprints, MISPRINTS)

    def test_what_the_misprints_are(self):
        senet = self.published("table1-senet-powersgd", "--epochs", 249)
        for setting, printed in [("rank 4", "4361.3"), ("rank 1", "1392.6")]:
            self.assertTrue(fits(printed, senet[setting]["paper_floats"] / MILLION), setting)
        accordion = senet["accordion"]
        self.assertTrue(accordion["least"]["paper_floats"] <= 2264.4e6 <= accordion["paper_floats"])
        # 99 % that are 100 %.
        for name, printed, true_count in [("table3-resnet18-topk", "2626.1", "2599.9"), ("table4-resnet18-topk", "2636.9", "2610.6")]:
            row = self.traffic("--recipe", RECIPES / f"{name}.toml", "--codec", "topk:keep=0.99")
            self.assertFalse(fits(printed, row["paper_floats"] / BILLION), name)
            self.assertTrue(fits(true_count, row["paper_floats"] / BILLION), name)
        # The count of the other data set.
        other = self.published("table5-resnet18-batch", "--data", "cifar100")["batch 512"]
        self.assertTrue(fits("326.5", other["paper_floats"] / BILLION))
        whole = self.published("table5-resnet18-batch", "--no-drop-last")["batch 512"]
        self.assertTrue(fits("328.5", whole["paper_floats"] / BILLION))

    def test_the_senet_of_table_3_is_not_its_namesake(self):
        rows = self.published("table3-senet-topk", "--model", "senet")
        self.assertFalse(fits("2648.7", rows["K 99 %"]["paper_floats"] / BILLION))

    def test_per_step_counts(self):
        recipe = RECIPES / "table1-resnet18-powersgd.toml"
        for setting, floats in [("powersgd:approx-rank=1", 45935), ("powersgd:approx-rank=2", 82260)]:
            row = self.traffic("--recipe", recipe, "--codec", setting, "--epochs", 1, "--steps", 1)
            self.assertEqual(row["paper_floats"], floats)
            self.assertEqual(row["payload_bytes"], 4 * floats)
            self.assertEqual(row["wire_bytes"], 6 * floats)

    def test_the_language_model(self):
        rows = self.published("wikitext2-lstm-topk")
        self.assertEqual(list(rows), ["K 99 %", "K 2 %", "accordion"])
        steps = 136 * 90  # 2,088,627 pairs in 512 streams of 4079 positions, 30 at a time.
        self.assertEqual({row["steps"] for row in rows.values()}, {steps})
        dense = self.traffic("--recipe", RECIPES / "wikitext2-lstm-topk.toml", "--codec", "none", "--vocabulary", 28869)
        self.assertEqual(dense["paper_floats"], steps * 28949319)
        self.assertLess(rows["accordion"]["least"]["paper_floats"], rows["accordion"]["paper_floats"])

    def test_written_schedules(self):
        recipe = RECIPES / "table2-resnet18-powersgd.toml"
        strong = ["--controller", "schedule", "--strong", "powersgd:approx-rank=1"]
        critical = self.traffic("--recipe", recipe, *strong, "--mild", "powersgd:approx-rank=2")
        self.assertTrue(critical["exact"])
        self.assertTrue(fits("1462.8", critical["paper_floats"] / MILLION))
        inverse = self.traffic("--recipe", recipe, *strong, "--mild", "none", "--plan", "inverse")
        self.assertTrue(fits("297.0", inverse["paper_floats"] / BILLION))

    def test_every_recipe_is_one_of_compare(self):
        recipes = sorted(RECIPES.glob("*.toml"))
        self.assertEqual(len(recipes), len(TABLES) + 3)
        for recipe in recipes:
            with self.subTest(recipe.name):
                process = self.start("compare", "--recipe", recipe, "--dry-run")
                out, err = process.communicate(timeout=60)
                if process.returncode == 0:
                    self.assertIn("to run", out)
                else:  # All is well but for the data.
                    self.assertEqual(process.returncode, 1, err)
                    self.assertIn("not found; looked for", err)


# What belongs together in a recipe and in its small twin.
def outline(path):
    lines = path.read_text().splitlines()
    model = next(line.split('"')[1].partition(":")[0] for line in lines if line.startswith("model"))
    data = next(line.split('"')[1] for line in lines if line.startswith("data"))
    return model, data, [line.strip('[]"') for line in lines if line.startswith("[")]


class SmallRecipes(TrafficTest):
    def test_every_published_experiment_has_a_twin(self):
        for recipe in RECIPES.glob("*.toml"):
            with self.subTest(recipe.name):
                twin, original = outline(SMALL / recipe.name), outline(recipe)
                if "batch" in recipe.name:  # They are smaller.
                    self.assertEqual(len(twin[2]), len(original[2]))
                    self.assertEqual(twin[:2], original[:2])
                else:
                    self.assertEqual(twin, original)

    def test_settings_differ_in_what_they_send(self):
        nowhere = environment(HOME=self.folder, ACCORDION_DATA=self.folder)
        for recipe in SMALL.glob("*.toml"):
            with self.subTest(recipe.name):
                rows = self.traffic("--recipe", recipe, env=nowhere)
                counts = [row["wire_bytes"] for row in rows if row["exact"]]
                self.assertEqual(len(set(counts)), len(counts), counts)
                for row in rows:
                    self.assertEqual(row["exact"], row["controller"] in ("static", "schedule", "smith"), row["setting"])


class Command(TrafficTest):
    KEYS = ["model", "data", "codec", "controller", "workers", "epochs", "steps", *COUNTERS, "exact"]

    def test_one_run_is_one_object(self):
        row = self.traffic("--workers", 4, "--codec", "fp16")
        self.assertEqual(list(row), self.KEYS)
        small = 32 * 9 + 64 * 10 + 32 + 64 + 64 + 10  # In single precision: below 1024 elements, or of one dimension.
        self.assertEqual(row["payload_bytes"], row["steps"] * 2 * (220234 + small))

    def test_a_recipe_of_settings_is_an_array(self):
        path = self.folder / "pair.toml"
        path.write_text('seeds = [1, 2]\nworkers = 2\n[a]\n["b %"]\ncontroller = "accordion"\nmild = "none"\nstrong = "fp16"\n')
        rows = self.traffic("--recipe", path, "--epochs", 30)
        self.assertEqual([row["setting"] for row in rows], ["a", "b %"])
        self.assertEqual(list(rows[0]), ["setting", *self.KEYS])
        self.assertEqual(list(rows[1]), ["setting", *self.KEYS, "least"])
        self.assertEqual(list(rows[1]["least"]), ["steps", *COUNTERS])
        self.assertEqual(self.traffic("--recipe", path, "--codec", "none")["payload_bytes"],
                         self.traffic("--workers", 2)["payload_bytes"])
        out, _ = self.run_program("traffic", "--recipe", path, "--epochs", 30)
        self.assertIn("cnn on fashion-mnist, 2 workers, 30 epochs.", out)
        self.assertRegex(out, r"b % +7050 +4\.3 GB to 6\.2 GB ")

    def test_models_known_by_their_shapes(self):
        row = self.traffic("--model", "resnet50", "--steps", 10, "--epochs", 3, "--workers", 4)
        self.assertEqual([row["data"], row["steps"]], [None, 30])
        self.assertEqual(row["paper_floats"], 30 * 25557032)

    def test_tensors_that_go_dense_say_so(self):
        arguments = ["--workers", 4, "--controller", "accordion", "--mild", "powersgd:approx-rank=4", "--strong", "topk:keep=0.01"]
        row = self.traffic(*arguments, "--epochs", 1, "--steps", 1, "--tensors")
        tensors = {tensor["name"]: tensor for tensor in row["tensors"]}
        dense = {name for name, tensor in tensors.items() if [level["codec"] for level in tensor["levels"]] == ["none", "none"]}
        self.assertTrue(dense)
        for name, tensor in tensors.items():
            mild, strong = tensor["levels"]
            if name in dense:  # A bias, or too small.
                self.assertEqual((mild["payload_bytes"], strong["payload_bytes"]), (4 * tensor["elements"],) * 2)
            else:
                self.assertTrue(strong["codec"].startswith("topk:keep=0.01"), strong)
                self.assertLess(strong["payload_bytes"], 4 * tensor["elements"])
        self.assertLess(len(dense), len(tensors))
        for level, setting in enumerate(["powersgd:approx-rank=4", "topk:keep=0.01"]):
            alone = self.traffic("--workers", 4, "--codec", setting, "--epochs", 1, "--steps", 1)
            self.assertNotIn("tensors", alone)
            self.assertEqual(alone["payload_bytes"], sum(t["levels"][level]["payload_bytes"] for t in tensors.values()))
        out, _ = self.run_program("traffic", *arguments, "--tensors")
        for name in dense:
            self.assertRegex(out, rf"(?m)^{name} +\d+ +none +\S+ \S+ +none ")

    def test_mistakes(self):
        path = self.folder / "bad.toml"
        path.write_text('[a]\ncodec = "topkk"\n')
        for arguments, words in [
                (["--codek", "none"], "did you mean --codec?"),
                (["--codec", "topkk"], 'did you mean "topk"?'),
                (["--model", "resnet81"], 'did you mean "resnet18"?'),
                (["--model", "resnet50"], "expected --steps"),
                (["--model", "bert-bas"], 'did you mean "bert-base"?'),
                (["--test-samples", "10001"], "test-samples=10001, expected at most 10000"),
                (["--data", "fashion"], 'unknown data "fashion"'),
                (["--steps", "-1"], "expected at least 1"),
                (["--steps", "0"], "steps=0, expected at least 1"),
                (["--steps", "5", "--controller", "smith", "--batch-mild", "128", "--batch-strong", "256"], "batch-mild"),
                (["--codec", "sign-vote:count=true", "--workers", "200"], "expected at most 127"),
                (["--samples", "70000"], "expected at most 60000"),
                (["--recipe", "none.toml"], "cannot be read"),
                (["--recipe", str(path)], "bad.toml:1: [a]: unknown codec")]:
            with self.subTest(arguments):
                _, err = self.run_program("traffic", *arguments, status=2)
                self.assertIn(words, err)


# One run has all of them, an epoch each.
FIXED = ["none", "fp16", "bf16:feedback=true", "topk:keep=0.01", "topk:keep=0.6", "mstopk:keep=0.01", "randomk:keep=0.1",
         "randomk:keep=0.1,block=true", "sign-vote", "sign-vote:count=true", "sign-vote:chunked=true", "sign-scaled",
         "sign-scaled:chunked=true", "qsgd:bits=4", "qsgd:bits=2,norm=l2", "qsgd:bits=8,share-scale=true",
         "qsgd:bits=4,chunked=true", "terngrad", "terngrad:chunked=true", "terngrad:share-scale=true",
         "powersgd:approx-rank=1", "powersgd:approx-rank=3"]
VARIABLE = ["threshold:lambda=0.002", "atomo:budget=2", "qsgd:bits=4,coding=elias", "threshold:lambda=1e-9",
            "qsgd:bits=2,coding=elias,block=64"]

# Of which a vote moves every weight by the rate itself.
LIVE = ["--model", "cnn:width=0.5", "--samples", 330, "--test-samples", 100, "--batch", 32, "--lr", 0.002, "--momentum", 0]


class LiveRuns(TrafficTest):
    def run_and_forecast(self, *arguments):
        out = self.folder / "run"
        self.run_program("train", *LIVE, *arguments, "--quiet", "--out", out, "--overwrite")
        _, epochs, summary = self.read_run(out)
        return epochs, summary, self.traffic(*LIVE, *arguments)

    def assert_exact(self, run, forecast):
        self.assertTrue(forecast.get("exact", True))
        self.assertEqual([run[key] for key in ["steps", *COUNTERS]], [forecast[key] for key in ["steps", *COUNTERS]])

    def assert_bounded(self, run, forecast):
        self.assertFalse(forecast["exact"])
        for key in ["steps", *COUNTERS]:
            self.assertGreaterEqual(run[key], forecast["least"][key], key)
            self.assertLessEqual(run[key], forecast[key], key)

    def one_codec_an_epoch(self, codecs, workers):
        plan = ",".join(f"{i}@{i}-{i + 1}" for i in range(len(codecs)))
        epochs, summary, forecast = self.run_and_forecast(
            "--workers", workers, "--epochs", len(codecs), "--controller", "schedule", "--levels", ";".join(codecs),
            "--plan", plan + ",mild")
        recipe = self.folder / "codecs.toml"
        recipe.write_text("".join(f'["{codec}"]\ncodec = "{codec}"\n' for codec in codecs))
        rows = self.traffic(*LIVE, "--workers", workers, "--epochs", 1, "--recipe", recipe)
        self.assertEqual(len(rows), len(epochs))
        yield from zip(codecs, epochs, rows)
        yield "whole run", summary, forecast

    def test_codecs_of_fixed_size(self):
        for workers in (2, 4):
            for codec, run, forecast in self.one_codec_an_epoch(FIXED, workers):
                with self.subTest(codec, workers=workers):
                    self.assert_exact(run, forecast)

    def test_codecs_of_variable_size(self):
        for workers in (2, 4):
            for codec, run, forecast in self.one_codec_an_epoch(VARIABLE, workers):
                with self.subTest(codec, workers=workers):
                    self.assert_bounded(run, forecast)

    def test_static_runs(self):
        for workers, arguments in [(2, ["--codec", "topk:keep=0.05", "--drop-last"]),
                                   (4, ["--codec", "powersgd:approx-rank=2", "--accumulate", 2]),
                                   (4, ["--codec", "topk:keep=0.3", "--parity", "paper"])]:
            with self.subTest(arguments):
                _, summary, forecast = self.run_and_forecast("--workers", workers, "--epochs", 2, *arguments)
                self.assert_exact(summary, forecast)

    def test_dgc_and_its_warm_up(self):
        _, summary, forecast = self.run_and_forecast(
            "--workers", 4, "--epochs", 2, "--codec", "dgc:keep=0.01,warmup=true")
        self.assert_bounded(summary, forecast)

    def test_a_schedule_in_windows(self):
        _, summary, forecast = self.run_and_forecast(
            "--workers", 2, "--epochs", 2, "--controller", "schedule", "--mild", "topk:keep=0.1", "--strong", "topk:keep=0.01",
            "--plan", "strong@0-2,mild", "--window", 4)
        self.assert_exact(summary, forecast)

    def test_batches_that_grow_with_the_schedule(self):
        _, summary, forecast = self.run_and_forecast(
            "--workers", 2, "--epochs", 3, "--controller", "smith", "--batch-mild", 64, "--batch-strong", 192, "--schedule",
            "step", "--milestones", "1", "--codec", "fp16")
        self.assert_exact(summary, forecast)

    def test_detectors_stay_in_their_range_and_replays_are_exact(self):
        levels = ["--mild", "powersgd:approx-rank=4", "--strong", "powersgd:approx-rank=1"]
        for controller, arguments in [("accordion", levels), ("lgreco", levels), ("adaqs", levels),
                                      ("joint", [*levels, "--batch-mild", 64, "--batch-strong", 128])]:
            with self.subTest(controller):
                _, summary, forecast = self.run_and_forecast(
                    "--workers", 2, "--epochs", 5, "--interval", 1, "--controller", controller, *arguments)
                self.assert_bounded(summary, forecast)
                self.assert_exact(summary, self.traffic(*LIVE, "--workers", 2, "--epochs", 5, "--replay", self.folder / "run"))


if __name__ == "__main__":
    unittest.main()
