"""The guard in whole runs: its record, its replay, what it refuses, and what it decides on links of known speed."""

import json
import pathlib
import re
import shutil
import subprocess
import unittest

from program import PROGRAM, ProgramTest, environment, weights

NETLAB = str(pathlib.Path(__file__).resolve().parent.parent / "tools" / "netlab")
NOT_ALLOWED = 77

SHORT = ["--model", "cnn", "--samples", "1600", "--test-samples", "500", "--batch", "8", "--epochs", "2", "--lr", "0.02", "--quiet"]
LEVELS = ["--controller", "accordion", "--mild", "powersgd:approx-rank=4", "--strong", "powersgd:approx-rank=1", "--interval", "1"]
EVENTS = {"probe", "decide", "go on", "check", "fall back"}


class GuardTest(ProgramTest):
    def events(self, folder):
        return [event for epoch in self.read_run(folder)[1] for event in epoch.get("guard", [])]

    def test_a_run_is_guarded_and_can_be_repeated(self):
        self.run_program("train", *SHORT, *LEVELS, "--workers", 2, "--guard", "harmless", "--out", "first")
        config, epochs, _ = self.read_run(self.folder / "first")
        self.assertEqual(config["options"]["guard"], "harmless")
        events = self.events(self.folder / "first")
        self.assertLessEqual({event["event"] for event in events}, EVENTS)
        self.assertEqual(events[0]["step"], 0)
        self.assertEqual([event["step"] for event in events], sorted(event["step"] for event in events))
        probed = [event for event in events if event["event"] == "probe"]
        self.assertTrue(any(set(event["levels"]) == {-1} for event in probed), "dense steps")
        self.assertTrue(any(max(event["levels"]) >= 0 for event in probed), "compressed ones")
        decided = [event for event in events if event["event"] == "decide" and "predicted_ms" in event]
        self.assertTrue(decided)
        for event in decided:
            self.assertGreater(event["measured_ms"], 0)
        for epoch in epochs:
            for layer in epoch["layers"]:
                self.assertLessEqual(layer["level"], layer["may"])
                self.assertTrue(layer["reason"])

        self.run_program("train", *SHORT, "--workers", 2, "--replay", "first", "--out", "again")
        _, repeated, _ = self.read_run(self.folder / "again")
        same = ("train_loss", "test_loss", "test_accuracy", "payload_bytes", "wire_bytes", "steps", "guard")
        self.assertEqual([{key: e.get(key) for key in same} for e in repeated], [{key: e.get(key) for key in same} for e in epochs])
        self.assertEqual(self.layers(repeated), self.layers(epochs))
        self.assertTrue(weights(self.folder / "first") == weights(self.folder / "again"))

    def layers(self, epochs):
        """Without reasons, which a replay has from the record's controller."""
        return [[{key: value for key, value in layer.items() if key != "reason"} for layer in epoch["layers"]] for epoch in epochs]

    def test_a_replay_records_the_levels_that_an_epoch_had(self):
        """Epochs of two steps: other levels are allowed, and put in force, at the end of the first."""
        self.run_program("train", *SHORT, "--samples", 32, "--workers", 2, "--guard", "harmless", "--controller", "schedule", "--plan",
                         "mild@0-1,strong", *LEVELS[2:6], "--out", "first")
        self.run_program("train", *SHORT, "--samples", 32, "--workers", 2, "--replay", "first", "--out", "again")
        (_, epochs, _), (_, repeated, _) = self.read_run(self.folder / "first"), self.read_run(self.folder / "again")
        self.assertEqual([next(layer["level"] for layer in epoch["layers"] if layer["name"] == "hidden.weight") for epoch in epochs], [0, 1])
        self.assertEqual(self.layers(repeated), self.layers(epochs))
        self.assertEqual([epoch.get("guard") for epoch in repeated], [epoch.get("guard") for epoch in epochs])

    def test_a_step_is_explained(self):
        out, _ = self.run_program("train", *SHORT[:-1], *LEVELS, "--workers", 2, "--guard", "fastest", "--epochs", 1, "--explain-step",
                                  "--out", "explained")
        for what in ("backward", "bucket 0"):
            self.assertRegex(out, rf"{what} +measured +\|.*\n +predicted \|")
        bucket = re.search(r"bucket 0 +measured +\|( *)([ewd]+)\n", out)
        self.assertIn("w", bucket[2])
        self.assertTrue(bucket[1], "backward comes first")
        self.assertRegex(out, r"0 +[\d.]+ ms\n")

    def test_settings_of_a_comparison_may_be_guarded(self):
        (self.folder / "pair.toml").write_text('seeds = [1]\nworkers = 2\nsamples = 800\ntest-samples = 500\nepochs = 1\nbatch = 8\n'
                                               'codec = "topk:keep=0.01"\n[free]\n[guarded]\nguard = "harmless"\n')
        self.run_program("compare", "--recipe", "pair.toml")
        for setting, guarded in (("free", False), ("guarded", True)):
            self.assertEqual(bool(self.events(self.folder / "runs/compare-pair" / setting / "seed-1")), guarded)

    def test_what_cannot_be_guarded_is_refused(self):
        for options, words in [
                (["--guard", "harmles"], "unknown guard \"harmles\""),
                (["--guard", "harmless", "--parity", "paper", "--codec", "topk:keep=0.1"],
                 "guard=harmless with parity=paper, which repeats the published code to the letter, expected guard=none"),
                (["--guard", "fastest", "--codec", "dgc"], "guard=fastest with a codec that keeps the optimizer's momentum"),
                (["--codec", "dgc", "--profile", "p.json"], "profile=p.json with guard=none")]:
            with self.subTest(options=options):
                self.assertIn(words, self.run_program("train", *SHORT, *options, status=2)[1])

        missing = ["--guard", "fastest", "--codec", "dgc", "--profile", "p.json"]
        self.assertIn("p.json: cannot read", self.run_program("train", *SHORT, *missing, status=1)[1])

    def test_without_a_guard_the_record_has_none(self):
        self.run_program("train", *SHORT, *LEVELS, "--workers", 2, "--out", "plain")
        _, epochs, _ = self.read_run(self.folder / "plain")
        self.assertNotIn("guard", epochs[0])
        self.assertNotIn("may", epochs[0]["layers"][0])


class ProfileTest(ProgramTest):
    """DGC keeps the optimizer's momentum: a profile decides, before the first step, for the whole run."""

    def profile(self, gbps, name="profile.json", **changed):
        link = {"latency_us": 1, "bandwidth_gbps": gbps}
        codec = {"codec": "dgc:keep=0.01", "encode_ms": 1, "decode_ms": 1, "rounds": [{"collective": "gather", "bytes": 20000}]}
        model = {"model": "cnn", "batch": 8, "parameters": 220234, "backward_ms": 10, "codecs": [codec]} | changed
        (self.folder / name).write_text(json.dumps({
            "format": "accordion-profile", "version": 1, "models": [model],
            "network": {"ranks": 2, "bandwidth_gbps": gbps, "sum": link, "gather": link, "scatter": link}}))
        return name

    def weights(self, out, *options):
        self.run_program("train", *SHORT, "--samples", 400, "--workers", 2, *options, "--out", out)
        return weights(self.folder / out)

    def test_plain_or_compressed_to_the_last_bit(self):
        dgc = ["--codec", "dgc:keep=0.01"]
        for gbps, same, level, word in [(1000, ["--codec", "none"], -1, "plain"), (0.01, dgc, 0, "compressed")]:
            with self.subTest(gbps=gbps):
                guarded = self.weights(f"guarded-{gbps}", *dgc, "--guard", "harmless", "--profile", self.profile(gbps))
                # With the optimizer's momentum on all tensors, or with DGC's, as it would be without a guard.
                self.assertEqual(guarded, self.weights(f"alone-{gbps}", *same))
                config, epochs, _ = self.read_run(self.folder / f"guarded-{gbps}")
                self.assertEqual(config["options"]["profile"], "profile.json")
                (event,) = epochs[0]["guard"]
                self.assertEqual((event["step"], event["event"], set(event["levels"])), (0, "decide", {level}))
                self.assertIn("by the profile, with 2 workers a step takes", event["reason"])
                self.assertNotIn("guard", epochs[1])
                self.assertEqual({layer["level"] for layer in epochs[1]["layers"]}, {level})
                (self.folder / "profile.json").unlink()
                self.assertEqual(guarded, self.weights(f"again-{gbps}", "--replay", f"guarded-{gbps}"))

    def test_a_profile_of_something_else_is_refused(self):
        for changed, words in [({"batch": 9}, "cnn with batch 9"), ({"parameters": 300000}, "has 300000 parameters"),
                               ({"model": "resnet20"}, "resnet20"), ({"codecs": []}, "has no times of dgc:keep=0.01")]:
            with self.subTest(changed=changed):
                refused = self.run_program("train", *SHORT, "--workers", 2, "--codec", "dgc:keep=0.01", "--guard", "fastest",
                                           "--profile", self.profile(1, **changed), status=2)[1]
                self.assertIn(words, refused)
                self.assertIn("profile.json: ", refused)


class OnLinksTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        check = subprocess.run([NETLAB, "check"], capture_output=True, text=True)
        if check.returncode == NOT_ALLOWED:
            raise unittest.SkipTest("no network namespaces here: " + check.stderr.strip())

    def last_levels(self, rate, *options):
        run = subprocess.run([NETLAB, "run", "--hosts", "4", "--rate", rate, "--", PROGRAM, "train", *SHORT, *options, "--out", "run"],
                             cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        epochs = [json.loads(line) for line in (self.folder / "run" / "epochs.jsonl").read_text().splitlines()]
        decided = [event for epoch in epochs for event in epoch.get("guard", []) if event["event"] in ("decide", "fall back")]
        names = [layer["name"] for layer in epochs[-1]["layers"]]
        return dict(zip(names, decided[-1]["levels"]))

    def test_the_same_run_ends_strong_on_a_slow_network_and_dense_on_a_fast_one(self):
        # 411 kB of one layer: 33 ms of the slow link each way, where SVDs take 7 to 15, and 2 or 3 of a link without a limit.
        run = ["--guard", "harmless", "--controller", "schedule", "--plan", "strong", "--mild", "atomo:budget=8", "--strong", "atomo:budget=2"]
        self.assertEqual(self.last_levels("100mbit", *run)["hidden.weight"], 1)
        shutil.rmtree(self.folder / "run")
        self.assertEqual(set(self.last_levels("none", *run).values()), {-1})


if __name__ == "__main__":
    unittest.main()
