"""Advice on whether compressing pays: what it prints, and what it refuses."""

import csv
import io
import json
import pathlib
import unittest

from program import ProgramTest

PROFILES = pathlib.Path(__file__).resolve().parent.parent / "profiles"
GPU, HOST = PROFILES / "p3.8xlarge-v100.json", PROFILES / "p3.8xlarge-v100-host.json"
SPLIT = ["backward_ms", "encoding_ms", "communication_ms", "decoding_ms", "rest_ms"]
EVERY_ROW = {"method", "workers", "bandwidth_gbps", "step_ms", *SPLIT, "near_linear_ratio", "verdict"}
OF_METHODS = {"wins", "break_even_gbps", "wins_on_slowest", "wins_up_to_workers", "gathered_bytes", "fits_up_to_workers",
              "extra_memory_bytes_per_parameter"}


class AdviseTest(ProgramTest):
    def advise(self, *arguments, profile=GPU):
        out, err = self.run_program("advise", "--profile", profile, *arguments)
        self.assertEqual(err, "")
        return out

    def refused(self, *arguments, status=2):
        _, err = self.run_program("advise", *arguments, status=status)
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        return err

    def check_rows(self, rows):
        self.assertEqual(rows[0]["method"], "none")
        for row in rows:
            self.assertAlmostEqual(sum(float(row[key]) for key in SPLIT), float(row["step_ms"]), delta=1e-3)

    def check_keys(self, point):
        """Each row says all that there is to say, and where it holds."""
        for row in point["rows"]:
            self.assertEqual(set(row), EVERY_ROW | (OF_METHODS if row["method"] != "none" else set()))
            for key in ("workers", "bandwidth_gbps", "verdict", "near_linear_ratio"):
                self.assertEqual(row[key], point[key])

    def test_json_of_one_point(self):
        advice = json.loads(self.advise("--model", "resnet50", "--workers", 96, "--published", "--json"))
        self.assertEqual((advice["workers"], advice["bandwidth_gbps"], advice["batch"]), (96, 10, 64))
        self.check_rows(advice["rows"])
        self.check_keys(advice)
        self.assertEqual(advice["best"], "none")
        self.assertTrue(advice["verdict"].startswith("Do not compress: at 10 Gbit/s plain DDP "), advice["verdict"])
        rank4 = next(row for row in advice["rows"] if row["method"] == "powersgd:approx-rank=4")
        self.assertFalse(rank4["wins"])
        self.assertEqual(len(rank4["break_even_gbps"]), 1)

    def test_published_verdicts(self):
        bert = json.loads(self.advise("--model", "bert-base", "--workers", 96, "--published", "--json"))
        steps = {row["method"]: row["step_ms"] for row in bert["rows"]}
        for rank, saving in ((4, 0.188), (8, 0.113)):
            self.assertAlmostEqual(1 - steps[f"powersgd:approx-rank={rank}"] / steps["none"], saving, delta=0.01)
        self.assertGreater(steps["powersgd:approx-rank=16"], steps["none"])
        small = json.loads(self.advise("--model", "resnet50", "--batch", 32, "--workers", 96, "--published", "--json"))
        self.assertEqual(small["best"], "powersgd:approx-rank=4")

    def test_a_method_within_a_hundredth_is_never_the_best(self):
        """By every rule that speaks: a saving of half a percent."""
        arguments = ["--model", "resnet50", "--workers", 96, "--published"]
        plain, *_, rank4 = sorted(json.loads(self.advise(*arguments, "--json"))["rows"], key=lambda row: row["method"].endswith("rank=4"))
        profile = json.loads(GPU.read_text())
        codec = next(each for each in profile["models"][0]["codecs"] if each["codec"] == rank4["method"])
        codec["encode_ms"] += 0.995 * plain["step_ms"] - rank4["step_ms"]
        mine = self.folder / "mine.json"
        mine.write_text(json.dumps(profile))
        one = json.loads(self.advise(*arguments, "--json", profile=mine))
        row = next(each for each in one["rows"] if each["method"] == rank4["method"])
        self.assertAlmostEqual(row["step_ms"] / plain["step_ms"], 0.995)
        self.assertEqual((one["best"], row["wins"]), ("none", False))
        self.assertLess(row["break_even_gbps"][0], 10)
        several = json.loads(self.advise(*arguments, "--bandwidth", "9.999..10Gbps", "--json", profile=mine))
        for each in several["points"] + several["regimes"]:
            self.assertEqual(each["best"], "none")

    def test_what_does_not_fit_into_memory_is_not_recommended(self):
        profile = json.loads(GPU.read_text())
        profile["models"][0]["codecs"] = [{"codec": "topk:keep=0.01", "encode_ms": 1, "decode_ms": 1, "rounds": [{"collective": "gather", "bytes": 1e6}]}]
        for memory, best, sentence in ((1, "topk:keep=0.01", "Compress with TopK 1 %"), (0.01, "none", "only up to 10 workers")):
            profile["memory_gb"] = memory
            mine = self.folder / "mine.json"
            mine.write_text(json.dumps(profile))
            arguments = ["--model", "resnet50", "--batch", 64, "--workers", 16, "--json"]
            one = json.loads(self.advise(*arguments, "--bandwidth", "1Gbps", profile=mine))
            self.assertEqual(one["best"], best)
            self.assertIn(sentence, one["verdict"])
            self.assertTrue(one["rows"][1]["wins"])
            several = json.loads(self.advise(*arguments, "--bandwidth", "1..1.1Gbps", profile=mine))
            for each in several["points"] + several["regimes"]:
                self.assertEqual(each["best"], best)

    def test_text_has_a_table_and_a_verdict(self):
        out = self.advise("--model", "resnet50", "--workers", 96, "--bandwidth", "25Gbps", profile=HOST)
        self.assertIn("none (plain DDP)", out)
        self.assertRegex(out, r"\n(Compress with|Do not compress: at 25 Gbit/s) ")
        self.assertRegex(out, r"[Nn]ear-linear")

    def test_ranges(self):
        arguments = ["--model", "resnet50", "--workers", "2..1024", "--bandwidth", "0.1..100Gbps"]
        answer = json.loads(self.advise(*arguments, "--format", "json", profile=HOST))
        self.assertEqual(sorted({point["workers"] for point in answer["points"]}), [2**k for k in range(1, 11)])
        rates = [point["bandwidth_gbps"] for point in answer["points"] if point["workers"] == 2]
        self.assertEqual((len(rates), rates[0], round(rates[-1], 6)), (10, 0.1, 100))
        turns, most = {}, {}
        for point in answer["points"]:
            self.check_rows(point["rows"])
            self.check_keys(point)
            self.assertRegex(point["verdict"], r"^(Compress with|Do not compress: )")
            self.assertEqual(point["verdict"].startswith("Do not"), point["best"] == "none")
            for row in point["rows"][1:]:
                # A break-even is of a number of workers, the most workers are of a bandwidth.
                key = (row["method"], point["workers"])
                self.assertEqual(turns.setdefault(key, row["break_even_gbps"]), row["break_even_gbps"])
                key = (row["method"], point["bandwidth_gbps"])
                self.assertEqual(most.setdefault(key, row["wins_up_to_workers"]), row["wins_up_to_workers"])
        one = json.loads(self.advise("--model", "resnet50", "--workers", 64, "--bandwidth", "100Gbps", "--json", profile=HOST))
        last = next(point for point in answer["points"] if point["workers"] == 64 and round(point["bandwidth_gbps"], 6) == 100)
        self.assertEqual([row["wins_up_to_workers"] for row in one["rows"][1:]], [row["wins_up_to_workers"] for row in last["rows"][1:]])
        for workers in (2, 1024):
            regimes = [each for each in answer["regimes"] if each["workers"] == workers]
            self.assertEqual((regimes[0]["from_gbps"], regimes[-1]["to_gbps"]), (0.1, 100))
        out = self.advise(*arguments, profile=HOST)
        for workers in (2, 1024):
            self.assertRegex(out, rf"\n{workers} workers: 0\.1 to .*\n  (Compress with|Do not compress: at) .* 10 Gbit/s.*\n.*[Nn]ear-linear")
        self.assertRegex(out, r"\nwins at Gbit/s, of workers +2 +4 .* 1024\n")
        self.assertRegex(out, r"\nup to workers, at Gbit/s +0\.1 .* 100 +memory for workers +bytes/parameter\n")
        rank4 = next(row for row in one["rows"] if row["method"] == "powersgd:approx-rank=4")
        self.assertRegex(out, rf"\npowersgd:approx-rank=4 .* below {rank4['break_even_gbps'][0]:.3g} ")
        self.assertRegex(out, rf"\npowersgd:approx-rank=4 +\d+ .* - +{rank4['extra_memory_bytes_per_parameter']:.3g}\n")

    def test_many_workers_at_one_bandwidth(self):
        out = self.advise("--model", "resnet50", "--workers", "8..64", "--bandwidth", "25Gbps", profile=HOST)
        self.assertRegex(out, r"\n64 workers: (Compress with .*: at|Do not compress: at) 25 Gbit/s ")

    def test_csv(self):
        out = self.advise("--model", "bert-base", "--workers", "8..96", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(len(rows), 5 * 5)  # 8, 16, 32, 64, 96 workers; plain and four methods.
        self.check_rows(rows)
        self.assertEqual(set(rows[0]), EVERY_ROW | OF_METHODS)
        self.assertEqual({int(row["workers"]) for row in rows}, {8, 16, 32, 64, 96})
        for row in rows:
            self.assertRegex(row["verdict"], r"^(Compress with|Do not compress: )")

    def test_csv_of_one_point_has_what_json_rows_have(self):
        arguments = ["--model", "bert-base", "--workers", 96]
        told = json.loads(self.advise(*arguments, "--json"))
        rows = list(csv.DictReader(io.StringIO(self.advise(*arguments, "--format", "csv"))))
        self.assertEqual(len(rows), len(told["rows"]))
        for row, expected in zip(rows, told["rows"]):
            self.assertEqual((int(row["workers"]), float(row["bandwidth_gbps"])), (96, told["bandwidth_gbps"]))
            self.assertEqual(row["verdict"], told["verdict"])
            self.assertEqual({key for key, value in row.items() if value}, {key for key, value in expected.items() if value not in (None, [])})
            for key, value in expected.items():
                if isinstance(value, bool):
                    self.assertEqual(row[key], str(value).lower(), key)
                elif isinstance(value, (int, float)):
                    self.assertAlmostEqual(float(row[key]), value, delta=1e-6 * abs(value), msg=key)
                elif isinstance(value, list):
                    self.assertEqual([f"{float(each):.6g}" for each in row[key].split(";") if each], [f"{each:.6g}" for each in value])

    def test_units(self):
        one = self.advise("--model", "resnet50", "--bandwidth", "500Mbps", "--json")
        self.assertEqual(one, self.advise("--model", "resnet50", "--bandwidth", "0.5Gbps", "--json"))
        self.assertEqual(one, self.advise("--model", "resnet50", "--bandwidth", "0.5", "--json"))

    def test_without_a_profile_it_calibrates_first(self):
        out, err = self.run_program("advise", "--model", "cnn", "--batch", 8, "--seconds", 3, "--json", timeout=300)
        self.assertIn("this machine is measured first", err)
        self.assertEqual(json.loads(out)["model"], "cnn")
        again, _ = self.run_program("advise", "--profile", "profile.json", "--json")
        self.assertEqual(again, out)
        self.assertIn("expected --profile profile.json", self.refused("--model", "cnn"))

    def test_mistakes_are_named(self):
        given = ["--profile", GPU]
        self.assertIn('did you mean "resnet50"', self.refused(*given, "--model", "resnet5"))
        self.assertIn("several models: resnet50, resnet101, bert-base", self.refused(*given))
        self.assertIn("resnet50 with batch 64", self.refused(*given, "--model", "resnet50", "--batch", 65))
        for workers in ("1", "0..8", "2..5000", "2.5", "eight", "8..4", "2...8", ""):
            self.refused(*given, "--model", "resnet50", f"--workers={workers}" if workers else "--workers")
        for rate in ("0", "-1Gbps", "10Gbit", "fast", "100..1Gbps", "nan", "inf", "1e400"):
            self.assertIn("bandwidth", self.refused(*given, "--model", "resnet50", f"--bandwidth={rate}"))
        self.assertIn("text, json", self.refused(*given, "--model", "resnet50", "--format", "xml"))
        self.assertIn("did you mean --bandwidth", self.refused(*given, "--model", "resnet50", "--bandwith", "1"))

    def test_broken_profiles(self):
        missing = self.refused("--profile", self.folder / "none.json", status=1)
        self.assertIn("none.json: cannot read", missing)
        broken = self.folder / "broken.json"
        text = GPU.read_text()
        for content, complaint in (
            (text[: len(text) // 2], "cut short"),
            ("[]", "expected an object"),
            (text.replace('"version": 1', '"version": 9'), "version is 9"),
            (text.replace('"backward_ms": 122', '"backward_ms": -122'), "models[0].backward_ms is -122"),
            (text.replace('"batch": 64', '"bach": 64', 1), "batch is missing"),
            (text.replace('"memory_gb"', '"memory_gib"'), 'did you mean "memory_gb"'),
        ):
            broken.write_text(content)
            self.assertIn(complaint, self.refused("--profile", broken, "--model", "resnet50", status=1))


if __name__ == "__main__":
    unittest.main()
