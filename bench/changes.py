#!/usr/bin/python3
"""A network that slows down and recovers: how many steps each way of training gets done, phase by phase.

    tools/netlab run --hosts 4 --rate none --rate-at 30=100mbit --rate-at 60=none -- bench/changes.py --arm fastest

Started once for each arm, with the same changes: `none` and `strong` (one codec throughout), `fastest`, `harmless` (the guard). Ends after the
last phase. Prints the steps done in each phase and when the guard decided; a guarded run is to come near to the best of the others in every phase.
"""

import argparse
import json
import time

import workers


def worker(arguments):
    import torch
    import torch.distributed as dist
    from ddp_peer import make_model
    from torch.nn.parallel import DistributedDataParallel

    import accordion

    begin = time.perf_counter()  # netlab counts from when it started us.
    torch.manual_seed(1)
    shape = (1, 28) if arguments.model == "cnn" else (3, 32)
    ddp = DistributedDataParallel(make_model(arguments.model, *shape, 10), gradient_as_bucket_view=True, broadcast_buffers=False)
    codecs = {"none": {"codec": "none"}, "strong": {"codec": arguments.strong}}
    guard = arguments.arm if arguments.arm not in codecs else "none"
    state = accordion.State(ddp, guard=guard, **codecs.get(arguments.arm, codecs["strong"]))
    ddp.register_comm_hook(state, accordion.hook)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.01, momentum=0.9)
    batch = torch.randn(arguments.batch, shape[0], shape[1], shape[1]), torch.randint(10, (arguments.batch,))
    phases = [0] * (arguments.phases)
    at = []
    while True:
        workers.timed_step(ddp, optimizer, *batch)
        # All ranks must stop after the same step, and agree on where it belongs.
        now = workers.slowest(time.perf_counter() - begin)
        if now >= arguments.phases * arguments.seconds:
            break
        phases[int(now / arguments.seconds)] += 1
        at.append(now)
    state.epoch_end(0.01, last=True)
    if dist.get_rank() == 0:
        events = [event for event in state.decisions()[0].get("guard", []) if event["event"] in ("decide", "fall back", "check")]
        for event in events:
            event["seconds"] = round(at[min(event["step"], len(at) - 1)], 1)
            event["compressed"] = sum(level >= 0 for level in event.pop("levels", []))
        print(json.dumps({"arm": arguments.arm, "steps": phases, "total": sum(phases), "events": events}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arm", default="fastest", choices=["none", "strong", "fastest", "harmless"])
    parser.add_argument("--model", default="cnn", choices=["cnn", "resnet20", "resnet18"])
    parser.add_argument("--workers", type=int, default=4, help="on this machine; a launcher's environment comes first")
    parser.add_argument("--batch", type=int, default=8, help="images a worker")
    parser.add_argument("--strong", default="powersgd:approx-rank=1")
    parser.add_argument("--phases", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30, help="of a phase")
    arguments = parser.parse_args()
    workers.run(lambda: worker(arguments), arguments.workers)


if __name__ == "__main__":
    main()
