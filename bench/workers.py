"""Processes that measure together, for the benchmarks in Python: on this machine, or one on each host where a launcher started them."""

import hashlib
import math
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "build" / "python"), str(ROOT / "tests" / "reference"), str(ROOT / "bench"),
                str(ROOT / "examples" / "pytorch")]

# As the program sets it for its own workers: without it, page faults dominate on both sides.
ALLOCATOR = ("glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:"
             "glibc.malloc.top_pad=268435456:glibc.malloc.arena_max=1")
SETTINGS = {"GLIBC_TUNABLES": ALLOCATOR, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def run(worker, workers):
    """Calls worker() in each process of the group, with torch's default process group made; this one is theirs or starts them."""
    if "RANK" in os.environ:
        if os.environ.get("GLIBC_TUNABLES") != ALLOCATOR:  # Read when a process starts.
            os.execve("/usr/bin/python3", ["/usr/bin/python3", *sys.argv], os.environ | SETTINGS)
        import torch
        torch.set_num_threads(1)
        os.environ.setdefault("USE_LIBUV", "0")  # For the store; Debian 13's torch was built without.
        torch.distributed.init_process_group("gloo")
        worker()
        torch.distributed.barrier()
        sys.stdout.flush()
        os._exit(0)  # Without the wait for threads of states that Python still holds.
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(workers), "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [subprocess.Popen(["/usr/bin/python3", *sys.argv], env=os.environ | SETTINGS | place | {"RANK": str(rank)})
             for rank in range(workers)]
    sys.exit(max(abs(rank.wait()) for rank in ranks))


def slowest(seconds):
    """The largest over ranks."""
    import torch
    value = torch.tensor([seconds], dtype=torch.float64)
    torch.distributed.all_reduce(value, torch.distributed.ReduceOp.MAX)
    return value.item()


def timed_step(ddp, optimizer, images, labels):
    """Seconds of one whole step of this rank."""
    import torch
    begin = time.perf_counter()
    optimizer.zero_grad(set_to_none=False)
    torch.nn.functional.cross_entropy(ddp(images), labels).backward()
    optimizer.step()
    return time.perf_counter() - begin


def same_on_all_ranks(ddp):
    """Whether all ranks hold the same finite gradients."""
    import torch
    flat = torch.cat([p.grad.flatten() for p in ddp.parameters()])
    # Of a slow link, gradients would take seconds.
    mine = torch.frombuffer(bytearray(hashlib.sha256(flat.numpy().tobytes()).digest()), dtype=torch.uint8)
    first = mine.clone()
    torch.distributed.broadcast(first, 0)
    agree = torch.tensor([float(torch.equal(first, mine) and bool(flat.isfinite().all()))])
    torch.distributed.all_reduce(agree, torch.distributed.ReduceOp.MIN)
    return agree.item() == 1


def interval(values):
    """Median, and the ends of its 95 % interval by order statistics."""
    ordered, n = sorted(values), len(values)
    reach = 1.96 * math.sqrt(n) / 2
    return statistics.median(ordered), ordered[max(0, math.floor(n / 2 - reach))], ordered[min(n - 1, math.ceil(n / 2 + reach) - 1)]
