"""What a user would write with torch instead of a codec, doing the work of `accordion bench codecs` on command.

Reads one command a line from standard input and answers each with one line:
  codec SETTING LAYERS   LAYERS is a JSON array of {"dims", "scale"}; draws gradients of those shapes, takes one step to
                         get residuals, and checks the next one; answers "ok 1", or "ok 0" where there is no peer
  run                    the step once more; answers "ok SECONDS"
The end of standard input ends the program.

A step is what our encode does: add the residual, make the message, keep what was not sent. With PowerSGD it is the
whole conversation, as its parts cannot be told apart.
"""

import argparse
import json
import math
import sys
import time

import torch


class Layer:
    """Gradient and residual of one tensor, flat, and as a matrix for PowerSGD."""

    def __init__(self, dims, scale, generator):
        self.dims, self.n = dims, math.prod(dims)
        self.scale, self.generator = scale, generator
        self.residual = torch.zeros(self.n)
        self.next = torch.zeros(self.n)
        self.draw()

    def draw(self):
        """Student's t with four degrees of freedom, as in gradients.cpp."""
        normal = torch.randn(self.n, generator=self.generator)
        u = torch.rand(self.n, generator=self.generator).clamp_(1e-9)
        u *= torch.rand(self.n, generator=self.generator).clamp_(1e-9)
        self.gradient = normal.div_(u.log_().div_(-2).sqrt_()).mul_(self.scale)


class Codec:
    """`step(layer)` writes layer.next where there is error feedback, and returns the message."""

    feedback = True

    def __init__(self, options):
        self.options = options

    def start(self, layer):
        pass

    def decoded(self, layer, message):
        """For the check only: what the message stands for."""
        raise NotImplementedError

    def check(self, layer):
        if self.feedback:
            expected = self.input(layer)
            got = self.decoded(layer, self.step(layer)) + layer.next
            tolerance = 1e-5
        else:
            expected, got = self.expected(layer), self.decoded(layer, self.step(layer))
            tolerance = self.tolerance
        error = (got - expected).norm() / expected.norm()
        assert error <= tolerance, f"{type(self).__name__} is off by {error:.3g} on {layer.dims}"
        if self.feedback:
            assert layer.next.norm() < expected.norm(), f"{type(self).__name__} sends nothing on {layer.dims}"

    def input(self, layer):
        return layer.gradient + layer.residual

    def expected(self, layer):
        return layer.gradient


class SixteenBit(Codec):
    kind, tolerance = None, None

    def __init__(self, options):
        super().__init__(options)
        self.feedback = options.get("feedback") == "true"

    def step(self, layer):
        if not self.feedback:
            return layer.gradient.to(self.kind)
        a = layer.gradient + layer.residual
        message = a.to(self.kind)
        torch.sub(a, message.float(), out=layer.next)
        return message

    def decoded(self, layer, message):
        return message.float()


class Fp16(SixteenBit):
    kind, tolerance = torch.float16, 2**-10


class Bf16(SixteenBit):
    kind, tolerance = torch.bfloat16, 2**-8


class TopK(Codec):
    def step(self, layer):
        torch.add(layer.gradient, layer.residual, out=layer.next)
        k = max(1, int(float(self.options.get("keep", 0.01)) * layer.n))
        _, indices = torch.topk(layer.next.abs(), k, sorted=False)
        values = layer.next[indices]
        layer.next[indices] = 0
        return values, indices.int()

    def decoded(self, layer, message):
        values, indices = message
        return torch.zeros(layer.n).index_add_(0, indices.long(), values)


class RandomK(TopK):
    def step(self, layer):
        torch.add(layer.gradient, layer.residual, out=layer.next)
        k = max(1, int(float(self.options.get("keep", 0.01)) * layer.n))
        indices = torch.randperm(layer.n, generator=layer.generator)[:k]
        values = layer.next[indices]
        layer.next[indices] = 0
        return values, indices


class Threshold(TopK):
    def step(self, layer):
        torch.add(layer.gradient, layer.residual, out=layer.next)
        indices = (layer.next.abs() >= float(self.options.get("lambda", 0.005))).nonzero().squeeze(1)
        values = layer.next[indices]
        layer.next[indices] = 0
        return values, indices.int()

    def check(self, layer):
        if (self.input(layer).abs() >= float(self.options.get("lambda", 0.005))).any():
            super().check(layer)


class Dgc(TopK):
    """Momentum and accumulator, and a threshold from a sample of one in a hundred."""

    def start(self, layer):
        layer.momentum, layer.new_momentum = torch.zeros(layer.n), torch.zeros(layer.n)

    def step(self, layer):
        keep, m = float(self.options.get("keep", 0.001)), float(self.options.get("momentum", 0.9))
        torch.add(layer.gradient, layer.momentum, alpha=m, out=layer.new_momentum)
        torch.add(layer.residual, layer.new_momentum, out=layer.next)
        sizes = layer.next.abs()
        k = math.ceil(keep * layer.n)
        count = min(layer.n, max(layer.n // 100, math.ceil(2 / keep)))
        sample = sizes[:: layer.n // count]
        threshold = torch.topk(sample, math.ceil(keep * sample.numel()))[0].min()
        for _ in range(10):
            indices = (sizes >= threshold).nonzero().squeeze(1)
            if indices.numel() >= 0.8 * k:
                break
            threshold *= 0.8
        if indices.numel() > k:
            indices = indices[torch.topk(sizes[indices], k, sorted=False)[1]]
        values = layer.next[indices]
        layer.next[indices] = 0
        layer.new_momentum[indices] = 0
        return values, indices.int()

    def input(self, layer):
        m = float(self.options.get("momentum", 0.9))
        return layer.residual + m * layer.momentum + layer.gradient


def pack_bits(bits):
    """One bit an entry of a bool tensor, eight to a byte."""
    bits = torch.nn.functional.pad(bits, (0, -bits.numel() % 8)).view(torch.uint8).view(-1, 8)
    packed = bits[:, 0].clone()
    for i in range(1, 8):
        packed |= bits[:, i] << i
    return packed


def unpack_signs(packed, n):
    return ((packed[:, None] >> torch.arange(8)) & 1).view(-1)[:n].float() * 2 - 1


class SignVote(Codec):
    feedback, tolerance = False, 0

    def step(self, layer):
        return pack_bits(layer.gradient >= 0)

    def decoded(self, layer, message):
        return unpack_signs(message, layer.n)

    def expected(self, layer):
        return (layer.gradient >= 0).float() * 2 - 1


class SignScaled(Codec):
    def step(self, layer):
        a = layer.gradient + layer.residual
        scale = a.abs().mean()
        positive = a >= 0
        packed = pack_bits(positive)
        torch.sub(a, torch.where(positive, scale, -scale), out=layer.next)
        return packed, scale

    def decoded(self, layer, message):
        packed, scale = message
        return unpack_signs(packed, layer.n) * scale


def pack_levels(levels, bits):
    """Signed levels in fields of `bits`, as many to a byte as there is room for."""
    per_byte = 8 // bits
    fields = levels.to(torch.int8).view(torch.uint8)
    if per_byte == 1:
        return fields
    fields = torch.nn.functional.pad(fields, (0, -fields.numel() % per_byte)).view(-1, per_byte)
    fields = fields & (2**bits - 1)
    packed = fields[:, 0].clone()
    for i in range(1, per_byte):
        packed |= fields[:, i] << (i * bits)
    return packed


def unpack_levels(packed, bits, n):
    fields = (packed[:, None].int() >> (torch.arange(8 // bits) * bits)) & (2**bits - 1)
    return (fields - (fields >> (bits - 1)) * 2**bits).view(-1)[:n].float()


class Qsgd(Codec):
    feedback = False

    def step(self, layer):
        bits, block = int(self.options.get("bits", 4)), int(self.options.get("block", 512))
        steps = 2 ** (bits - 1) - 1
        a = torch.nn.functional.pad(layer.gradient, (0, -layer.n % block)).view(-1, block)
        sizes = a.abs()
        scale = sizes.amax(1, keepdim=True)
        levels = sizes.mul_(steps / scale.clamp(min=1e-38)).add_(torch.rand(a.shape, generator=layer.generator))
        levels = levels.floor_().clamp_(max=steps).mul_(a.sign())
        return pack_levels(levels.view(-1)[: layer.n], bits), scale

    def check(self, layer):
        bits, block = int(self.options.get("bits", 4)), int(self.options.get("block", 512))
        packed, scale = self.step(layer)
        unit = (scale / (2 ** (bits - 1) - 1)).expand(-1, block).reshape(-1)[: layer.n]
        error = unpack_levels(packed, bits, layer.n) * unit - layer.gradient
        assert (error.abs() <= unit * 1.0001).all(), f"QSGD is off by a level on {layer.dims}"
        assert error.sum().abs() <= 6 * (unit * unit / 4).sum().sqrt(), f"QSGD is biased on {layer.dims}"


class TernGrad(Codec):
    feedback = False

    def step(self, layer):
        limit = float(self.options.get("clip", 2.5)) * layer.gradient.std(unbiased=False)
        clipped = layer.gradient.clamp(-limit, limit)
        sizes = clipped.abs()
        scale = sizes.max()
        drawn = torch.rand(layer.n, generator=layer.generator).mul_(scale) < sizes
        return pack_levels(clipped.sign_().mul_(drawn), 2), scale

    def check(self, layer):
        packed, scale = self.step(layer)
        expected = layer.gradient.clamp(-scale, scale)
        error = unpack_levels(packed, 2, layer.n) * scale - expected
        assert (error.abs() <= scale * 1.0001).all(), f"TernGrad is off by a level on {layer.dims}"
        assert error.sum().abs() <= 6 * (scale * expected.abs()).sum().sqrt(), f"TernGrad is biased on {layer.dims}"


class PowerSgd(Codec):
    """The arithmetic of torch.distributed's powerSGD_hook, without its all-reduces."""

    def __init__(self, options):
        super().__init__(options)
        from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import _orthogonalize

        self.orthogonalize = _orthogonalize

    def start(self, layer):
        rows, columns = layer.dims[0], layer.n // layer.dims[0]
        rank = min(int(self.options.get("approx-rank", 4)), rows, columns)
        layer.q = torch.randn(1, columns, rank, generator=layer.generator)
        layer.p = torch.empty(1, rows, rank)
        layer.bucket = torch.empty(layer.n)

    def step(self, layer):
        # As there: the residual is added to the bucket, the bucket copied for the next residual and overwritten.
        torch.add(layer.gradient, layer.residual, out=layer.bucket)
        copy = layer.bucket.clone()
        matrix = layer.bucket.view(1, layer.dims[0], -1)
        self.orthogonalize(layer.q)
        torch.bmm(matrix, layer.q, out=layer.p)
        self.orthogonalize(layer.p)
        torch.bmm(matrix.transpose(1, 2), layer.p, out=layer.q)
        torch.bmm(layer.p, layer.q.transpose(1, 2), out=matrix)
        torch.sub(copy, layer.bucket, out=layer.next)
        return layer.bucket

    def decoded(self, layer, message):
        return message


CODECS = {
    "fp16": Fp16, "bf16": Bf16, "topk": TopK, "mstopk": TopK, "randomk": RandomK, "dgc": Dgc, "sign-vote": SignVote,
    "sign-scaled": SignScaled, "qsgd": Qsgd, "terngrad": TernGrad, "powersgd": PowerSgd, "threshold": Threshold,
}  # fmt: skip


def make_codec(setting):
    """None where the setting has an option that nobody would write by hand, or the codec no peer."""
    name, _, fields = setting.partition(":")
    options = dict(field.split("=", 1) for field in fields.split(",") if field)
    known = {"keep", "feedback", "lambda", "bits", "block", "clip", "approx-rank", "momentum"}
    if name not in CODECS or not known.issuperset(options) or (name == "randomk" and "feedback" in options):
        return None
    return CODECS[name](options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    torch.set_grad_enabled(False)

    codec, layers = None, []
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "codec":
            setting, _, shapes = rest.partition(" ")
            codec = make_codec(setting)
            if codec:
                generator = torch.Generator().manual_seed(1)
                layers = []
                for shape in json.loads(shapes):
                    layer = Layer(shape["dims"], shape["scale"], generator)
                    layers.append(layer)
                    codec.start(layer)
                    codec.step(layer)
                    if codec.feedback:
                        layer.residual, layer.next = layer.next, layer.residual
                    if hasattr(layer, "momentum"):
                        layer.momentum, layer.new_momentum = layer.new_momentum, layer.momentum
                    layer.draw()
                    codec.check(layer)
            print("ok", int(codec is not None), flush=True)
        elif command == "run":
            begin = time.perf_counter()
            for layer in layers:
                codec.step(layer)
            print("ok", time.perf_counter() - begin, flush=True)
        else:
            sys.exit(f"peers.py: unknown command {command}")


if __name__ == "__main__":
    main()
