"""Trains a small network on Fashion-MNIST with PyTorch's DistributedDataParallel, with and without Accordion.

    torchrun --nproc_per_node 4 fashion_mnist.py
    torchrun --nproc_per_node 4 fashion_mnist.py --accordion

The lines that Accordion adds are marked. Prints accuracy, traffic and seconds.
"""

import argparse
import gzip
import os
import pathlib
import time

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def read_idx(path):
    data = gzip.decompress(path.read_bytes())
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return torch.from_numpy(numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * len(dims)).reshape(dims).copy())


def load(folder, part, samples):
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz")[:samples]
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")[:samples]
    return images.unsqueeze(1).float() / 255 - 0.5, labels.long()


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accordion", action="store_true")
    parser.add_argument("--mild", default="powersgd:approx-rank=4")
    parser.add_argument("--strong", default="powersgd:approx-rank=1")
    parser.add_argument("--guard", default="harmless", help="none: compress whether or not it pays")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=12000)
    parser.add_argument("--batch", type=int, default=32, help="per worker")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--record", help="folder for the record of the run")
    arguments = parser.parse_args()

    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
    images, labels = load(arguments.data, "train", arguments.samples)
    ddp = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(ddp.parameters(), arguments.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [arguments.epochs * 3 // 5])

    if arguments.accordion:
        import accordion  # Accordion: only those who ask for it need it.
        state = accordion.State(ddp, controller="accordion", mild=arguments.mild, strong=arguments.strong, interval=1,
                                guard=arguments.guard, optimizer=optimizer, record=arguments.record)
        ddp.register_comm_hook(state, accordion.hook)  # Accordion

    begin = time.monotonic()
    steps = 0
    for epoch in range(arguments.epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        for samples in order.split(arguments.batch * ranks):
            if len(samples) < arguments.batch * ranks:  # The same on every rank, which go on together.
                continue
            mine = samples[rank::ranks]
            optimizer.zero_grad()
            cross_entropy(ddp(images[mine]), labels[mine]).backward()
            optimizer.step()
            steps += 1
        scheduler.step()
        if arguments.accordion:
            state.epoch_end(optimizer, last=epoch + 1 == arguments.epochs)  # Accordion
    seconds = time.monotonic() - begin

    if rank == 0:
        with torch.no_grad():
            images, labels = load(arguments.data, "t10k", 10000)
            accuracy = (ddp.module(images).argmax(1) == labels).float().mean()
        parameters = sum(p.numel() for p in ddp.parameters())
        sent = state.traffic()["wire_bytes"] if arguments.accordion else 8 * parameters * steps * (ranks - 1) // ranks
        print(f"accuracy {100 * accuracy:.2f} %, {sent / 1e6:.1f} MB sent by each worker, {seconds:.1f} s")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
