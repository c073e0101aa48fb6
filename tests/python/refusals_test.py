"""What the plugin refuses, in which words; that it does not hang; that help and stubs say what there is."""

import ast
import inspect
import os
import pathlib
import signal
import time
import types
import unittest

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

import accordion
from ranks import SHAPES, Given, RanksTest, gradients, hooked, network, run_ranks, samples, step, wrapped


class Mistakes(RanksTest):
    def test_options(self):
        def body(rank):
            ddp = DDP(network())
            for options, words in [
                    ({"codec": "topk:keep=2"}, r"topk: keep=2, expected \(0, 1\]"),
                    ({"codec": "tpok"}, "tpok.*topk"),
                    ({"controller": "acordion"}, "acordion.*accordion"),
                    ({"controller": "accordion"}, "expects mild and strong"),
                    ({"intervall": 3}, "State: unknown option .intervall.; did you mean .interval.?"),
                    ({"interval": 0}, "State: interval=0, expected at least 1"),
                    ({"interval": "often"}, "State: interval=often, expected a whole number"),
                    ({"timeout": 0}, "timeout=0, expected above 0 and up to 1e7"),
                    ({"timeout": "soon"}, "timeout=soon, expected above 0"),
                    ({"timeout": float("inf")}, "timeout=inf, expected above 0 and up to 1e7"),
                    ({"codec": "dgc", "optimizer": 0.1}, "optimizer= is a float; expected the optimizer"),
                    ({"controller": "accordion", "batch_mild": 16, "batch_strong": 64},
                     "controller=accordion with batch-mild chooses batch sizes.*; use accordion.BatchSize"),
                    ({"controller": "smith", "batch_mild": 16, "batch_strong": 64}, "use accordion.BatchSize"),
                    ({"controller": "joint", "mild": "none", "strong": "topk"}, "controller=joint chooses .*; use accordion.BatchSize"),
                    ({"batch_mild": 16, "batch_strong": 64}, "beside controller=static, expected accordion, joint or smith"),
                    ({"scaler": 3}, r"scaler is a int, expected something with get_scale\(\)"),
                    ({"non_finite": "ignore"}, "unknown non-finite .ignore.*propagate, skip, throw"),
                    ({"codec": "dgc"}, "applies momentum itself; expected optimizer="),
                    ({"codec": "dgc", "optimizer": torch.optim.SGD(ddp.parameters(), 0.1, momentum=0.9)},
                     "momentum 0.9 for the same tensors"),
                    ({"codec": "dgc", "optimizer": torch.optim.Adam(ddp.parameters())}, "momentum .* for the same tensors")]:
                with self.assertRaisesRegex(ValueError, words):
                    accordion.State(ddp, **options)

        run_ranks(1, body)

    def test_models(self):
        class FullyShardedDataParallel(torch.nn.Module):  # By its name: torch's own asks for a device that is not here.
            pass

        def body(rank):
            with self.assertRaisesRegex(ValueError, "the model is a Sequential, expected a .*DistributedDataParallel"):
                accordion.State(network())
            with self.assertRaisesRegex(ValueError, "FullyShardedDataParallel shards parameters"):
                accordion.State(FullyShardedDataParallel())
            with self.assertRaisesRegex(ValueError, "0 has sparse gradients"):
                accordion.State(DDP(torch.nn.Sequential(torch.nn.Embedding(10, 4, sparse=True))))
            late = DDP(Given([(3, 4)]))  # Gloo broadcasts no such numbers, so DDP refuses those that are there at its start.
            late.module.p0 = torch.nn.Parameter(torch.zeros(3, 4, dtype=torch.complex64))
            with self.assertRaisesRegex(ValueError, "p0 is of type ComplexFloat, expected Float"):
                accordion.State(late)

        run_ranks(1, body)

    def test_use(self):
        def body(rank):
            ddp = DDP(network())
            state = accordion.State(ddp)
            with self.assertRaisesRegex(ValueError, "before any gradient has come: call ddp.register_comm_hook"):
                state.epoch_end(0.1)
            with self.assertRaisesRegex(ValueError, "expected an optimizer or a learning rate, got a str"):
                state.epoch_end("0.1")
            ddp.register_comm_hook(state, accordion.hook)
            with self.assertRaisesRegex(RuntimeError, "register_comm_hook"):
                ddp.register_comm_hook(state, accordion.hook)
            other = DDP(network())
            other.register_comm_hook(state, accordion.hook)
            inputs, labels = samples(rank, 0)
            with self.assertRaisesRegex((ValueError, RuntimeError), "expected one model throughout"):
                torch.nn.functional.cross_entropy(other(inputs), labels).backward()
            torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
            with self.assertRaisesRegex(ValueError, "after the first step, expected it before"):
                state.load_state_dict(state.state_dict())
            third = DDP(network())
            third.register_comm_hook(None, accordion.hook)
            with self.assertRaisesRegex((TypeError, RuntimeError), "expected an accordion.State"):
                torch.nn.functional.cross_entropy(third(inputs), labels).backward()
            for mild, strong, words in ((24, 64, "batch_mild=24, expected a multiple of 16"),
                                        ("512", 1024, "batch_mild=512, expected a multiple of 16"),
                                        (16, 64.0, "batch_strong=64.0, expected a multiple of 16")):
                with self.assertRaisesRegex(ValueError, words):
                    accordion.BatchSize(ddp, micro_batch=16, batch_mild=mild, batch_strong=strong)

        run_ranks(1, body)

    def test_windows_without_steps(self):
        def body(rank, ends_steps):
            ddp, state = hooked(network(), window=2, controller="accordion", mild="topk:keep=0.2", strong="topk:keep=0.05")
            for s in range(3):
                inputs, labels = samples(rank, s)
                torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
                if ends_steps:
                    state.step_end(0.1)
            if ends_steps:
                state.epoch_end(0.1)
                return
            with self.assertRaisesRegex(ValueError, r"window=2 expects state.step_end\(optimizer\) after every step"):
                state.epoch_end(0.1)

        run_ranks(2, body, True)
        run_ranks(2, body, False)

    def test_momentum_that_comes_later(self):
        def body(rank):
            ddp = wrapped(network())
            optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
            state = accordion.State(ddp, codec="dgc:keep=0.05", optimizer=optimizer)
            ddp.register_comm_hook(state, accordion.hook)
            inputs, labels = samples(rank, 0)
            torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
            state.epoch_end(optimizer)
            optimizer.param_groups[0]["momentum"] = 0.9
            for call in (state.epoch_end, state.step_end):
                with self.assertRaisesRegex(ValueError, "momentum 0.9 for the same tensors"):
                    call(optimizer)

        run_ranks(1, body)

    def test_ranks_that_differ(self):
        def body(rank):
            ddp = DDP(network())
            with self.assertRaisesRegex(ValueError, "differs from rank 0 in its settings: codec"):
                accordion.State(ddp, codec=("none", "fp16")[rank])
            scaler = types.SimpleNamespace(get_scale=lambda: 1.0)
            with self.assertRaisesRegex(ValueError, "differs from rank 0 in its settings: scaled = 1 against scaled = 0"):
                accordion.State(ddp, scaler=(None, scaler)[rank])

        run_ranks(2, body)

    def test_a_killed_rank_is_an_exception_in_the_others(self):
        def body(rank):
            ddp, state = hooked(Given(SHAPES), codec="topk:keep=0.05", timeout=20)
            for s in range(3):  # DDP itself has nothing more to say to the others then.
                step(ddp, gradients(rank, s))
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            begin = time.monotonic()
            try:
                for s in range(3, 100):
                    step(ddp, gradients(rank, s))
                failure = None
            except RuntimeError as error:
                failure = str(error)
            return failure, time.monotonic() - begin

        failure, seconds = run_ranks(2, body, silent=[1])[0]
        self.assertRegex(failure, "rank 0: .* rank 1")
        self.assertLess(seconds, 25)


class Documents(unittest.TestCase):
    def test_the_stub_says_what_there_is(self):
        """Names, kinds and defaults of all arguments, of functions, classes and methods."""
        stub = ast.parse(pathlib.Path(accordion.__file__).with_name("__init__.pyi").read_text())

        def functions(nodes):
            return {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}

        def stated(node):
            plain, given = node.args, node.args.args
            defaults = [None] * (len(given) - len(plain.defaults)) + plain.defaults + plain.kw_defaults
            names = [argument.arg for argument in given + plain.kwonlyargs]
            return ({name: inspect.Parameter.empty if default is None else ast.literal_eval(default)
                     for name, default in zip(names, defaults)}, len(given), plain.kwarg and plain.kwarg.arg)

        def actual(function):
            parameters = inspect.signature(function).parameters.values()
            rest = [p.name for p in parameters if p.kind is p.VAR_KEYWORD]
            named = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
            return ({p.name: p.default for p in named}, sum(p.kind is not p.KEYWORD_ONLY for p in named), rest[0] if rest else None)

        classes = {node.name: functions(node.body) for node in stub.body if isinstance(node, ast.ClassDef)}
        plain = functions(stub.body)
        self.assertEqual(sorted([*classes, *plain]), sorted(accordion.__all__))
        for name, node in plain.items():
            self.assertEqual(stated(node), actual(getattr(accordion, name)), name)
        for name, methods in classes.items():
            of_class = vars(getattr(accordion, name))
            self.assertEqual(set(methods), {method for method in of_class if not method.startswith("_")} | {"__init__"}, name)
            for method, node in methods.items():
                found = of_class[method]
                self.assertEqual(stated(node), actual(found.fget if isinstance(found, property) else found), f"{name}.{method}")

    def test_help_names_every_option(self):
        text = inspect.getdoc(accordion.State)
        for name in inspect.signature(accordion.State).parameters:
            self.assertIn(f"`{name}`", text)
        self.assertIn("accordion", accordion.controllers())
        self.assertEqual(accordion.codecs()["topk"]["keep"][0], 0.01)


if __name__ == "__main__":
    unittest.main()
