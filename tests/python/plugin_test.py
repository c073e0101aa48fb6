"""The PyTorch plugin between real processes: what comes out of the hook, whatever DDP does around it."""

import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import torch
import torch.distributed as dist

import accordion
from ranks import SHAPES, TOPK, Given, RanksTest, free_port, gradients, hooked, means, network, plain_mean, run_ranks, samples, step, wrapped

CPP_DDP = os.environ.get("CPP_DDP", "")
# What tells more of tensors as small as these than the defaults do.
TELLING = {"bf16": "feedback=true", "topk": "keep=0.05", "mstopk": "keep=0.05", "randomk": "keep=0.05", "dgc": "keep=0.05",
           "terngrad": "chunked=true", "powersgd": "approx-rank=2", "atomo": "budget=2", "threshold": "lambda=1.5"}
SETTINGS = [f"{codec}:{TELLING[codec]}" if codec in TELLING else codec for codec in accordion.codecs()]


class Equality(RanksTest):
    def test_every_codec_gives_what_the_cpp_ddp_gives(self):
        ranks, steps = 2, 4
        for setting in SETTINGS:
            with self.subTest(setting), tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                (folder / "shapes").write_text("".join(" ".join(map(str, shape)) + "\n" for shape in SHAPES))
                port = free_port()
                for rank in range(ranks):
                    data = b"".join(t.numpy().tobytes() for s in range(steps) for t in gradients(rank, s))
                    (folder / f"gradients-{rank}").write_bytes(data)
                peers = [subprocess.Popen([CPP_DDP, setting, "5", str(rank), str(ranks), str(port), str(folder)],
                                          stderr=subprocess.PIPE, text=True) for rank in range(ranks)]
                ours = run_ranks(ranks, lambda rank: means(rank, steps, codec=setting, seed=5))
                for rank, peer in enumerate(peers):
                    self.assertEqual(peer.communicate(timeout=60)[1], "")
                    expected = (folder / f"means-{rank}").read_bytes()
                    got = b"".join(t.numpy().tobytes() for tensors in ours[rank] for t in tensors)
                    self.assertEqual(len(got), len(expected))
                    self.assertEqual(got, expected, f"rank {rank}")

    def test_plain_means(self):
        for ranks in (1, 2, 3):
            for got in run_ranks(ranks, means):
                for s, tensors in enumerate(got):
                    for tensor, expected in zip(tensors, plain_mean(ranks, s)):
                        torch.testing.assert_close(tensor, expected)

    def test_shares_of_samples(self):
        def body(rank):
            ddp, state = hooked(Given(SHAPES))
            state.set_batch((3, 1)[rank], 4)
            return step(ddp, gradients(rank, 0))

        for got in run_ranks(2, body):
            for tensor, first, second in zip(got, gradients(0, 0), gradients(1, 0)):
                torch.testing.assert_close(tensor, (3 * first + second) / 4)


class WithDdp(RanksTest):
    """Whatever DDP does, what is exchanged stays the same."""

    def check(self, ddp_options, **options):
        expected = run_ranks(2, lambda rank: means(rank, **TOPK))
        self.assert_same(run_ranks(2, lambda rank: means(rank, ddp_options=ddp_options, **TOPK, **options)), expected)

    def test_gradient_as_bucket_view(self):
        self.check({"gradient_as_bucket_view": True})

    def test_static_graph(self):
        self.check({"static_graph": True})

    def test_find_unused_parameters(self):
        self.check({"find_unused_parameters": True})

    def test_bucket_rebuilds(self):
        def buckets(rank):
            ddp, counts = wrapped(Given(SHAPES), bucket_cap_mb=0.005), [0] * 3

            def counting(state, bucket):
                counts[s] += 1
                return accordion.hook(state, bucket)

            ddp.register_comm_hook(accordion.State(ddp, guard="none", **TOPK), counting)
            for s in range(3):
                step(ddp, gradients(rank, s))
            return counts

        self.assertEqual(run_ranks(2, buckets), [[1, 3, 3]] * 2, "nothing is rebuilt")
        self.check({"bucket_cap_mb": 0.005})

    def test_exchange_after_backward(self):
        self.check({"bucket_cap_mb": 0.005}, overlap=False)

    def test_no_sync_adds_up(self):
        def body(rank, accumulate):
            ddp, _ = hooked(Given(SHAPES), **TOPK)
            results = []
            for s in range(3):
                given = gradients(rank, s)
                ddp.zero_grad()
                if accumulate:  # Halves, which add up to the whole exactly.
                    with ddp.no_sync():
                        ddp([g / 2 for g in given]).backward()
                    given = [g / 2 for g in given]
                ddp(given).backward()
                results.append([p.grad.clone() for p in ddp.parameters()])
            return results

        self.assert_same(run_ranks(2, body, True), run_ranks(2, body, False))

    def test_an_unused_branch_keeps_what_it_is_owed(self):
        """A parameter that no rank uses in odd steps: nothing of it is lost, and nothing is sent for it."""

        def body(rank, skip):
            ddp, _ = hooked(Given(SHAPES), ddp_options={"find_unused_parameters": True}, **TOPK)
            results = []
            for s in range(8):
                given = gradients(rank, s)
                if skip and s % 2:
                    given[1] = None
                ddp.zero_grad(set_to_none=True)
                ddp(given).backward()
                results.append(None if ddp.module.p1.grad is None else ddp.module.p1.grad.clone())
            return results

        def only_even(rank):
            ddp, _ = hooked(Given(SHAPES), **TOPK)
            return [step(ddp, gradients(rank, s))[1] for s in range(0, 8, 2)]

        got, expected = run_ranks(2, body, True), run_ranks(2, only_even)
        self.assertEqual([one is None for one in got[0]], [False, True] * 4)
        self.assert_same([one for one in got[0] if one is not None], expected[0])

    def test_a_parameter_frozen_in_mid_training(self):
        def body(rank):
            ddp, state = hooked(network(), ddp_options={"find_unused_parameters": True}, codec="topk:keep=0.2")
            optimizer = torch.optim.SGD(ddp.parameters(), 0.2)
            frozen = ddp.module[2].weight
            for s in range(12):
                if s == 6:
                    frozen.requires_grad_(False)
                    before = frozen.detach().clone()
                optimizer.zero_grad(set_to_none=True)
                inputs, labels = samples(rank, s)
                torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
                optimizer.step()
            state.epoch_end(optimizer)
            return torch.equal(before, frozen), [p.detach().clone() for p in ddp.parameters()]

        (kept, first), (_, second) = run_ranks(2, body)
        self.assertTrue(kept)
        self.assert_same(first, second)

    def test_two_models_in_a_process(self):
        def body(rank):
            one, _ = hooked(Given(SHAPES), **TOPK)
            two, _ = hooked(Given(SHAPES), codec="powersgd:approx-rank=2")
            return [(step(one, gradients(rank, s)), step(two, gradients(rank, s))) for s in range(4)]

        both = run_ranks(2, body)
        self.assert_same([[one for one, _ in rank] for rank in both], run_ranks(2, lambda rank: means(rank, **TOPK)))
        self.assert_same([[two for _, two in rank] for rank in both],
                         run_ranks(2, lambda rank: means(rank, codec="powersgd:approx-rank=2")))

    def test_sub_groups(self):
        """Two pairs of ranks that train apart; a rank's place in its pair is not its place in the world. Their first ranks come in one
        order, the others in the opposite one."""

        def body(rank):
            groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
            ddp = wrapped(Given(SHAPES), groups[rank // 2])
            time.sleep(0.7 if rank in (1, 2) else 0)
            state = accordion.State(ddp, guard="none", timeout=30, **TOPK)
            ddp.register_comm_hook(state, accordion.hook)
            result = [step(ddp, gradients(rank, s)) for s in range(4)]
            state.epoch_end(0.1)
            return result

        def pair(rank, first):
            ddp, _ = hooked(Given(SHAPES), **TOPK)
            return [step(ddp, gradients(first + rank, s)) for s in range(4)]

        self.assert_same(run_ranks(4, body), run_ranks(2, pair, 0) + run_ranks(2, pair, 2))

    def test_python_runs_while_a_rank_waits(self):
        def body(rank):
            import threading
            ddp, _ = hooked(Given(SHAPES), **TOPK)
            ticks, stop = 0, threading.Event()

            def tick():
                nonlocal ticks
                while not stop.wait(0.01):
                    ticks += 1

            ticker = threading.Thread(target=tick)
            step(ddp, gradients(rank, 0))
            ticker.start()
            if rank == 1:
                time.sleep(1)
            step(ddp, gradients(rank, 1))
            stop.set()
            ticker.join()
            return ticks

        self.assertGreater(run_ranks(2, body)[0], 20, "the GIL was held while gradients travelled")


if __name__ == "__main__":
    unittest.main()
