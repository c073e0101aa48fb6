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


class Options(RanksTest):
    def test_the_norm_is_limited_before_compression(self):
        def clipped(rank, s):
            given = gradients(rank, s)
            norm = torch.cat([g.flatten() for g in given]).norm()
            self.assertGreater(norm, 3)
            return [g * 3 / norm for g in given]

        for got in run_ranks(2, lambda rank: means(rank, 2, clip=3)):
            for s, tensors in enumerate(got):
                for tensor, first, second in zip(tensors, clipped(0, s), clipped(1, s)):
                    torch.testing.assert_close(tensor, (first + second) / 2)

    def test_threads_change_no_bits(self):
        for codec in ("topk:keep=0.05", "powersgd:approx-rank=2", "qsgd:bits=4"):
            with self.subTest(codec):
                self.assert_same(run_ranks(2, lambda rank: means(rank, codec=codec, threads=3)),
                                 run_ranks(2, lambda rank: means(rank, codec=codec)))

    def test_a_step_that_is_not_finite_may_throw(self):
        """On every rank; what follows is as if the step had been skipped."""
        def body(rank, non_finite):
            ddp, state = hooked(Given(SHAPES), non_finite=non_finite, **TOPK)
            results = []
            for s in range(4):
                given = gradients(rank, s)
                if s != 1:
                    results.append(step(ddp, given))
                    continue
                if rank == 1:
                    given[1][2, 3] = float("nan")
                if non_finite == "throw":
                    with self.assertRaisesRegex(RuntimeError, "a rank's gradients are not finite"):
                        step(ddp, given)
                else:
                    step(ddp, given)
            return results, state.traffic()["dropped_steps"]

        for (got, dropped), (expected, _) in zip(run_ranks(2, body, "throw"), run_ranks(2, body, "skip")):
            self.assert_same(got, expected)
            self.assertEqual(dropped, 1)


class WithDdp(RanksTest):
    """Whatever DDP does, what is exchanged stays the same."""

    def check(self, ddp_options, **options):
        expected = run_ranks(2, lambda rank: means(rank, **TOPK))
        self.assert_same(run_ranks(2, lambda rank: means(rank, ddp_options=ddp_options, **TOPK, **options)), expected)

    def test_gradient_as_bucket_view(self):
        self.check({"gradient_as_bucket_view": True})

    def test_static_graph(self):
        self.check({"static_graph": True})
        self.without_one({"static_graph": True, "bucket_cap_mb": 0.005})

    def test_find_unused_parameters(self):
        self.check({"find_unused_parameters": True})
        self.without_one({"find_unused_parameters": True, "bucket_cap_mb": 0.005})

    def without_one(self, ddp_options):
        """A parameter that no rank ever uses, in a bucket between others: those are as ever."""
        def body(rank):
            ddp, _ = hooked(Given(SHAPES), ddp_options=ddp_options, **TOPK)
            results = []
            for s in range(4):
                given = gradients(rank, s)
                given[1] = None
                ddp.zero_grad(set_to_none=True)
                ddp(given).backward()
                unused = ddp.module.p1.grad
                self.assertTrue(unused is None or not unused.any())
                results.append([p.grad.clone() for i, p in enumerate(ddp.parameters()) if i != 1])
            return results

        expected = run_ranks(2, lambda rank: means(rank, **TOPK))
        self.assert_same(run_ranks(2, body), [[tensors[:1] + tensors[2:] for tensors in rank] for rank in expected])

    def test_what_one_rank_alone_uses(self):
        """In odd steps. The other one's gradient is nothing, beside which it is owed what it did not send."""
        def body(rank, leaves_out):
            options = {"bucket_cap_mb": 0.005, "find_unused_parameters": leaves_out}
            ddp, _ = hooked(Given(SHAPES), ddp_options=options, **TOPK)
            results = []
            for s in range(6):
                given = gradients(rank, s)
                if rank == 1 and s % 2:
                    given[1] = None if leaves_out else torch.zeros(SHAPES[1])
                results.append(step(ddp, given))
            return results

        self.assert_same(run_ranks(2, body, True), run_ranks(2, body, False))

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
        """All others go on as beside one that the optimizer leaves as it is, and nothing is sent for it."""
        def body(rank, freezes):
            ddp, state = hooked(network(), ddp_options={"find_unused_parameters": True}, codec="topk:keep=0.2")
            optimizer = torch.optim.SGD(ddp.parameters(), 0.2)
            frozen = ddp.module[2].weight
            for s in range(12):
                frozen.requires_grad_(s < 6 or not freezes)
                optimizer.zero_grad(set_to_none=True)
                inputs, labels = samples(rank, s)
                torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
                if s >= 6:
                    frozen.grad = None
                optimizer.step()
            state.epoch_end(optimizer)
            return [p.detach().clone() for p in ddp.parameters()], state.traffic()["payload_bytes"]

        frozen, left = run_ranks(2, body, True), run_ranks(2, body, False)
        for (parameters, sent), (expected, sent_by_all) in zip(frozen, left):
            self.assert_same(parameters, expected)
            self.assertEqual(sent_by_all - sent, 6 * 8 * int(0.2 * 64 * 48))

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
