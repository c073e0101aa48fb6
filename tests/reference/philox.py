"""The library's random numbers, from their definition, so that draws can be compared bit for bit.

Generator (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): Philox4x32. A block is a function of a
128-bit counter c0..c3 and a 64-bit key k0, k1. One round is

    c0, c1, c2, c3 = hi(M1 c2) ^ c1 ^ k0,  lo(M1 c2),  hi(M0 c0) ^ c3 ^ k1,  lo(M0 c0)

with M0 = 0xD2511F53, M1 = 0xCD9E8D57; before every round but the first, k0 += 0x9E3779B9 and k1 += 0xBB67AE85. Block i
of a key has the counter (low 32 bits of i, high 32 bits of i, 0, 0) and the key (low, high): accordion/base/random.h.
Streams use ten rounds.

Sixteen-bit draws (accordion/kernels/draws.h): a chunk of 512 comes from eight generators xoroshiro128+ (Blackman and
Vigna, "Scrambled linear pseudorandom number generators", 2021). Generator l of chunk c starts from block 8 c + l of Philox
with seven rounds: s0 is the first two words, low word first, s1 the last two. A step gives s0 + s1 and then, with
x = s0 ^ s1, makes s0 = rotl(s0, 24) ^ x ^ (x << 16) and s1 = rotl(x, 37). Draw 32 t + 4 l + h is bits 16 h to 16 h + 15 of
generator l's step t.

Key: a hash chain (accordion/base/hash.h) over run seed, purpose, tensor, step and rank; the rank is 2^64 - 1 for draws
that all ranks share. The chain starts at 0, a number x makes it mix(state ^ x), and the key is mix(state) at the end. A
text adds its length, then four lanes made of the state (state, ~state, state rotated left by 16 and by 32; each
takes 8 of every whole 32 bytes first), then the rest in words of 8 bytes, filled up with 0. mix is SplitMix64's step.
"""

import numpy as np

M64 = (1 << 64) - 1
ALL_RANKS = M64


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & M64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M64
    return x ^ (x >> 31)


def rotl(x, n):
    return ((x << n) | (x >> (64 - n))) & M64


def random_key(seed, purpose, tensor, step, rank):
    text = purpose.encode()
    assert len(text) < 32  # Longer ones would go through the lanes.
    state = mix(seed)
    state = mix(state ^ len(text))
    for lane in (state, state ^ M64, rotl(state, 16), rotl(state, 32)):
        state = mix(state ^ lane)
    for at in range(0, len(text), 8):
        state = mix(state ^ int.from_bytes(text[at : at + 8], "little"))
    for number in (tensor, step, rank):
        state = mix(state ^ number)
    return mix(state)


def philox(key, blocks, rounds):
    """The four words of each block, as rows."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    blocks = np.asarray(blocks, np.uint64)
    c = [blocks & low, blocks >> half, np.zeros_like(blocks), np.zeros_like(blocks)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(rounds):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> half) ^ c[1] ^ np.uint64(k0), b & low, (a >> half) ^ c[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=1)


class Stream:
    """Words of a key, one after the other, and normal numbers made of them (Box-Muller, two words for two numbers)."""

    def __init__(self, key):
        self.key, self.used, self.words = key, 0, np.zeros(0, np.uint64)

    def take(self, count):
        while self.words.size < self.used + count:
            start = self.words.size // 4
            more = philox(self.key, np.arange(start, start + 256), 10).reshape(-1)
            self.words = np.concatenate([self.words, more])
        self.used += count
        return self.words[self.used - count : self.used].astype(np.float64)

    def normal(self, count):
        pairs = self.take(2 * ((count + 1) // 2)).reshape(-1, 2)
        radius = np.sqrt(-2 * np.log((pairs[:, 0] + 1) * 2.0**-32))
        angle = 2 * np.pi * pairs[:, 1] * 2.0**-32
        both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        return both.reshape(-1)[:count].astype(np.float32)


def sixteen_bits(key, count):
    """One draw for each of `count` elements."""
    chunks = (count + 511) // 512
    words = philox(key, np.arange(8 * chunks), 7)
    s0, s1 = words[:, 0] | words[:, 1] << np.uint64(32), words[:, 2] | words[:, 3] << np.uint64(32)

    def turn(x, n):
        return x << np.uint64(n) | x >> np.uint64(64 - n)

    steps = []
    for _ in range(16):
        steps.append(s0 + s1)
        x = s0 ^ s1
        s0, s1 = turn(s0, 24) ^ x ^ (x << np.uint64(16)), turn(x, 37)
    sums = np.stack(steps).reshape(16, chunks, 8).transpose(1, 0, 2)  # chunk, step, generator
    parts = [sums >> np.uint64(16 * h) & np.uint64(0xFFFF) for h in range(4)]
    return np.stack(parts, axis=-1).reshape(-1)[:count].astype(np.int64)
