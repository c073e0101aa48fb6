"""What each codec must do, in NumPy and as plainly as possible: one class a codec, one call a step.

A codec sees the compensated gradients of all ranks, an array [rank, element], and returns the mean that every rank
must get, and what each rank keeps for the next step (None: the codec keeps nothing).
"""

import numpy as np

import philox

F = np.float32


def mean_of(parts):
    """The mean as the library adds it up: shares first, then in rank order, in single precision."""
    out = np.zeros(parts.shape[1], F)
    for part in parts.astype(F):
        out = out + part / F(len(parts))
    return out


class Nothing:
    """Dense single precision."""

    def step(self, a, shape, where, state):
        return mean_of(a), None


class TopK:
    """The k largest magnitudes of each rank; of equal ones, the first."""

    def __init__(self, keep):
        self.keep = keep

    def step(self, a, shape, where, state):
        k = min(max(int(self.keep * a.shape[1]), 1), a.shape[1])
        sent = np.zeros_like(a)
        for row, out in zip(a, sent):
            chosen = np.argsort(-np.abs(row), kind="stable")[:k]
            out[chosen] = row[chosen]
        return mean_of(sent), np.where(sent != 0, F(0), a)


class SignVote:
    """The sign that most ranks have; no majority gives 0; a rank with nothing but zeros abstains."""

    def step(self, a, shape, where, state):
        votes = np.where(a >= 0, 1, -1) * np.any(a != 0, axis=1)[:, None]
        return np.sign(votes.sum(axis=0)).astype(F), None


class SignScaled:
    """Signs times the mean magnitude."""

    def step(self, a, shape, where, state):
        scale = np.abs(a.astype(np.float64)).mean(axis=1).astype(F)
        sent = np.where(a >= 0, 1, -1).astype(F) * scale[:, None]
        return mean_of(sent), a - sent


class Qsgd:
    """Rounding at random onto s levels either side of 0, in units of a block's scale / s.

    The library's fixed point: x s / scale has 16 bits behind the point (with more than 7 levels 13), from one product
    in single precision, rounded to the nearest. Adding as many random bits and cutting these places off rounds
    up with the distance to the lower level for a probability.
    """

    def __init__(self, bits, block=512, norm="max", shared=False):
        self.steps, self.block, self.norm, self.shared = 2 ** (bits - 1) - 1, block, norm, shared

    def scales(self, a):
        edges = np.arange(0, a.shape[1], self.block)
        if self.norm == "max":
            return np.maximum.reduceat(np.abs(a), edges, axis=1)
        return np.sqrt(np.add.reduceat(a.astype(np.float64) ** 2, edges, axis=1)).astype(F)

    def step(self, a, shape, where, state):
        n, s = a.shape[1], self.steps
        scales = self.scales(a)
        if self.shared:
            scales = np.broadcast_to(scales.max(axis=0), scales.shape)
        scale = np.repeat(scales, self.block, axis=1)[:, :n].astype(np.float64)
        places = 16 if s <= 7 else 13
        factor = np.divide(s * 2.0**places, scale, out=np.zeros_like(scale), where=scale > 0).astype(F)
        fixed = np.rint(a * factor).astype(np.int64)
        draws = np.stack([philox.sixteen_bits(where.key("qsgd", rank), n) for rank in range(len(a))])
        level = np.clip((fixed + (draws >> (16 - places))) >> places, -s, s)
        return (level * scale / s).mean(axis=0), None


class PowerSgd:
    """One step of subspace iteration, in double precision. `state` is Q, in columns."""

    def __init__(self, approx_rank):
        self.approx_rank = approx_rank

    def step(self, a, shape, where, state):
        matrices = a.astype(np.float64).reshape(len(a), shape[0], -1)
        rows, columns = matrices.shape[1:]
        r = min(self.approx_rank, rows, columns)
        q = self.basis(state.get("q"), columns, r, where)
        p = self.orthonormal((matrices @ q).sum(axis=0))
        own = np.swapaxes(matrices, 1, 2) @ p
        state["q"] = own.mean(axis=0)
        left = matrices - p @ np.swapaxes(own, 1, 2)
        return (p @ state["q"].T).reshape(-1), left.reshape(a.shape).astype(F)

    @staticmethod
    def basis(last, columns, r, where):
        q = np.zeros((columns, r))
        if last is not None:
            kept = min(r, last.shape[1])
            q[:, :kept] = last[:, :kept]
        draws = philox.Stream(where.key("powersgd q", philox.ALL_RANKS))
        for j in range(r):
            if np.linalg.norm(q[:, j]) <= 1e-30:
                q[:, j] = draws.normal(columns)
            q[:, j] /= np.linalg.norm(q[:, j])
        return q

    @staticmethod
    def orthonormal(p):
        whole = np.linalg.norm(p)
        for j in range(p.shape[1]):
            for _ in range(2):
                p[:, j] -= p[:, :j] @ (p[:, :j].T @ p[:, j])
            length = np.linalg.norm(p[:, j])
            p[:, j] = p[:, j] / length if length > 1e-8 * whole else 0
        return p


class Where:
    """Which step of which tensor: what the draws depend on."""

    def __init__(self, seed, tensor, step):
        self.seed, self.tensor, self.step = seed, tensor, step

    def key(self, purpose, rank):
        return philox.random_key(self.seed, purpose, self.tensor, self.step, rank)


class Tensor:
    """One tensor over the run: what its ranks have not sent yet, and what its codec remembers."""

    def __init__(self, shape):
        self.shape, self.kind, self.residual, self.state = shape, None, None, {}
        self.size = 0.0  # The largest norm of what was compressed so far.

    def step(self, codec, gradients, where):
        if len(self.shape) < 2:
            codec = Nothing()
        if type(codec) is not self.kind:  # Another setting of a codec inherits; another codec has nothing to.
            self.kind, self.state = type(codec), {}
        a = gradients if self.residual is None else gradients + self.residual
        self.size = max(self.size, np.linalg.norm(a))
        out, self.residual = codec.step(a, self.shape, where, self.state)
        return out
