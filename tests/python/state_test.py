"""What a State keeps, counts and records."""

import json
import os
import pathlib
import pickle
import subprocess
import tempfile
import unittest

import torch

import accordion
from ranks import SHAPES, Given, RanksTest, gradients, hooked, network, run_ranks, samples, step, wrapped

PROGRAM = os.environ.get("ACCORDION", "")


def train(rank, folder, steps, stop=None, resume=False, residuals="keep", save_of=None, **options):
    """Steps of a small network, epochs of three; saves after `stop` and ends there. Gives the parameters."""
    ddp, announced = wrapped(network(), bucket_cap_mb=0.005), 0
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1, momentum=0 if "dgc" in options.get("codec", "") else 0.9)
    options.setdefault("guard", "none")
    state = accordion.State(ddp, optimizer=optimizer, **options)

    def counting(state, bucket):
        nonlocal announced
        announced += any(p.numel() >= 1024 for p in bucket.parameters())
        return accordion.hook(state, bucket)

    ddp.register_comm_hook(state, counting)
    first = 0
    if resume:
        saved = torch.load(f"{folder}/{rank if save_of is None else save_of}.pt")
        ddp.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        state.load_state_dict(saved["accordion"], residuals=residuals)
        first, announced = saved["step"], saved["announced"]
    for s in range(first, steps):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 if s < 7 else 0.01
        optimizer.zero_grad()
        inputs, labels = samples(rank, s)
        torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()
        if "window" in options:
            state.step_end(0.1 if s + 1 < 7 else 0.01)
        if s % 3 == 2:
            state.epoch_end(0.1 if s + 1 < 7 else 0.01, train_loss=1.0, test_accuracy=0.5)
        if s + 1 == stop:
            torch.save({"model": ddp.state_dict(), "optimizer": optimizer.state_dict(), "accordion": state.state_dict(),
                        "step": s + 1, "announced": announced}, f"{folder}/{rank}.pt")
            break
    traffic = state.traffic()
    traffic.pop("sent_bytes")  # Setting up a group sends too.
    if "dgc" in options.get("codec", ""):  # Says how long its messages are, once a bucket; DDP's first step has but one.
        traffic["control_bytes"] -= 8 * announced
    return [p.detach().clone() for p in ddp.parameters()], traffic, state.levels(), state.decisions()


class Checkpoints(RanksTest):
    OPTIONS = [
        {"controller": "accordion", "mild": "topk:keep=0.2", "strong": "topk:keep=0.05", "interval": 1},
        {"controller": "accordion", "mild": "powersgd:approx-rank=4", "strong": "powersgd:approx-rank=1", "interval": 1,
         "window": 2},
        {"codec": "dgc:keep=0.05"},
        {"codec": "qsgd:bits=4"},
        {"controller": "lgreco", "mild": "topk:keep=0.2", "strong": "topk:keep=0.02"},
    ]

    def test_a_resumed_run_is_the_run_that_never_stopped(self):
        for options in self.OPTIONS:
            for stop in (4, 6):
                with self.subTest(f"{options} stop {stop}"), tempfile.TemporaryDirectory() as folder:
                    def whole(rank):
                        return train(rank, folder, 12, **options)

                    def begun(rank):
                        return train(rank, folder, 12, stop=stop, **options)

                    def resumed(rank):
                        return train(rank, folder, 12, resume=True, **options)

                    expected = run_ranks(2, whole)
                    run_ranks(2, begun)
                    for one, other in zip(run_ranks(2, resumed), expected):
                        self.assert_same(one[0], other[0])
                        self.assertEqual(one[1:], other[1:])

    def test_another_ranks_state_is_refused_with_advice(self):
        with tempfile.TemporaryDirectory() as folder:
            options = self.OPTIONS[0]
            run_ranks(2, lambda rank: train(rank, folder, 12, stop=4, **options))

            def wrong(rank):
                with self.assertRaisesRegex(ValueError, f"rank {rank} of 2 was given the state of rank 0 of 2.*save one file a "
                                                        "rank.*residuals=\"drop\""):
                    train(rank, folder, 12, resume=True, save_of=0, **options)

            run_ranks(2, wrong)  # Rank 0 too, which was given its own: it must not wait for the other.

            def dropped(rank):
                return train(rank, folder, 12, resume=True, residuals="drop", save_of=0, **options)

            for ranks in (2, 3):
                results = run_ranks(ranks, dropped)
                for one in results[1:]:
                    self.assert_same(one[0], results[0][0])
                self.assertEqual(results[0][3][0]["epoch"], 0, "decisions of before are there")

    def test_what_is_not_a_state(self):
        def body(rank):
            ddp, state = hooked(network())
            good = state.state_dict()
            pickle.loads(pickle.dumps(good))
            for bad, words in self.damaged(good):
                with self.assertRaisesRegex(ValueError, words):
                    state.load_state_dict(bad)
            with self.assertRaisesRegex(ValueError, "residuals='maybe', expected 'keep' or 'drop'"):
                state.load_state_dict(good, residuals="maybe")

        run_ranks(1, body)

    def damaged(self, good):
        def without(name):
            return {key: value for key, value in good.items() if key != name}

        return [({}, "plugin/counts is missing"), (3, "load_state_dict.*int.*, expected what state_dict"),
                (good | {"engine/epoch": 3}, "engine/epoch is of type .*int.*, expected what state_dict"),
                (without("plugin/epochs"), "plugin/epochs is missing"), (without("engine/rank"), "rank is missing"),
                (without("engine/control/levels"), "levels is missing"), (without("engine/exchange/step"), "exchange/step is missing")]

    def test_one_ranks_bad_state_is_refused_by_all(self):
        def body(rank):
            ddp = wrapped(network())
            good = accordion.State(ddp, guard="none").state_dict()
            for bad, words in self.damaged(good):
                state = accordion.State(ddp, guard="none", timeout=20)
                with self.assertRaisesRegex(ValueError, words if rank else "load_state_dict.*: another rank was given"):
                    state.load_state_dict(bad if rank else good)

        run_ranks(2, body)

    def test_a_record_may_begin_or_end_with_a_stop(self):
        """In mid-epoch, of which rank 0 has watched a part for its record alone."""
        for options in ({"codec": "qsgd:bits=4"}, {"codec": "topk:keep=0.05"}):
            for first, then in (({}, {"record": "later"}), ({"record": "earlier"}, {})):
                with self.subTest(f"{options} {first} {then}"), tempfile.TemporaryDirectory() as folder:
                    def placed(record):
                        return {name: f"{folder}/{value}" for name, value in record.items()}

                    expected = run_ranks(2, lambda rank: train(rank, folder, 8, **options))
                    run_ranks(2, lambda rank: train(rank, folder, 8, stop=4, **options, **placed(first)))
                    got = run_ranks(2, lambda rank: train(rank, folder, 8, resume=True, **options, **placed(then)))
                    for one, other in zip(got, expected):
                        self.assert_same(one[0], other[0])

    def test_a_share_of_the_samples_is_kept(self):
        def body(rank):
            ddp, state = hooked(Given(SHAPES))
            state.set_batch((3, 1)[rank], 4)
            saved = state.state_dict()
            other, resumed = hooked(Given(SHAPES))
            resumed.load_state_dict(saved)
            return step(ddp, gradients(rank, 0)), step(other, gradients(rank, 0))

        for whole, resumed in run_ranks(2, body):
            self.assert_same(resumed, whole)


class Record(RanksTest):
    OPTIONS = {"controller": "accordion", "mild": "topk:keep=0.2", "strong": "topk:keep=0.05", "interval": 1}

    def test_the_folder_is_a_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            record = f"{folder}/runs/x"
            decisions = run_ranks(2, lambda rank: train(rank, folder, 12, record=record, **self.OPTIONS))[0][3]
            rows = json.loads(subprocess.run([PROGRAM, "decide", record, "--json"], capture_output=True, text=True,
                                             check=True).stdout)
            layers = {(epoch["epoch"], layer["name"]): layer for epoch in decisions for layer in epoch["layers"]}
            self.assertEqual(len(rows), len(layers))
            for row in rows:
                layer = layers[row["epoch"], row["layer"]]
                self.assertEqual((row["level"], row["codec"], row["reason"]), (layer["level"], layer["codec"], layer["reason"]))
            self.assertEqual({layer["codec"].split(",")[0] for layer in layers.values()},
                             {"none", "topk:keep=0.2", "topk:keep=0.05"})
            config = json.loads(pathlib.Path(record, "config.json").read_text())
            self.assertEqual((config["workers"], config["options"]["model"]), (2, "Sequential"))
            self.assertEqual(len(config["tensors"]), 6)
            self.assertEqual(json.loads(pathlib.Path(record, "summary.json").read_text())["epochs"], 4)
            page = subprocess.run([PROGRAM, "report", record, "-o", f"{folder}/page.html"], capture_output=True, text=True)
            self.assertEqual(page.returncode, 0, page.stderr)
            self.assertIn("0.weight", pathlib.Path(folder, "page.html").read_text())

    def test_a_resumed_record_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            def lines(record):
                timed = ("seconds", "sent_bytes", "hidden_share", "step_split")
                return [{k: v for k, v in json.loads(line).items() if k not in timed}
                        for line in pathlib.Path(record, "epochs.jsonl").read_text().splitlines()]

            whole, cut = f"{folder}/whole", f"{folder}/cut"
            run_ranks(2, lambda rank: train(rank, folder, 12, record=whole, **self.OPTIONS))
            run_ranks(2, lambda rank: train(rank, folder, 12, stop=7, record=cut, **self.OPTIONS))
            self.assertEqual(len(lines(cut)), 2)
            run_ranks(2, lambda rank: train(rank, folder, 12, resume=True, record=cut, **self.OPTIONS))
            self.assertEqual(lines(cut), lines(whole))

            def again(rank):
                expected = "rank 0 cannot write its record" if rank else "holds a run already"
                with self.assertRaisesRegex((ValueError, RuntimeError), expected):
                    train(rank, folder, 3, record=whole, **self.OPTIONS)

            run_ranks(2, again)  # None waits for another.
            self.assertEqual(lines(cut), lines(whole), "nothing was overwritten")

    def test_the_interface_is_the_one_that_is_named(self):
        def body(rank):
            os.environ["GLOO_SOCKET_IFNAME"] = "nosuch0"
            with self.assertRaisesRegex(ValueError, "GLOO_SOCKET_IFNAME=nosuch0, expected a network interface of this machine"):
                hooked(network())

        run_ranks(1, body)

    def test_traffic_is_counted(self):
        def body(rank):
            ddp, state = hooked(Given(SHAPES), codec="topk:keep=0.05")
            for s in range(3):
                step(ddp, gradients(rank, s))
            return state.traffic()

        elements = [torch.zeros(shape).numel() for shape in SHAPES]
        large = [n for n, shape in zip(elements, SHAPES) if len(shape) > 1 and n >= 1024]
        payload = 3 * (sum(8 * int(0.05 * n) for n in large) + 4 * (sum(elements) - sum(large)))
        for traffic in run_ranks(2, body):
            self.assertEqual(traffic["steps"], 3)
            self.assertEqual(traffic["payload_bytes"], payload)
            self.assertEqual(traffic["plain_bytes"], 3 * 4 * sum(elements))
            self.assertEqual(traffic["entries"], 3 * sum(int(0.05 * n) for n in large))
            self.assertGreaterEqual(traffic["sent_bytes"], traffic["wire_bytes"])


if __name__ == "__main__":
    unittest.main()
