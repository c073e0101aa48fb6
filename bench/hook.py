#!/usr/bin/python3
"""One step of ResNet-18 under PyTorch's DDP: plain, with PyTorch's own compression hooks, and with Accordion's.

    bench/hook.py                                        4 workers on this machine
    bench/hook.py --workers 2
    tools/netlab run --hosts 4 --rate 100mbit -- bench/hook.py        on links of that rate

Every method trains a copy of the same network; copies step in turn, plain DDP among each few of them, so that ratios are taken over
steps that saw the same machine. "plain again" is a second copy under plain DDP: what its ratio is off 1 by is noise. A method is
checked before it is timed: all ranks must hold the same finite gradients, and those of `none` must be plain DDP's. "torch noop" is
a hook that sends nothing, whose overhead, DDP's own, is part of every other one's. The interval
of a ratio is that of order statistics, 95 %; of seven pairs or fewer, the least and the most. `--json` for one object a method.
"""

import argparse
import json
import statistics
import sys
import time

import workers

TOGETHER = 3  # Methods at a time, beside plain DDP: each has a network, its gradients and residuals.

METHODS = ["plain again", "torch noop", "none", "torch fp16", "torch bf16", "torch powersgd 1", "torch powersgd 2", "torch powersgd 4", "fp16", "bf16",
           "powersgd:approx-rank=1", "powersgd:approx-rank=2", "powersgd:approx-rank=4", "topk:keep=0.01", "sign-scaled",
           "qsgd:bits=4"]


def register(ddp, method):
    from torch.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks, powerSGD_hook

    import accordion

    if method.startswith("plain"):
        return
    if method == "torch noop":
        return ddp.register_comm_hook(None, debugging_hooks.noop_hook)
    if method in ("torch fp16", "torch bf16"):
        return ddp.register_comm_hook(None, getattr(default_hooks, f"{method[6:]}_compress_hook"))
    if method.startswith("torch powersgd"):
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=int(method.split()[-1]), start_powerSGD_iter=2)
        return ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    ddp.register_comm_hook(accordion.State(ddp, codec=method, guard="none"), accordion.hook)


class Copy:
    """A network of its own under one method."""

    def __init__(self, method, batch):
        import torch
        from networks import resnet18
        from torch.nn.parallel import DistributedDataParallel

        torch.manual_seed(1)
        self.method = method
        # Torch's PowerSGD starts its later all-reduces from Gloo's threads, bucket by bucket as they happen to come, and ranks that
        # differ in that abort. With one bucket there is one order.
        first, whole = torch.distributed._DEFAULT_FIRST_BUCKET_BYTES, method.startswith("torch powersgd")
        torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = 1 << 30 if whole else first
        self.ddp = DistributedDataParallel(resnet18(10), gradient_as_bucket_view=True, broadcast_buffers=False,
                                           bucket_cap_mb=1024 if whole else 25)
        torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = first
        register(self.ddp, method)
        self.optimizer = torch.optim.SGD(self.ddp.parameters(), 0.01, momentum=0.9)
        torch.manual_seed(2 + torch.distributed.get_rank())
        self.images, self.labels = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))

    def step(self, sync=True):
        import contextlib

        import torch

        torch.distributed.barrier()
        begin = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=False)
        with contextlib.nullcontext() if sync else self.ddp.no_sync():
            torch.nn.functional.cross_entropy(self.ddp(self.images), self.labels).backward()
        self.optimizer.step()
        return workers.slowest(time.perf_counter() - begin)

    def check(self, plain):
        import torch

        self.step()
        assert self.method == "torch noop" or workers.same_on_all_ranks(self.ddp), f"{self.method}: ranks differ, or are not finite"
        if self.method in ("plain", "plain again", "none"):
            self.first = torch.cat([p.grad.flatten() for p in self.ddp.parameters()])
            assert torch.allclose(self.first, plain.first, rtol=1e-3, atol=1e-5), "none is not plain DDP"


def worker(arguments):
    import torch.distributed as dist

    rows = []
    methods = [method for method in METHODS if any(part in method for part in arguments.methods.split(","))]
    plain = Copy("plain", arguments.batch)
    plain.check(plain)
    for begin in range(0, len(methods), TOGETHER):
        copies, broken = [plain], {}
        for method in methods[begin:begin + TOGETHER]:
            try:
                copy = Copy(method, arguments.batch)
                copy.check(plain)
                copies.append(copy)
            except (RuntimeError, TypeError, ValueError) as error:
                broken[method] = str(error).splitlines()[0]
        for copy in copies:
            copy.step()
        seconds = {copy.method: [] for copy in copies}
        alone = []
        for turn in range(arguments.steps):
            for copy in copies[::-1] if turn % 2 else copies:  # Nobody always follows the same one.
                seconds[copy.method].append(copy.step())
            alone.append(plain.step(sync=False))
        for method in methods[begin:begin + TOGETHER]:
            if method in broken:
                rows.append({"method": method, "error": broken[method]})
                continue
            ratios = [mine / other for mine, other in zip(seconds[method], seconds["plain"])]
            ratio, low, high = workers.interval(ratios)
            rows.append({"method": method, "step_ms": 1e3 * statistics.median(seconds[method]),
                         "plain_ms": 1e3 * statistics.median(seconds["plain"]), "ratio": ratio, "low": low, "high": high,
                         "overhead_ms": 1e3 * statistics.median(mine - no for mine, no in zip(seconds[method], alone)),
                         "plain_overhead_ms": 1e3 * statistics.median(mine - no for mine, no in zip(seconds["plain"], alone))})
        del copies, copy
    if dist.get_rank() == 0:
        show(rows, arguments)


def show(rows, arguments):
    if arguments.json:
        return print(json.dumps(rows, indent=2))
    print(f"{'method':<24} {'step ms':>8} {'plain':>8} {'ratio':>6} {'low':>6} {'high':>6} {'overhead ms':>12} {'plain':>7}")
    for row in rows:
        if "error" in row:
            print(f"{row['method']:<24} {row['error']}")
            continue
        print(f"{row['method']:<24} {row['step_ms']:8.0f} {row['plain_ms']:8.0f} {row['ratio']:6.3f} {row['low']:6.3f} "
              f"{row['high']:6.3f} {row['overhead_ms']:12.0f} {row['plain_overhead_ms']:7.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=4, help="on this machine; a launcher's environment comes first")
    parser.add_argument("--batch", type=int, default=8, help="images a worker")
    parser.add_argument("--steps", type=int, default=7, help="of each method, timed")
    parser.add_argument("--methods", default="", help="only those whose name has one of these in it, with commas between")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    workers.run(lambda: worker(arguments), arguments.workers)


if __name__ == "__main__":
    main()
