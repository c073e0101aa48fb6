"""Language models and tables: read, trained, tested and recorded like images."""

import json
import math
import random
import shutil
import unittest

from program import ProgramTest, forget_after, weights
from train_test import without_times

LSTM = ["--model", "lstm:layers=1,hidden=24,dropout=0.1", "--data", "wikitext2"]
WORDS = [f"w{i}" for i in range(40)]


# Sentences in which each word decides the next but for some noise: a model that learns it comes far below 40.
def write_text(path, sentences, seed):
    draw = random.Random(seed)
    lines = []
    for _ in range(sentences):
        word = draw.randrange(40)
        line = []
        for _ in range(9):
            line.append(WORDS[word])
            word = (word * 7 + 3) % 40 if draw.random() < 0.9 else draw.randrange(40)
        lines.append(" " + " ".join(line) + " \n")
    path.write_text("".join(lines))


class Text(ProgramTest):
    def setUp(self):
        super().setUp()
        data = self.folder / "wikitext2"
        data.mkdir()
        for split, sentences in {"train": 1200, "valid": 20, "test": 150}.items():
            write_text(data / f"wiki.{split}.tokens", sentences, split)
        self.common = ["--data-dir", self.folder, "--workers", 2, "--batch", 8, "--bptt", 10, "--lr", 1, "--weight-decay", 0,
                       "--clip", 0.25]

    def train(self, out, *arguments):
        text, _ = self.run_program("train", *self.common, "--out", out, "--json", "--quiet", *arguments)
        return json.loads(text), self.read_run(self.folder / out)[1]

    def test_a_language_model_learns_and_repeats_itself(self):
        summary, epochs = self.train("a", *LSTM, "--epochs", 4)
        # 12,000 tokens, of them 11,999 with a next one, in 16 streams of 749 positions, 10 at a time.
        self.assertEqual([epoch["steps"] for epoch in epochs], [75] * 4)
        self.assertEqual(epochs[0]["global_batch"], 16)
        self.assertNotIn("test_accuracy", epochs[0])
        self.assertNotIn("test_accuracy", summary)
        perplexities = [epoch["test_perplexity"] for epoch in epochs]
        for epoch in epochs:
            self.assertAlmostEqual(epoch["test_perplexity"], math.exp(epoch["test_loss"]), delta=1e-9 * epoch["test_perplexity"])
        self.assertLess(perplexities[-1], 12)
        self.assertGreater(perplexities[0], 1.2 * perplexities[-1])
        self.assertEqual(summary["test_perplexity"], perplexities[-1])
        self.assertEqual(summary["best_test_perplexity"], min(perplexities))

        _, again = self.train("b", *LSTM, "--epochs", 4)
        for first, second in zip(epochs, again):
            for key in ("train_loss", "test_loss", "payload_bytes", "layers"):
                self.assertEqual(first[key], second[key])
        self.assertTrue(weights(self.folder / "a") == weights(self.folder / "b"))

    def test_goes_on_in_the_middle_of_its_streams(self):
        lstm = [*LSTM, "--epochs", 2]
        _, epochs = self.train("whole", *lstm, "--checkpoint-every", "40steps", "--keep", 9)
        shutil.copytree(self.folder / "whole", self.folder / "part")
        forget_after(self.folder / "part", 40)
        self.run_program("resume", "part", "--quiet")
        self.assertEqual(without_times(self.read_run(self.folder / "part")[1]), without_times(epochs))
        self.assertTrue(weights(self.folder / "whole") == weights(self.folder / "part"))

    def test_a_run_sends_what_traffic_foretells(self):
        for arguments in (["--codec", "topk:keep=0.02"], ["--codec", "powersgd:approx-rank=2", "--accumulate", 2, "--drop-last"]):
            options = [*self.common, *LSTM, "--samples", 5000, "--vocabulary", 30, "--epochs", 2, *arguments]
            run = json.loads(self.run_program("train", *options, "--out", "run", "--overwrite", "--quiet", "--json")[0])
            foretold = json.loads(self.run_program("traffic", *options, "--json")[0])
            self.assertTrue(foretold["exact"])
            for key in ("steps", "payload_bytes", "wire_bytes", "paper_floats"):
                self.assertEqual(run[key], foretold[key], key)

    def test_accordion_controls_a_language_model(self):
        _, epochs = self.train("levels", *LSTM, "--epochs", 3, "--controller", "accordion", "--interval", 1,
                               "--mild", "topk:keep=0.99", "--strong", "topk:keep=0.02")
        names = [layer["name"] for layer in epochs[0]["layers"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual({layer["level"] for layer in epochs[0]["layers"]}, {0})
        rows = json.loads(self.run_program("decide", "levels", "--json")[0])
        levels = {(row["epoch"], row["layer"]): row["level"] for row in rows}
        for epoch in epochs:
            for layer in epoch["layers"]:
                self.assertEqual(levels[epoch["epoch"], layer["name"]], layer["level"])

        _, again = self.train("replayed", *LSTM, "--epochs", 3, "--replay", "levels")
        for first, second in zip(epochs, again):
            self.assertEqual(first["train_loss"], second["train_loss"])
            self.assertEqual([layer["level"] for layer in first["layers"]], [layer["level"] for layer in second["layers"]])

    def test_settings_are_compared_by_perplexity(self):
        (self.folder / "pair.toml").write_text('[plain]\n[half]\ncodec = "fp16"\n')
        rows = json.loads(self.run_program("compare", "--recipe", "pair.toml", *self.common, *LSTM, "--epochs", 1, "--seeds", 1,
                                           "--json", "--quiet")[0])
        self.assertEqual([row["metric"] for row in rows], ["test_perplexity"] * 2)
        out, _ = self.run_program("compare", "--recipe", "pair.toml", *self.common, *LSTM, "--epochs", 1, "--seeds", 1, "--quiet")
        self.assertIn("test perplexity", out)

    def test_a_larger_batch_is_more_windows(self):
        _, epochs = self.train("batch", *LSTM, "--epochs", 2, "--controller", "smith", "--schedule", "step",
                               "--milestones", 1, "--decay", 4, "--batch-mild", 16, "--batch-strong", 64)
        self.assertEqual([(epoch["steps"], epoch["global_batch"]) for epoch in epochs], [(75, 16), (19, 64)])

    def test_fewer_words(self):
        _, epochs = self.train("words", *LSTM, "--epochs", 1, "--vocabulary", 20, "--samples", 3000, "--test-samples", 500)
        embedding = next(layer for layer in epochs[0]["layers"] if layer["name"] == "embedding.weight")
        self.assertEqual(embedding["elements"], 20 * 24)
        self.assertLess(epochs[0]["test_perplexity"], 20)

    def test_a_transformer_learns(self):
        summary, _ = self.train("gpt", "--model", "gpt:layers=1,heads=2,width=24,context=10,dropout=0", "--data", "wikitext2",
                                "--optimizer", "adamw", "--lr", 0.003, "--epochs", 3)
        self.assertLess(summary["test_perplexity"], 15)

    def test_a_recommender_learns(self):
        summary, epochs = self.train("dlrm", "--model", "dlrm", "--data", "clicks", "--samples", 20000, "--test-samples", 5000,
                                     "--batch", 64, "--lr", 0.1, "--clip", 0, "--momentum", 0.9, "--epochs", 2, "--codec", "topk:keep=0.05")
        self.assertGreater(summary["test_accuracy"], 0.6)
        self.assertLess(epochs[-1]["train_loss"], epochs[0]["train_loss"])

    def test_what_does_not_go_together_is_refused(self):
        for arguments, message in {
                ("--model", "lstm", "--data", "fashion-mnist"): "model=lstm learns from text, but the data set holds images",
                ("--model", "cnn", "--data", "wikitext2"): "model=cnn learns from images, but the data set holds text",
                (*LSTM, "--flip"): "flip=true is for images, but the data set holds none",
                (*LSTM, "--diagnose", "hessian"): "diagnose=hessian is for images",
                (*LSTM, "--samples", 12001): "samples=12001, expected at most 12000",
                ("--model", "gpt:heads=3,width=64", "--data", "wikitext2"): "heads",
                ("--model", "gpt:context=9", "--data", "wikitext2"): "windows of bptt=10 tokens, expected at most context=9",
                (*LSTM, "--samples", 16): "samples=16 tokens, expected more than batch x workers = 16",
                (*LSTM, "--samples", 160, "--drop-last"): "drop-last leaves nothing of an epoch of 160 samples, expected at least one "
                                                          "batch of 16 windows of 10 tokens (bptt)",
                (*LSTM, "--test-samples", 1): "test-samples=1, expected at least 2",
                (*LSTM, "--vocabulary", 2): "vocabulary=2, expected 0 for all words, or at least 3",
                ("--model", "dlrm", "--data", "clicks", "--vocabulary", 9): "vocabulary=9 is for text",
                ("--model", "dlrm", "--data", "clicks", "--samples", 60, "--drop-last", "--controller", "smith", "--batch-mild", 16,
                 "--batch-strong", 64): "drop-last leaves nothing of an epoch of 60 samples, expected at least one batch of 64",
        }.items():
            with self.subTest(arguments):
                self.assertIn(message, self.run_program("train", *self.common, *arguments, status=2)[1])


if __name__ == "__main__":
    unittest.main()
