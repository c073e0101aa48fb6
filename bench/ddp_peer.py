"""One rank of PyTorch's own DistributedDataParallel, doing the work of `accordion bench ddp` on command.

Reads one command a line from standard input and answers each with one line:
  verify WEIGHTS GRADIENTS   loads the weights (float32, in registration order), takes the gradient of one batch and,
                             on rank 0, writes it to GRADIENTS; answers "ok LOSS"
  step                       one training step; answers "ok SECONDS"
The end of standard input ends the rank.
"""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Cnn(nn.Module):
    def __init__(self, channels, size, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.hidden = nn.Linear(64 * (size // 4) ** 2, 64)
        self.out = nn.Linear(64, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu_(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu_(self.conv2(x)), 2)
        return self.out(F.relu_(self.hidden(x.flatten(1))))


def conv(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.norm1 = conv(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = conv(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu_(self.norm1(self.conv1(x)))))
        y += x if self.shortcut is None else self.shortcut(x)
        return F.relu_(y)


class ResNet(nn.Module):
    def __init__(self, channels, classes, width, blocks):
        super().__init__()
        self.stem, self.norm = conv(channels, width, 3, 1), nn.BatchNorm2d(width)
        stages, inputs = [], width
        for stage, count in enumerate(blocks):
            for block in range(count):
                stages.append(BasicBlock(inputs, width << stage, 2 if block == 0 and stage > 0 else 1))
                inputs = width << stage
        self.stages = nn.Sequential(*stages)
        self.out = nn.Linear(inputs, classes)

    def forward(self, x):
        return self.out(self.stages(F.relu_(self.norm(self.stem(x)))).mean((2, 3)))


def make_model(name, channels, size, classes):
    if name == "cnn":
        return Cnn(channels, size, classes)
    if name == "resnet18":
        return ResNet(channels, classes, 64, [2, 2, 2, 2])
    if name == "resnet20":
        return ResNet(channels, classes, 16, [3, 3, 3])
    sys.exit(f"ddp_peer.py: unknown model {name}; there are: cnn, resnet18, resnet20")


def make_batch(rank, batch, channels, size, classes):
    """The batch of `make_bench_batch` in ddp_worker.cpp."""
    count = batch * channels * size * size
    images = torch.sin(torch.arange(count, dtype=torch.float64) * 0.7 + rank).to(torch.float32)
    return images.reshape(batch, channels, size, size), (torch.arange(batch) * 3 + rank) % classes


def load_weights(model, path):
    values = torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.float32)
    offset = 0
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(values[offset : offset + parameter.numel()].view_as(parameter))
            offset += parameter.numel()
    assert offset == values.numel(), f"{path}: {values.numel()} values for {offset} parameters"


def main():
    parser = argparse.ArgumentParser()
    for name, kind in (("model", str), ("batch", int), ("channels", int), ("size", int), ("classes", int)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    options = parser.parse_args()

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    os.environ.setdefault("USE_LIBUV", "0")  # For the store; Debian 13's torch was built without.
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = make_model(options.model, options.channels, options.size, options.classes)
    # As fast as it goes: gradients live in the buckets, and buffers are not broadcast before every forward.
    ddp = DistributedDataParallel(model, broadcast_buffers=False, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    images, labels = make_batch(rank, options.batch, options.channels, options.size, options.classes)

    def backward():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.zero_()
        loss = F.cross_entropy(ddp(images), labels)
        loss.backward()
        return loss

    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "verify":
            load_weights(model, arguments[0])
            loss = backward()
            if rank == 0:
                with open(arguments[1], "wb") as file:
                    for parameter in model.parameters():
                        file.write(parameter.grad.contiguous().numpy().tobytes())
            print("ok", loss.item(), flush=True)
        elif command == "step":
            begin = time.perf_counter()
            backward()
            optimizer.step()
            print("ok", time.perf_counter() - begin, flush=True)
        else:
            sys.exit(f"ddp_peer.py: unknown command {command}")


if __name__ == "__main__":
    main()
