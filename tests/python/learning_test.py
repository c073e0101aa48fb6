"""Training with the hook: beside torch's own PowerSGD, with levels that follow the controller."""

import unittest

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

import accordion
from ranks import RanksTest, hooked, network, run_ranks, samples

class Learning(RanksTest):
    def test_beside_torchs_powersgd(self):
        """Same rank, warm start and error feedback. Basis and residual differ: torch starts from another Q, orthonormalises
        it too, and keeps a residual for the whole bucket; so losses agree, not bits."""
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

        def body(rank, ours):
            ddp = DDP(network())
            if ours:
                ddp.register_comm_hook(accordion.State(ddp, codec="powersgd:approx-rank=2", guard="none"), accordion.hook)
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


if __name__ == "__main__":
    unittest.main()
