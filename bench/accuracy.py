#!/usr/bin/python3
"""Seconds of training until a test accuracy is reached: PyTorch's plain DDP, and the same script under guarded Accordion.

    tools/netlab run --hosts 4 --rate 100mbit -- bench/accuracy.py --batch 8 --target 0.82

A small network on Fashion-MNIST, several seeds. Both start from the same weights and see the same samples in the same order. Every few steps
the test set is evaluated, with the clock stopped; the target counts as reached at the first evaluation that is at or above it.
"""

import argparse
import json
import pathlib
import statistics
import time

import workers


def accuracy(model, images, labels):
    import torch
    import torch.distributed as dist
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model.eval()
    with torch.no_grad():
        right = (model(images[rank::ranks]).argmax(1) == labels[rank::ranks]).sum().double()
    model.train()
    dist.all_reduce(right)
    return right.item() / len(labels)


def train(arguments, seed, guarded, train_set, test_set):
    """Seconds and steps until the target is reached, or None; and what it came to."""
    import torch
    import torch.distributed as dist
    from ddp_peer import Cnn
    from torch.nn.parallel import DistributedDataParallel

    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(seed)
    ddp = DistributedDataParallel(Cnn(1, 28, 10), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(ddp.parameters(), arguments.lr, momentum=0.9)
    if guarded:
        import accordion
        state = accordion.State(ddp, controller="accordion", mild=arguments.mild, strong=arguments.strong, interval=1, seed=seed,
                                optimizer=optimizer)
        ddp.register_comm_hook(state, accordion.hook)
    images, labels = train_set
    seconds, steps, best = 0.0, 0, 0.0
    for epoch in range(arguments.epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1000 * seed + epoch))
        for samples in order.split(arguments.batch * ranks):
            mine = samples[rank::ranks]
            if len(samples) < arguments.batch * ranks:
                continue
            begin = time.perf_counter()
            optimizer.zero_grad(set_to_none=False)
            torch.nn.functional.cross_entropy(ddp(images[mine]), labels[mine]).backward()
            optimizer.step()
            seconds += time.perf_counter() - begin
            steps += 1
            if steps % arguments.every == 0:
                best = max(best, accuracy(ddp.module, *test_set))
                if best >= arguments.target:
                    return workers.slowest(seconds), steps, best
        if guarded:
            begin = time.perf_counter()
            state.epoch_end(optimizer)
            seconds += time.perf_counter() - begin
    return None, steps, best


def worker(arguments):
    import torch.distributed as dist
    from fashion_mnist import load

    train_set, test_set = load(arguments.data, "train", arguments.samples), load(arguments.data, "t10k", arguments.test_samples)
    rows = []
    for seed in range(1, arguments.seeds + 1):
        row = {"seed": seed}
        for name in ("plain", "guarded"):
            seconds, steps, best = train(arguments, seed, name == "guarded", train_set, test_set)
            row[name] = {"seconds": seconds, "steps": steps, "accuracy": best}
        rows.append(row)
    if dist.get_rank() != 0:
        return
    ratios = [row["plain"]["seconds"] / row["guarded"]["seconds"] for row in rows
              if row["plain"]["seconds"] and row["guarded"]["seconds"]]
    if arguments.json:
        return print(json.dumps({"target": arguments.target, "batch": arguments.batch, "rows": rows, "faster": ratios}))
    print(f"{dist.get_world_size()} workers, batch {arguments.batch}, to {100 * arguments.target:.1f} % of {arguments.test_samples} test images")
    for row in rows:
        text = [f"{name} " + (f"{row[name]['seconds']:.1f} s, {row[name]['steps']} steps" if row[name]["seconds"] else
                              f"not reached in {row[name]['steps']} steps ({100 * row[name]['accuracy']:.1f} %)")
                for name in ("plain", "guarded")]
        print(f"seed {row['seed']}: {text[0]}; {text[1]}")
    if ratios:
        print(f"faster: {statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f}), {len(ratios)} of {len(rows)} seeds")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=4, help="on this machine; a launcher's environment comes first")
    parser.add_argument("--batch", type=int, default=8, help="images a worker")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--target", type=float, default=0.82)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--samples", type=int, default=8000)
    parser.add_argument("--test-samples", type=int, default=2000)
    parser.add_argument("--every", type=int, default=25, help="steps between evaluations")
    parser.add_argument("--mild", default="powersgd:approx-rank=4")
    parser.add_argument("--strong", default="powersgd:approx-rank=1")
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    workers.run(lambda: worker(arguments), arguments.workers)


if __name__ == "__main__":
    main()
