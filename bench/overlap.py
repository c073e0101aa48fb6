#!/usr/bin/python3
"""How many of a gradient's largest entries are still the largest an epoch later: early, where the learning rate falls, and elsewhere.

    bench/overlap.py --epochs 30 --milestone 20

A small network on Fashion-MNIST, one process. After every epoch its gradient is taken over the same samples, and the largest share of each layer's
entries, as TopK would choose them, is compared with that of the epoch before, over the layers that codecs compress. Two random choices
would have that share of their entries in common.
"""

import argparse
import json
import math
import pathlib
import statistics

import workers


def largest(gradient, share):
    """The positions of a layer's largest entries."""
    return set(gradient.abs().flatten().topk(math.ceil(share * gradient.numel())).indices.tolist())


def chosen(model, images, labels, share):
    """Each layer's largest entries of the gradient over these samples, and the gradient's norm."""
    import torch
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    layers = [tensor.grad for tensor in model.parameters() if tensor.dim() > 1 and tensor.numel() >= 1024]
    return [largest(layer, share) for layer in layers], math.sqrt(sum(layer.square().sum().item() for layer in layers))


def overlap(before, after):
    """The share of all layers' chosen entries that was chosen before, too."""
    return sum(len(a & b) for a, b in zip(before, after)) / sum(map(len, after))


def train(arguments, seed, images, labels):
    """Epoch by epoch: the overlap with the epoch before, and the norm."""
    import torch
    from ddp_peer import Cnn
    torch.manual_seed(seed)
    model = Cnn(1, 28, 10)
    optimizer = torch.optim.SGD(model.parameters(), arguments.lr, momentum=0.9, nesterov=True, weight_decay=1e-4)
    probe = slice(0, arguments.probe)
    rows, before = [], None
    for epoch in range(arguments.epochs):
        for group in optimizer.param_groups:
            group["lr"] = arguments.lr / (10 if epoch >= arguments.milestone else 1)
        for samples in torch.randperm(len(images)).split(arguments.batch):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images[samples]), labels[samples]).backward()
            optimizer.step()
        after, norm = chosen(model, images[probe], labels[probe], arguments.share)
        rows.append({"epoch": epoch, "norm": norm, "overlap": overlap(before, after) if before else None})
        before = after
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--milestone", type=int, default=20, help="epoch from which the rate is a tenth")
    parser.add_argument("--share", type=float, default=0.1, help="of a layer's entries")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--probe", type=int, default=1000, help="samples of the gradient that is looked at")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()

    from fashion_mnist import load
    images, labels = load(arguments.data, "train", arguments.samples)
    runs = [train(arguments, seed, images, labels) for seed in range(1, arguments.seeds + 1)]
    if arguments.json:
        return print(json.dumps({**{name: value for name, value in vars(arguments).items() if name != "data"}, "runs": runs}))
    print(f"the largest {100 * arguments.share:g} % of {arguments.probe} samples' gradient, mean of {arguments.seeds} seeds\n")
    print("| epoch | in common with the epoch before | norm |\n|--:|--:|--:|")
    for rows in zip(*runs):
        common = "" if rows[0]["overlap"] is None else f"{100 * statistics.mean(row['overlap'] for row in rows):.1f} %"
        fall = ", the first at a tenth of the rate" if rows[0]["epoch"] == arguments.milestone else ""
        print(f"| {rows[0]['epoch']}{fall} | {common} | {statistics.mean(row['norm'] for row in rows):.3f} |")


if __name__ == "__main__":
    main()
