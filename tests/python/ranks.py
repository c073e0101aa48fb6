"""Ranks as processes of a test: each has its place in a process group over Gloo, on loopback."""

import inspect
import io
import multiprocessing
import os
import socket
import tempfile
import traceback
import unittest

# torch 1.13's oneDNN uses AMX wherever the processor has it, and is killed where the system withholds it, as in some virtual
# machines. It reads this when it is loaded.
os.environ.setdefault("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16")

import torch
import torch.distributed as dist

import accordion
from torch.nn.parallel import DistributedDataParallel as DDP

# A child has torch without loading it again. The parent computes nothing, so it has no threads that a child would miss.
CONTEXT = multiprocessing.get_context("fork")
if not torch.__version__.startswith("1."):
    import torch._dynamo  # As the first DDP of a process does, which takes it two seconds.

# Whatever a rank answers; newer versions of torch load only tensors unless they are asked.
ANYTHING = {"weights_only": False} if "weights_only" in inspect.signature(torch.load).parameters else {}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _run(rank, size, store, body, arguments, answers):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
        packed = io.BytesIO()  # Tensors themselves would stay in memory that goes with this process.
        torch.save(body(rank, *arguments), packed)
        answer = (rank, packed.getvalue(), None)
    except BaseException as error:  # Whatever it is, the parent says so.
        answer = (rank, None, f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    answers.put(answer)
    answers.close()
    answers.join_thread()
    os._exit(0)  # Without waiting for peers that may be gone.


def run_ranks(size, body, *arguments, timeout=120, silent=()):
    """What body(rank, *arguments) returns on every rank. An exception on any is the test's. Those that are `silent` are killed
    before they can say anything."""
    with tempfile.TemporaryDirectory(prefix="accordion-test-") as folder:
        answers = CONTEXT.Queue()
        ranks = [CONTEXT.Process(target=_run, args=(rank, size, f"{folder}/store", body, arguments, answers), daemon=True)
                 for rank in range(size)]
        for rank in ranks:
            rank.start()
        results = [None] * size
        try:
            for _ in range(size - len(silent)):
                rank, result, failure = answers.get(timeout=timeout)
                if failure:
                    raise AssertionError(f"rank {rank}: {failure}")
                results[rank] = torch.load(io.BytesIO(result), **ANYTHING)
        finally:
            for rank in ranks:
                rank.kill()
                rank.join()
        return results


def wrapped(model, group=None, **options):
    """In a DDP. The size of buckets holds for the first one too, which torch 1.13 gives 1 MiB whatever it was told."""
    if "bucket_cap_mb" in options:
        dist._DEFAULT_FIRST_BUCKET_BYTES = int(options["bucket_cap_mb"] * 2**20)
    return DDP(model, process_group=group, **options)


class Given(torch.nn.Module):
    """A model whose gradients are what the caller says: model(gradients).backward() leaves them."""

    def __init__(self, shapes, dtype=torch.float32):
        super().__init__()
        self.shapes = shapes
        for i, shape in enumerate(shapes):
            self.register_parameter(f"p{i}", torch.nn.Parameter(torch.zeros(shape, dtype=dtype)))

    def forward(self, gradients):
        return sum((parameter * gradient).sum()
                   for parameter, gradient in zip(self.parameters(), gradients) if gradient is not None)


SHAPES = [(40, 30), (64, 48), (9,), (3, 5, 4, 4), (130, 70)]


def gradients(rank, step, shapes=SHAPES, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def network():
    """Something that learns: no BatchNorm, whose statistics are of one rank's batch."""
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 48), torch.nn.Tanh(),
                               torch.nn.Linear(48, 5))


def samples(rank, step, count=16):
    generator = torch.Generator().manual_seed(10000 + 100 * step + rank)
    inputs = torch.randn(count, 20, generator=generator)
    rule = torch.randn(20, 5, generator=torch.Generator().manual_seed(7))
    return inputs, (inputs @ rule).argmax(1)


TOPK = {"codec": "topk:keep=0.05"}


def hooked(model, group=None, ddp_options=None, **options):
    ddp = wrapped(model, group, **(ddp_options or {}))
    options.setdefault("guard", "none")  # What a guard does depends on the clock.
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


class RanksTest(unittest.TestCase):
    def assert_same(self, left, right, message=None):
        """Tensors, or lists of them, bit for bit."""
        if isinstance(left, torch.Tensor):
            self.assertTrue(torch.equal(left, right), message)
        else:
            self.assertEqual(len(left), len(right), message)
            for a, b in zip(left, right):
                self.assert_same(a, b, message)
