"""Gradients of 16 bits, and losses that are scaled: what is kept from step to step is the same."""

import unittest

import torch

from ranks import SHAPES, Given, RanksTest, gradients, hooked, means, network, plain_mean, run_ranks, samples, step

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


if __name__ == "__main__":
    unittest.main()
