#!/usr/bin/python3
"""Steps under the guard beside PyTorch's plain DDP and beside each level by itself.

    bench/guard.py --model cnn                           4 workers on this machine
    tools/netlab run --hosts 4 --rate 100mbit -- bench/guard.py --model resnet18

Each arm trains a copy of the same network: PyTorch's DDP as it is, one codec setting throughout, and the guard with both of its aims
over all of them. The guard first has steps to itself until it has decided, but no more than --warm-up; then all arms step in turns, a few steps at a time,
of which the first does not count. Ratios are of medians within a turn, so that both saw the same machine; their interval over turns is
that of order statistics.
"""

import argparse
import json
import statistics
import sys

import workers

ARMS = ["plain", "none", "mild", "strong", "harmless", "fastest"]


class Arm:
    def __init__(self, name, arguments):
        import torch
        from ddp_peer import make_model
        from torch.nn.parallel import DistributedDataParallel

        torch.manual_seed(1)
        self.name, self.state = name, None
        shape = (1, 28) if arguments.model == "cnn" else (3, 32)
        self.ddp = DistributedDataParallel(make_model(arguments.model, *shape, 10), gradient_as_bucket_view=True,
                                           broadcast_buffers=False)
        if name != "plain":
            import accordion
            levels = {"none": {"codec": "none"}, "mild": {"codec": arguments.mild}, "strong": {"codec": arguments.strong}}
            both = {"controller": "schedule", "plan": "strong", "mild": arguments.mild, "strong": arguments.strong}
            guard = name if name in ("harmless", "fastest") else "none"
            self.state = accordion.State(self.ddp, guard=guard, **levels.get(name, both))
            self.ddp.register_comm_hook(self.state, accordion.hook)
        self.optimizer = torch.optim.SGD(self.ddp.parameters(), 0.01, momentum=0.9)
        torch.manual_seed(2 + torch.distributed.get_rank())
        self.batch = torch.randn(arguments.batch, shape[0], shape[1], shape[1]), torch.randint(10, (arguments.batch,))

    def steps(self, count):
        return [workers.slowest(workers.timed_step(self.ddp, self.optimizer, *self.batch)) for _ in range(count)]

    def settle(self, most):
        """Steps until the guard has decided and has not begun to probe anew, 50 at a time; how many."""
        import torch
        done = 0
        probing = torch.ones(1)
        while probing and done < most:
            self.steps(50)
            done += 50
            self.state.epoch_end(0.01)
            if torch.distributed.get_rank() == 0:
                for epoch in self.state.decisions():
                    for event in epoch.get("guard", []):
                        if event["event"] in ("decide", "fall back"):
                            probing[0] = 0
                        elif event["event"] == "probe" and not event["reason"].startswith("to "):
                            probing[0] = 1
            torch.distributed.broadcast(probing, 0)
        return done

    def sent(self):
        return self.state.traffic()["wire_bytes"] if self.state else 0


def worker(arguments):
    import torch.distributed as dist

    arms = {name: Arm(name, arguments) for name in ARMS}
    for arm in arms.values():
        arm.steps(2)
        assert workers.same_on_all_ranks(arm.ddp), f"{arm.name}: ranks differ, or are not finite"
    warm_up = {name: arms[name].settle(arguments.warm_up) for name in ("harmless", "fastest")}
    times, sent = {name: [] for name in ARMS}, {name: 0 for name in ARMS}
    for turn in range(arguments.turns):
        for name, arm in list(arms.items())[::-1 if turn % 2 else 1]:  # Nobody always follows the same one.
            before = arm.sent()
            times[name].append(statistics.median(arm.steps(arguments.steps)[1:]))
            sent[name] += arm.sent() - before
    elements = sum(p.numel() for p in arms["plain"].ddp.parameters())
    ranks = dist.get_world_size()
    per_step = {name: bytes / (arguments.turns * arguments.steps) for name, bytes in sent.items()}
    per_step["plain"] = 8 * elements * (ranks - 1) / ranks
    for arm in arms.values():
        if arm.state:
            arm.state.epoch_end(0.01, last=True)
    if dist.get_rank() == 0:
        show(arguments, ranks, arms, times, per_step, warm_up)


def ratio(times, name, over):
    return workers.interval([mine / other for mine, other in zip(times[name], times[over])])


def show(arguments, ranks, arms, times, per_step, warm_up):
    seconds = {name: statistics.median(values) for name, values in times.items()}
    best = min(("none", "mild", "strong"), key=seconds.get)
    result = {"model": arguments.model, "ranks": ranks, "batch": arguments.batch, "best": best,
              "arms": {name: {"step_ms": 1e3 * seconds[name], "bytes": per_step[name], "over_plain": ratio(times, name, "plain"),
                              "over_best": ratio(times, name, best)} for name in ARMS}}
    for name in ("harmless", "fastest"):
        layers = arms[name].state.levels()
        result["arms"][name]["compressed"] = sum(codec != "none" for codec in layers.values())
        result["arms"][name]["layers"] = len(layers)
        result["arms"][name]["warm_up"] = warm_up[name]
    saved = {name: (per_step["plain"] - per_step[name], seconds["plain"] - seconds[name]) for name in ("strong", "harmless")}
    result["saved_of_strong"] = [mine / other if other > 0 else None for mine, other in zip(saved["harmless"], saved["strong"])]
    if arguments.json:
        return print(json.dumps(result))
    print(f"{arguments.model}, {ranks} workers, batch {arguments.batch}; mild {arguments.mild}, strong {arguments.strong}")
    print(f"{'arm':<10} {'step ms':>9} {'kB a step':>10} {'over plain':>11} {'interval':>15} {'over best':>10} {'interval':>15}")
    for name in ARMS:
        arm = result["arms"][name]
        text = [f"{value:{width}.3f} {low:7.3f}-{high:.3f}" for (value, low, high), width in ((arm["over_plain"], 11), (arm["over_best"], 10))]
        print(f"{name:<10} {arm['step_ms']:9.1f} {arm['bytes'] / 1e3:10.0f} {text[0]} {text[1]}"
              + (f"   {arm['compressed']} of {arm['layers']} tensors compressed, {arm['warm_up']} steps before" if "compressed" in arm else ""))
    print(f"best of none, mild, strong: {best}; harmless has "
          + " and ".join("-" if share is None else f"{100 * share:.0f} % of strong's saving in {what}"
                         for share, what in zip(result["saved_of_strong"], ("bytes", "time"))))
    if arguments.events:
        for name in ("harmless", "fastest"):
            for event in [event for epoch in arms[name].state.decisions() for event in epoch.get("guard", [])]:
                event["levels"] = "".join("-" if level < 0 else str(level) for level in event.get("levels", []))
                print(name, json.dumps(event))
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="cnn", choices=["cnn", "resnet20", "resnet18"])
    parser.add_argument("--workers", type=int, default=4, help="on this machine; a launcher's environment comes first")
    parser.add_argument("--batch", type=int, default=8, help="images a worker")
    parser.add_argument("--mild", default="powersgd:approx-rank=4")
    parser.add_argument("--strong", default="powersgd:approx-rank=1")
    parser.add_argument("--warm-up", type=int, default=600, help="steps that the guard has to itself, at most")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--steps", type=int, default=6, help="of each arm in a turn")
    parser.add_argument("--events", action="store_true", help="what the guard did")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    workers.run(lambda: worker(arguments), arguments.workers)


if __name__ == "__main__":
    main()
