"""PyTorch's DDP with a model on a device whose copies are late on purpose, so that whoever forgets to wait is seen: the gradients, levels
and weights are those of host memory. The device and its process groups are late_device.cpp's; GPUs there are none."""

import ctypes
import types
import unittest

import torch
import torch.distributed as dist

import accordion
import late_device
from ranks import SHAPES, Given, RanksTest, gradients, network, plain_mean, run_ranks, samples, step, wrapped

DEVICE = "privateuseone:0"


def _register():
    def create(store, rank, size, timeout):
        return late_device.backend(dist.ProcessGroupGloo(store, rank, size, timeout=timeout))

    if torch.__version__.startswith("1."):
        return dist.Backend.register_backend("late", create)
    dist.Backend.register_backend("late", create, devices=["privateuseone"])
    module = types.ModuleType("torch.privateuseone")  # What torch 2.x expects of a device.
    module.is_available, module.device_count, module.current_device = lambda: True, lambda: 1, lambda: 0
    module._is_in_bad_fork, module.manual_seed_all = lambda: False, lambda seed: None
    torch._register_device_module("privateuseone", module)


_register()


def group_for(device, ranks=None):
    return dist.new_group(ranks, backend="gloo" if device == "cpu" else "late")


def hooked(model, device, ddp_options=None, group=None, **options):
    """On a device, in a DDP whose process group reduces there."""
    ddp = wrapped(model.to(device), group or group_for(device), **(ddp_options or {}))
    options.setdefault("guard", "none")
    state = accordion.State(ddp, **options)
    ddp.register_comm_hook(state, accordion.hook)
    return ddp, state


def on(device, tensors):
    return [tensor.to(device) for tensor in tensors]


def means(rank, device, steps=4, dtype=torch.float32, **options):
    ddp, _ = hooked(Given(SHAPES, dtype), device, **options)
    return [on("cpu", step(ddp, on(device, gradients(rank, s, dtype=dtype)))) for s in range(steps)]


def train(ddp, rank, device, optimizer, first, steps):
    losses = []
    for s in range(first, first + steps):
        optimizer.zero_grad()
        inputs, labels = on(device, samples(rank, s))
        loss = torch.nn.functional.cross_entropy(ddp(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Device(RanksTest):
    def test_it_is_late(self):
        """What is copied without waiting is not there yet, and is when its stream has been waited for. On a busy machine it may be there
        before anybody looks, but not every time."""
        def body(rank):
            seen = []
            for _ in range(20):
                there = torch.zeros(3).to(DEVICE)
                there.copy_(torch.ones(3), non_blocking=True)
                seen.append((ctypes.c_float.from_address(there.data_ptr()).value, there.cpu()[0].item()))
            return seen

        (seen,) = run_ranks(1, body)
        self.assertIn((0, 1), seen)
        self.assertEqual({late for _, late in seen}, {1})

    def test_its_group_reduces_there(self):
        """Plain DDP, without a hook."""
        def body(rank):
            ddp = wrapped(Given(SHAPES).to(DEVICE), dist.new_group(backend="late"))
            return on("cpu", step(ddp, on(DEVICE, gradients(rank, 0)))), late_device.sums()

        for got, sums in run_ranks(2, body):
            self.assertGreaterEqual(sums, 1)
            for tensor, expected in zip(got, plain_mean(2, 0)):
                torch.testing.assert_close(tensor, expected)


class Gradients(RanksTest):
    def test_compressed_buckets_have_the_bits_of_host_memory(self):
        for codec in ("topk:keep=0.05", "powersgd:approx-rank=2", "sign-scaled", "qsgd:bits=4"):
            for buckets in ({}, {"bucket_cap_mb": 0.02}, {"gradient_as_bucket_view": True}):
                with self.subTest(codec, **buckets):
                    here, there = (run_ranks(2, lambda rank: means(rank, device, codec=codec, ddp_options=buckets))
                                   for device in ("cpu", DEVICE))
                    self.assert_same(here, there)

    def test_of_sixteen_bits(self):
        here, there = (run_ranks(2, lambda rank: means(rank, device, codec="topk:keep=0.05", dtype=torch.float16))
                       for device in ("cpu", DEVICE))
        self.assert_same(here, there)

    def test_dense_buckets_take_the_models_own_group(self):
        def body(rank):
            ddp, state = hooked(Given(SHAPES), DEVICE)
            before = late_device.sums()
            got = [on("cpu", step(ddp, on(DEVICE, gradients(rank, s)))) for s in range(3)]
            sums = late_device.sums() - before
            state.epoch_end(0.1)
            return got, sums, state.traffic()["payload_bytes"]

        for got, sums, payload in run_ranks(2, body):
            self.assertEqual(sums, 3, "one bucket, three steps")
            self.assertEqual(payload, 3 * 4 * sum(t.numel() for t in gradients(0, 0)))
            for s, tensors in enumerate(got):
                for tensor, expected in zip(tensors, plain_mean(2, s)):
                    torch.testing.assert_close(tensor, expected)

    def test_dense_buckets_of_sixteen_bits(self):
        def body(rank):
            ddp, state = hooked(Given(SHAPES, torch.float16), DEVICE)
            before = late_device.sums()
            got = on("cpu", step(ddp, on(DEVICE, gradients(rank, 0, dtype=torch.float16))))
            return got, late_device.sums() - before, state.traffic()["payload_bytes"]

        for got, sums, payload in run_ranks(2, body):
            self.assertEqual((sums, payload), (1, 2 * sum(t.numel() for t in gradients(0, 0))))
            for tensor, expected in zip(got, plain_mean(2, 0)):
                self.assertEqual(tensor.dtype, torch.float16)
                torch.testing.assert_close(tensor.float(), expected, atol=2e-3, rtol=2e-3)

    def test_under_a_scale(self):
        """What is watched of dense buckets is unscaled; a step that is not finite is dropped."""
        def body(rank, device):
            scaler = types.SimpleNamespace(get_scale=lambda: 1024.0)
            ddp, state = hooked(Given(SHAPES), device, controller="accordion", mild="none", strong="topk:keep=0.05", scaler=scaler)
            got = []
            for s in range(3):
                given = [g * 1024 * (float("inf") if s == 1 and rank == 1 else 1) for g in gradients(rank, s)]
                got.append(on("cpu", step(ddp, on(device, given))))
            state.epoch_end(0.1)
            norms = [layer["norm"] for epoch in state.decisions() for layer in epoch["layers"]]
            return [got[0], got[2]], norms, state.traffic()["dropped_steps"]

        here, there = run_ranks(2, body, "cpu"), run_ranks(2, body, DEVICE)
        for (got, norms, dropped), (expected, expected_norms, _) in zip(there, here):
            torch.testing.assert_close(got, expected)
            torch.testing.assert_close(norms, expected_norms)
            self.assertEqual(dropped, 1)
        self.assertAlmostEqual(there[0][1][0] / float(sum(gradients(0, s)[0] for s in range(3)).norm()), 1, places=4)

    def test_of_a_sub_group(self):
        def body(rank, device):
            group = group_for(device, [0, 2])
            if rank == 1:
                return None
            results = []
            for codec in ("none", "topk:keep=0.05"):
                ddp, _ = hooked(Given(SHAPES), device, group=group, codec=codec)
                results.append([on("cpu", step(ddp, on(device, gradients(rank, s)))) for s in range(2)])
            return results

        here, there = run_ranks(3, body, "cpu"), run_ranks(3, body, DEVICE)
        for rank in (0, 2):
            torch.testing.assert_close(there[rank][0], here[rank][0])
            self.assert_same(there[rank][1], here[rank][1])

    def test_only_dense_ones_do(self):
        def body(rank):
            ddp, _ = hooked(Given([(40, 30), (9,)]), DEVICE, {"bucket_cap_mb": 1e-5}, codec="topk:keep=0.05")
            step(ddp, on(DEVICE, gradients(rank, 0, [(40, 30), (9,)])))  # Then buckets are rebuilt, one a tensor.
            before = late_device.sums()
            for s in (1, 2):
                step(ddp, on(DEVICE, gradients(rank, s, [(40, 30), (9,)])))
            return late_device.sums() - before

        self.assertEqual(run_ranks(2, body), [2, 2])


class Training(RanksTest):
    def test_with_accordion(self):
        """The same levels, norms and weights as in host memory, bit for bit."""
        def body(rank, device):
            ddp, state = hooked(network(), device, controller="accordion", mild="powersgd:approx-rank=2",
                                strong="powersgd:approx-rank=1", interval=1, threshold=0.9)
            optimizer = torch.optim.SGD(ddp.parameters(), 0.2, momentum=0.5)
            losses = []
            for epoch in range(4):
                losses += train(ddp, rank, device, optimizer, 10 * epoch, 10)
                for group in optimizer.param_groups:
                    group["lr"] *= 0.8
                state.epoch_end(optimizer)
            return losses, on("cpu", [p.detach() for p in ddp.parameters()]), state.decisions(), state.levels()

        here, there = run_ranks(2, body, "cpu"), run_ranks(2, body, DEVICE)
        losses, _, decisions, _ = there[0]
        self.assertLess(sum(losses[-5:]), 0.7 * sum(losses[:5]), "it learns")
        self.assertGreater(len({layer["level"] for epoch in decisions for layer in epoch["layers"]}), 1, "levels change")
        for rank in range(2):
            self.assert_same(here[rank][1], there[rank][1])
            self.assertEqual(here[rank][2:], there[rank][2:])

    def test_after_a_stop(self):
        """In mid-epoch: residuals, levels, and what has been watched on the device."""
        options = {"controller": "accordion", "mild": "none", "strong": "topk:keep=0.05", "interval": 1, "threshold": 0.9}

        def body(rank, stop):
            ddp, state = hooked(network(), DEVICE, **options)
            optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
            for s in range(9):
                if s == stop:
                    saved, weights = state.state_dict(), [p.detach().clone() for p in ddp.parameters()]
                    ddp, state = hooked(network(), DEVICE, **options)
                    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
                    with torch.no_grad():
                        for parameter, weight in zip(ddp.parameters(), weights):
                            parameter.copy_(weight)
                    state.load_state_dict(saved)
                train(ddp, rank, DEVICE, optimizer, s, 1)
                if s % 3 == 2:
                    state.epoch_end(0.1)
            norms = [[layer.pop("norm") for layer in epoch["layers"]] for epoch in state.decisions()]
            return on("cpu", [p.detach() for p in ddp.parameters()]), state.decisions(), state.levels(), norms

        whole = run_ranks(2, body, None)
        self.assertIn("topk", " ".join(whole[0][2].values()))
        for stop in (1, 7):
            for got, expected in zip(run_ranks(2, body, stop), whole):
                torch.testing.assert_close(got[0], expected[0])
                self.assertEqual(got[2], expected[2])
                torch.testing.assert_close(got[3], expected[3])

    def test_under_a_guard(self):
        """Whatever the guard makes of the clock, ranks agree, and dense probe steps are the device's own."""
        def body(rank):
            ddp, state = hooked(network(), DEVICE, codec="powersgd:approx-rank=2", guard="harmless")
            before = late_device.sums()
            losses = train(ddp, rank, DEVICE, torch.optim.SGD(ddp.parameters(), 0.2), 0, 60)
            sums = late_device.sums() - before
            state.epoch_end(0.2, last=True)
            return losses, on("cpu", [p.detach() for p in ddp.parameters()]), sums, state.decisions()

        first, second = run_ranks(2, body)
        self.assert_same(first[1], second[1])
        self.assertLess(sum(first[0][-5:]), 0.7 * sum(first[0][:5]), "it learns")
        self.assertGreater(first[2], 0)
        self.assertEqual({"probe", "decide"} - {event["event"] for event in first[3][0]["guard"]}, set())


if __name__ == "__main__":
    unittest.main()
