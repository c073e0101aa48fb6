"""Batches that follow the controller: BatchSize's micro-batches, rates, record, and what is left of them after a stop."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

import accordion
from ranks import RanksTest, network, run_ranks, samples

PROGRAM = os.environ.get("ACCORDION", "")
MICRO_BATCH, MILD, STRONG = 8, 16, 64


def schedule(epoch):
    return 0.01 if epoch < 3 else 0.001


def train(rank, folder, epochs, resume=False, record=None, codec="topk:keep=0.2"):
    """Epochs of three steps, of which the last writes a checkpoint. What each epoch's batch was, and why; the parameters; decisions."""
    ddp = DDP(network())
    optimizer = torch.optim.SGD(ddp.parameters(), schedule(0), momentum=0.5)
    batch = accordion.BatchSize(ddp, micro_batch=MICRO_BATCH, batch_mild=MILD, batch_strong=STRONG, interval=1, threshold=0.9,
                                codec=codec, guard="none", optimizer=optimizer, record=record)
    ddp.register_comm_hook(batch, accordion.hook)
    first = 0
    if resume:
        saved = torch.load(f"{folder}/{rank}.pt")
        ddp.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        batch.load_state_dict(saved["accordion"])
        first = saved["epoch"]
    chosen = []
    for epoch in range(first, epochs):
        chosen.append((batch.accumulate, batch.factor, batch.reason))
        for group in optimizer.param_groups:
            group["lr"] = schedule(epoch) * batch.factor
        for s in range(3):
            optimizer.zero_grad()
            for micro in range(batch.accumulate):
                inputs, labels = samples(rank, 100 * s + micro, MICRO_BATCH)
                with torch.enable_grad() if micro + 1 == batch.accumulate else ddp.no_sync():
                    (torch.nn.functional.cross_entropy(ddp(inputs), labels) / batch.accumulate).backward()
            optimizer.step()
        batch.epoch_end(schedule(epoch + 1))
    torch.save({"model": ddp.state_dict(), "optimizer": optimizer.state_dict(), "accordion": batch.state_dict(), "epoch": epochs},
               f"{folder}/{rank}.pt")
    return chosen, [p.detach().clone() for p in ddp.parameters()], batch.decisions()


class Batches(RanksTest):
    def test_they_follow_the_controller(self):
        with tempfile.TemporaryDirectory() as folder:
            record = f"{folder}/run"
            (chosen, _, decisions), (others, _, nothing) = run_ranks(2, lambda rank: train(rank, folder, 4, record=record))
            self.assertEqual([one[:2] for one in chosen], [(1, 1.0), (1, 1.0), (4, 4.0), (4, 4.0)])
            self.assertEqual([one[:2] for one in others], [one[:2] for one in chosen])
            lines = [json.loads(line) for line in pathlib.Path(record, "epochs.jsonl").read_text().splitlines()]
            rows = json.loads(subprocess.run([PROGRAM, "decide", record, "--json"], capture_output=True, text=True,
                                             check=True).stdout)
        self.assertEqual([line["global_batch"] for line in lines], [16, 16, 64, 64])
        for epoch, line in enumerate(lines):
            self.assertEqual(line["schedule_lr"], schedule(epoch))
            self.assertAlmostEqual(line["lr"], schedule(epoch) * line["global_batch"] / MILD)
            self.assertEqual(line["batch_reason"], chosen[epoch][2])
            self.assertEqual({key: decisions[epoch][key] for key in ("lr", "global_batch", "batch_reason")},
                             {key: line[key] for key in ("lr", "global_batch", "batch_reason")})
            self.assertEqual({(row["batch"], row["batch_reason"]) for row in rows if row["epoch"] == epoch},
                             {(line["global_batch"], line["batch_reason"])})
        self.assertNotEqual(chosen[1][2], chosen[2][2])
        self.assertTrue(all(reason for _, _, reason in chosen))
        self.assertEqual(nothing, [])

    def test_gradients_are_the_means_of_the_whole_batch(self):
        """However it is cut: the step of a batch of 64 is that of four micro-batches, or of one that holds them all."""
        def body(rank, micro_batch):
            ddp = DDP(network())
            batch = accordion.BatchSize(ddp, micro_batch=micro_batch, batch_mild=64, batch_strong=64, guard="none")
            ddp.register_comm_hook(batch, accordion.hook)
            inputs, labels = samples(rank, 0, 32)
            for micro in range(batch.accumulate):
                part = slice(micro * micro_batch, (micro + 1) * micro_batch)
                with torch.enable_grad() if micro + 1 == batch.accumulate else ddp.no_sync():
                    (torch.nn.functional.cross_entropy(ddp(inputs[part]), labels[part]) / batch.accumulate).backward()
            return [p.grad.clone() for p in ddp.parameters()]

        for cut, whole in zip(run_ranks(2, body, 8)[0], run_ranks(2, body, 32)[0]):
            torch.testing.assert_close(cut, whole)

    def test_a_resumed_run_is_the_run_that_never_stopped(self):
        def lines(record):
            timed = ("seconds", "sent_bytes", "hidden_share", "step_split")
            return [{k: v for k, v in json.loads(line).items() if k not in timed}
                    for line in pathlib.Path(record, "epochs.jsonl").read_text().splitlines()]

        with tempfile.TemporaryDirectory() as folder:
            whole = run_ranks(2, lambda rank: train(rank, folder, 4, record=f"{folder}/whole"))
            for stop in (1, 2, 3):
                cut = f"{folder}/{stop}"
                run_ranks(2, lambda rank: train(rank, folder, stop, record=cut))
                for got, expected in zip(run_ranks(2, lambda rank: train(rank, folder, 4, resume=True, record=cut)), whole):
                    self.assertEqual(got[0], expected[0][stop:])
                    self.assert_same(got[1], expected[1])
                self.assertEqual(lines(cut), lines(f"{folder}/whole"))


if __name__ == "__main__":
    unittest.main()
