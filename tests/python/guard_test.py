"""The guard in PyTorch's DDP: there without a word, on all ranks alike, and kept over a stop."""

import unittest

import accordion
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from ranks import RanksTest, hooked, network, run_ranks, samples, wrapped


def train(ddp, rank, first, steps):
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    for s in range(first, first + steps):
        optimizer.zero_grad()
        inputs, labels = samples(rank, s)
        torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()


def same_everywhere(ddp):
    flat = torch.cat([p.detach().flatten() for p in ddp.parameters()])
    all_ranks = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(all_ranks, flat)
    return all(torch.equal(flat, other) for other in all_ranks)


class GuardTest(RanksTest):
    def test_harmless_without_a_word(self):
        def body(rank):
            ddp = wrapped(network())
            state = accordion.State(ddp, codec="powersgd:approx-rank=2")
            ddp.register_comm_hook(state, accordion.hook)
            train(ddp, rank, 0, 160)  # Six times there and back, and a window.
            self.assertTrue(same_everywhere(ddp))
            self.assertLessEqual(set(state.levels().values()), {"none", "powersgd:approx-rank=2,warm-start=true"})
            state.epoch_end(0.1)
            if rank == 0:
                events = state.decisions()[0]["guard"]
                self.assertTrue(any(event["event"] == "probe" and set(event["levels"]) == {-1} for event in events))
                self.assertTrue(any(event["event"] == "decide" and event.get("predicted_ms", 0) > 0 for event in events))

        run_ranks(2, body)

    def test_a_stop_keeps_what_is_in_force(self):
        def body(rank):
            ddp, state = hooked(network(), codec="powersgd:approx-rank=2", guard="fastest")
            train(ddp, rank, 0, 30)
            saved = state.state_dict()
            other = wrapped(network())
            resumed = accordion.State(other, codec="powersgd:approx-rank=2", guard="fastest")
            other.register_comm_hook(resumed, accordion.hook)
            other.load_state_dict(ddp.state_dict())
            resumed.load_state_dict(saved)
            self.assertEqual(resumed.levels(), state.levels())
            train(other, rank, 30, 30)
            self.assertTrue(same_everywhere(other))

        run_ranks(2, body)

    def test_refusals(self):
        def body(rank):
            ddp = DDP(network())
            sgd = torch.optim.SGD(ddp.parameters(), 0.1)
            for options, words in [
                    ({"guard": "none", "codec": "dgc"}, None),
                    ({"codec": "dgc"}, None),
                    ({"guard": "harmless", "codec": "dgc"}, "State: guard=harmless with a codec that keeps the optimizer's momentum"),
                    ({"guard": "harmless", "parity": "paper", "codec": "topk:keep=0.1"}, "guard=harmless with parity=paper"),
                    ({"guard": "safe", "codec": "topk:keep=0.1"}, "unknown guard .safe.*none, harmless, fastest")]:
                if words is None:
                    accordion.State(ddp, optimizer=sgd, **options)
                    continue
                with self.assertRaisesRegex(ValueError, words):
                    accordion.State(ddp, optimizer=sgd, **options)

        run_ranks(1, body)


if __name__ == "__main__":
    unittest.main()
