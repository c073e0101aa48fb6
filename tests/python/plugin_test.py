"""The PyTorch plugin between real processes: what comes out of the hook, whatever DDP does around it."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import accordion
from ranks import SHAPES, Given, RanksTest, gradients, network, run_ranks, samples, wrapped

CPP_DDP = os.environ.get("CPP_DDP", "")
SETTINGS = ["none", "fp16", "bf16:feedback=true", "topk:keep=0.05", "mstopk:keep=0.05", "randomk:keep=0.05", "dgc:keep=0.05",
            "sign-vote", "sign-scaled", "qsgd:bits=4", "terngrad:chunked=true", "powersgd:approx-rank=2", "atomo:budget=2",
            "threshold:lambda=1.5"]


def hooked(model, group=None, ddp_options=None, **options):
    ddp = wrapped(model, group, **(ddp_options or {}))
    state = accordion.State(ddp, **options)
    ddp.register_comm_hook(state, accordion.hook)
    return ddp, state


def step(ddp, given):
    for parameter in ddp.parameters():
        parameter.grad = None
    ddp(given).backward()
    return [parameter.grad.clone() for parameter in ddp.parameters()]


def means(rank, steps=4, shapes=SHAPES, dtype=torch.float32, ddp_options=None, **options):
    """What `steps` steps leave, on gradients that every test knows."""
    model = Given(shapes, dtype)
    if options.get("codec", "").startswith("dgc"):
        options["optimizer"] = torch.optim.SGD(model.parameters(), 0.1)
    ddp, _ = hooked(model, ddp_options=ddp_options, **options)
    return [step(ddp, gradients(rank, s, shapes, dtype)) for s in range(steps)]


def plain_mean(ranks, s, shapes=SHAPES):
    return [sum(tensors) / ranks for tensors in zip(*(gradients(rank, s, shapes) for rank in range(ranks)))]


class Equality(RanksTest):
    def test_every_codec_gives_what_the_cpp_ddp_gives(self):
        self.assertEqual({s.split(":")[0] for s in SETTINGS}, set(accordion.codecs()), "a codec is not tested")
        ranks, steps = 2, 4
        for setting in SETTINGS:
            with self.subTest(setting), tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                (folder / "shapes").write_text("".join(" ".join(map(str, shape)) + "\n" for shape in SHAPES))
                port = _free_port()
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


def _free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


TOPK = {"codec": "topk:keep=0.05"}


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

            ddp.register_comm_hook(accordion.State(ddp, **TOPK), counting)
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
        """Two pairs of ranks that train apart; a rank's place in its pair is not its place in the world."""

        def body(rank):
            groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
            ddp, state = hooked(Given(SHAPES), group=groups[rank // 2], **TOPK)
            result = [step(ddp, gradients(rank % 2, s)) for s in range(4)]
            state.epoch_end(0.1)
            return result

        expected = run_ranks(2, lambda rank: means(rank, **TOPK))
        self.assert_same(run_ranks(4, body), expected + expected)

    def test_python_runs_while_a_rank_waits(self):
        def body(rank):
            import threading
            import time
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


# Gloo of torch 1.13 cannot broadcast bfloat16, which DDP does with a model's parameters before any hook is there.
SIXTEEN_BITS = [torch.float16] if torch.__version__.startswith("1.") else [torch.float16, torch.bfloat16]


class SixteenBits(RanksTest):
    def test_dense_buckets_travel_as_sixteen_bits(self):
        for dtype in SIXTEEN_BITS:
            tolerance = 2e-3 if dtype == torch.float16 else 2e-2
            with self.subTest(dtype):
                def body(rank):
                    ddp, state = hooked(Given(SHAPES, dtype))
                    got = step(ddp, gradients(rank, 0, dtype=dtype))
                    return got, state.traffic()["payload_bytes"], sum(p.numel() for p in ddp.parameters())

                for got, payload, elements in run_ranks(2, body):
                    self.assertEqual(payload, 2 * elements)
                    for tensor, expected in zip(got, plain_mean(2, 0)):
                        self.assertEqual(tensor.dtype, dtype)
                        torch.testing.assert_close(tensor.float(), expected, atol=tolerance, rtol=tolerance)

    def test_compressed_ones_are_what_single_precision_gives(self):
        """Gradients that 16 bits hold exactly, through codecs: residuals are kept in single precision all the same."""
        for dtype in SIXTEEN_BITS:
            for codec in ("topk:keep=0.05", "powersgd:approx-rank=2", "sign-scaled"):
                with self.subTest(f"{dtype} {codec}"):
                    def wide(rank):
                        ddp, _ = hooked(Given(SHAPES), codec=codec)
                        return [step(ddp, [g.to(dtype).float() for g in gradients(rank, s)]) for s in range(4)]

                    expected = [[[t.to(dtype) for t in tensors] for tensors in rank] for rank in run_ranks(2, wide)]
                    got = run_ranks(2, lambda rank: means(rank, dtype=dtype, codec=codec))
                    # Tensors that go dense beside others are rounded once more, by nobody: the same bits.
                    self.assert_same(got, expected)

    def test_infinity_reaches_everyone(self):
        for codec in ("none", "topk:keep=0.05"):
            for dtype in SIXTEEN_BITS + [torch.float32]:
                with self.subTest(f"{codec} {dtype}"):
                    def body(rank):
                        ddp, state = hooked(Given(SHAPES, dtype), codec=codec)
                        before = step(ddp, gradients(rank, 0, dtype=dtype))
                        bad = gradients(rank, 1, dtype=dtype)
                        if rank == 1:
                            bad[1][3, 3] = float("inf")
                        spoilt = step(ddp, bad)
                        return all(t.isfinite().all() for t in before), all(t.isfinite().all() for t in spoilt)

                    self.assertEqual(run_ranks(2, body), [(True, False)] * 2)

    def test_autocast(self):
        def body(rank):
            ddp, state = hooked(network(), codec="topk:keep=0.2")
            optimizer = torch.optim.SGD(ddp.parameters(), 0.2)
            losses = []
            for s in range(40):
                optimizer.zero_grad()
                inputs, labels = samples(rank, s)
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = torch.nn.functional.cross_entropy(ddp(inputs).float(), labels)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses, [p.detach().clone() for p in ddp.parameters()]

        (losses, first), (_, second) = run_ranks(2, body)
        self.assertLess(sum(losses[-5:]), 0.8 * sum(losses[:5]))
        self.assert_same(first, second)


class Scale:
    """Stands in for a gradient scaler: says the scale of the step, and counts how often it was asked."""

    def __init__(self, scales):
        self.scales, self.step, self.asked = scales, 0, 0

    def get_scale(self):
        self.asked += 1
        return self.scales[self.step]


class Scaling(RanksTest):
    SCALES = [1024.0, 1024.0, 4096.0, 2.0, 512.0, 512.0]

    def scaled(self, rank, scales, codec, bad=None, bucket_cap_mb=25, dtype=torch.float32):
        scaler = Scale(scales)
        ddp, state = hooked(Given(SHAPES, dtype), ddp_options={"bucket_cap_mb": bucket_cap_mb}, codec=codec, scaler=scaler,
                            controller="static", record=None)
        results = []
        for s, scale in enumerate(scales):
            scaler.step = s
            given = [g.to(dtype) * scale for g in gradients(rank, s)]
            if s == bad and rank == 1:
                given[0][1, 1] = float("nan")
            results.append([g.float() / scale for g in step(ddp, given)])
        self.assertEqual(scaler.asked, len(scales), "once a step, however many buckets")
        return results

    def test_a_change_of_scale_distorts_nothing(self):
        for codec in ("none", "topk:keep=0.05", "powersgd:approx-rank=2", "sign-scaled"):
            with self.subTest(codec):
                self.assert_same(run_ranks(2, self.scaled, self.SCALES, codec, None, 0.005),
                                 run_ranks(2, self.scaled, [1.0] * len(self.SCALES), codec))

    def test_a_step_that_is_not_finite_poisons_nothing(self):
        """Later steps are those of a run in which all gradients of that step were zero."""
        def skipping(rank):
            ddp, _ = hooked(Given(SHAPES), codec="topk:keep=0.05", non_finite="skip", scaler=Scale([1.0] * 6))
            results = []
            for s in range(6):
                given = gradients(rank, s)
                if s == 2 and rank == 1:
                    given[0][1, 1] = float("nan")
                results.append(step(ddp, given))
            return results

        got = run_ranks(2, self.scaled, self.SCALES, "topk:keep=0.05", 2)
        expected = run_ranks(2, skipping)
        for rank in range(2):
            self.assertTrue(all(t.isnan().all() for t in got[rank][2]))
            self.assertTrue(all((t == 0).all() for t in expected[rank][2]))
            self.assert_same(got[rank][:2] + got[rank][3:], expected[rank][:2] + expected[rank][3:])

    def test_norms_survive(self):
        def body(rank):
            scaler = Scale([8.0] * 4)
            ddp, state = hooked(Given(SHAPES), controller="accordion", mild="topk:keep=0.5", strong="topk:keep=0.05",
                                scaler=scaler)
            for s in range(4):
                given = [g * 8 for g in gradients(rank, s)]
                if s == 1:
                    given = [g * float("inf") for g in given]
                step(ddp, given)
            state.epoch_end(0.1)
            return [layer["norm"] for epoch in state.decisions() for layer in epoch["layers"]]

        norms = run_ranks(2, body)[0]
        expected = [float(sum(gradients(0, s)[i] for s in (0, 2, 3)).norm()) for i in range(len(SHAPES))]
        for norm, other in zip(norms, expected):
            self.assertAlmostEqual(norm / other, 1, places=4)

    @unittest.skipUnless(hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"), "torch's own scaler has no CPU form here")
    def test_torchs_own(self):
        def body(rank):
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0**15, growth_interval=4)
            ddp, _ = hooked(network(), codec="topk:keep=0.2", scaler=scaler)
            optimizer = torch.optim.SGD(ddp.parameters(), 0.2)
            scales, losses = [], []
            for s in range(30):
                optimizer.zero_grad()
                inputs, labels = samples(rank, s)
                loss = torch.nn.functional.cross_entropy(ddp(inputs), labels)
                if s == 10 and rank == 1:
                    loss = loss * float("inf")
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                scales.append(scaler.get_scale())
                losses.append(loss.item())
            return scales, losses, [p.detach().clone() for p in ddp.parameters()]

        (scales, losses, first), (others, _, second) = run_ranks(2, body)
        self.assertEqual(scales, others)
        self.assertLess(scales[10], scales[9])
        self.assertLess(sum(losses[-5:]), 0.8 * sum(losses[:5]))
        self.assert_same(first, second)


class Learning(RanksTest):
    def test_beside_torchs_powersgd(self):
        """Same rank, warm start and error feedback. Basis and residual differ: torch starts from another Q, orthonormalises
        it too, and keeps a residual for the whole bucket; so losses agree, not bits."""
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

        def body(rank, ours):
            ddp = DDP(network())
            if ours:
                ddp.register_comm_hook(accordion.State(ddp, codec="powersgd:approx-rank=2"), accordion.hook)
            else:
                state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2,
                                                    min_compression_rate=2)
                ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
            optimizer = torch.optim.SGD(ddp.parameters(), 0.2, momentum=0.5)
            losses = []
            for s in range(50):
                optimizer.zero_grad()
                inputs, labels = samples(rank, s, 32)
                loss = torch.nn.functional.cross_entropy(ddp(inputs), labels)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses

        ours, theirs = run_ranks(2, body, True), run_ranks(2, body, False)
        first, last = sum(theirs[0][:5]) / 5, sum(theirs[0][-10:]) / 10
        self.assertLess(last, 0.6 * first, "it learns")
        self.assertLess(abs(sum(ours[0][-10:]) / 10 - last), 0.1 * first)

    def test_levels_follow_the_rate(self):
        def body(rank):
            ddp, state = hooked(network(), controller="accordion", mild="topk:keep=0.2", strong="topk:keep=0.05", interval=1,
                                threshold=0.9)
            optimizer = torch.optim.SGD(ddp.parameters(), 0.05)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.1)
            levels = []
            for epoch in range(5):
                for s in range(4):
                    optimizer.zero_grad()
                    inputs, labels = samples(rank, s)
                    torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
                    optimizer.step()
                levels.append(state.levels()["0.weight"].split(",")[0])
                scheduler.step()
                state.epoch_end(optimizer)
            return levels, state.decisions(), state.levels()["0.bias"]

        (levels, decisions, bias), (others, nothing, _) = run_ranks(2, body)
        self.assertEqual(levels, others)
        self.assertEqual(levels, ["topk:keep=0.2", "topk:keep=0.2", "topk:keep=0.05", "topk:keep=0.2", "topk:keep=0.05"])
        self.assertEqual((bias, nothing), ("none", []))
        self.assertEqual([epoch["epoch"] for epoch in decisions], list(range(5)))
        self.assertEqual([epoch["layers"][0]["level"] for epoch in decisions], [0, 0, 1, 0, 1])
        self.assertIn("learning rate falls", decisions[3]["layers"][0]["reason"])

    def test_batch_size(self):
        def body(rank):
            ddp = DDP(network())
            batch = accordion.BatchSize(ddp, micro_batch=8, batch_mild=16, batch_strong=64, interval=1, threshold=0.9)
            ddp.register_comm_hook(batch, accordion.hook)
            optimizer = torch.optim.SGD(ddp.parameters(), 0.01)
            chosen = []
            for epoch in range(4):
                chosen.append((batch.accumulate, batch.factor))
                for s in range(3):
                    optimizer.zero_grad()
                    for micro in range(batch.accumulate):
                        inputs, labels = samples(rank, s, 8)
                        with torch.enable_grad() if micro + 1 == batch.accumulate else ddp.no_sync():
                            (torch.nn.functional.cross_entropy(ddp(inputs), labels) / batch.accumulate).backward()
                    optimizer.step()
                batch.epoch_end(0.01 if epoch < 2 else 0.001)
            return chosen

        first, second = run_ranks(2, body)
        self.assertEqual(first, second)
        self.assertEqual(first, [(1, 1.0), (1, 1.0), (4, 4.0), (4, 4.0)])


if __name__ == "__main__":
    unittest.main()
