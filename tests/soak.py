"""Runs that are killed again and again, against the same runs left alone: the ends must be the same to the last bit.

Every codec with every controller that takes it, one pair after the other, until the minutes are over:

    /usr/bin/python3 tests/soak.py --minutes 20 [--seed S] [--pairs N]
"""

import argparse
import itertools
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from program import PROGRAM, environment, read_run, weights
from train_test import without_times

# Two levels of each codec, mild and strong.
CODECS = {
    "none": ("none", "none"),
    "fp16": ("fp16", "fp16:feedback=true"),
    "bf16": ("bf16", "bf16:feedback=true"),
    "topk": ("topk:keep=0.3", "topk:keep=0.01"),
    "mstopk": ("mstopk:keep=0.3", "mstopk:keep=0.01"),
    "randomk": ("randomk:keep=0.3", "randomk:keep=0.05"),
    "dgc": ("dgc:keep=0.1", "dgc:keep=0.01"),
    "sign-vote": ("sign-vote", "sign-vote"),
    "sign-scaled": ("sign-scaled", "sign-scaled:chunked=true"),
    "qsgd": ("qsgd:bits=8", "qsgd:bits=2"),
    "terngrad": ("terngrad:clip=0", "terngrad"),
    "powersgd": ("powersgd:approx-rank=4", "powersgd:approx-rank=1"),
    "atomo": ("atomo:budget=4", "atomo:budget=1"),
    "threshold": ("threshold:lambda=0.001", "threshold:lambda=0.01"),
}
BATCHES = ["--batch-mild", "60", "--batch-strong", "120"]


def controls(codec):
    """The options of each controller for a codec's two levels."""
    mild, strong = CODECS[codec]
    levels = ["--mild", mild, "--strong", strong]
    return {
        "static": ["--codec", strong],
        "schedule": ["--controller", "schedule", *levels, "--plan", "mild@0-1,strong"],
        "accordion": ["--controller", "accordion", *levels, "--interval", "1"],
        "adaqs": ["--controller", "adaqs", *levels, "--interval", "1", "--threshold", "0.97"],
        "lgreco": ["--controller", "lgreco", *levels, "--interval", "1"],
        "auto": ["--controller", "auto", "--codec", codec, "--tolerance", "0.6", "--interval", "1"],
        "joint": ["--controller", "joint", *levels, *BATCHES, "--interval", "1"],
        "smith": ["--controller", "smith", "--codec", strong, *BATCHES, "--schedule", "step", "--milestones", "1"],
        "rethink": ["--controller", "rethink", "--density", "0.01"],
    }


RUN = ["--workers", "3", "--samples", "480", "--test-samples", "200", "--epochs", "3", "--batch", "20", "--lr", "0.02",
       "--checkpoint-every", "2steps", "--keep", "2", "--timeout", "30", "--quiet"]


class Failed(Exception):
    pass


def run(*arguments, cwd):
    return subprocess.run([PROGRAM, *arguments], cwd=cwd, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def killed(command, cwd, draw):
    """Starts the command and kills one of its ranks after a moment; true when it ended by itself before."""
    process = subprocess.Popen([PROGRAM, *command], cwd=cwd, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(draw.uniform(0.3, 2.0))
    ranks = subprocess.run(["pgrep", "-P", str(process.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
    if process.poll() is None and ranks:
        os.kill(int(draw.choice(ranks)), draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV]))
    process.communicate(timeout=120)
    return process.returncode == 0


def try_pair(options, cwd, draw, count):
    whole = run("train", *RUN, *options, "--out", "whole", cwd=cwd)
    if whole.returncode == 2:
        return whole.stderr.strip()  # This controller does not take that codec.
    if whole.returncode != 0:
        raise Failed(whole.stderr)
    done = killed(["train", *RUN, *options, "--out", "killed"], cwd, draw)
    for _ in range(3):
        count["kills"] += not done
        if done or not (pathlib.Path(cwd) / "killed/config.json").exists():
            break
        done = killed(["resume", "killed", "--quiet"], cwd, draw)
    if not (pathlib.Path(cwd) / "killed/config.json").exists():  # Killed before it had begun.
        run("train", *RUN, *options, "--out", "killed", cwd=cwd)
    last = run("resume", "killed", "--quiet", cwd=cwd)
    if last.returncode != 0:
        raise Failed(last.stderr)
    runs = [read_run(pathlib.Path(cwd) / name) for name in ("whole", "killed")]
    records = [without_times(epochs) for _, epochs, _ in runs]
    if records[0] != records[1]:
        raise Failed("the records differ")
    if weights(pathlib.Path(cwd) / "whole") != weights(pathlib.Path(cwd) / "killed"):
        raise Failed("the weights differ")
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=10 ** 9)
    parser.add_argument("--only", default="", help="codec or controller; its pairs only")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    pairs = [pair for pair in itertools.product(CODECS, controls("none")) if not arguments.only or arguments.only in pair]
    draw.shuffle(pairs)
    end = time.monotonic() + 60 * arguments.minutes
    count = {"pairs": 0, "kills": 0, "refused": 0}
    for codec, controller in pairs[:arguments.pairs]:
        if time.monotonic() > end:
            break
        cwd = tempfile.mkdtemp(prefix="accordion-soak-")
        try:
            refusal = try_pair(controls(codec)[controller], cwd, draw, count)
        except (Failed, subprocess.TimeoutExpired) as error:
            print(f"\n{codec} with {controller}: {error}\nThe runs are in {cwd}", file=sys.stderr)
            return 1
        count["refused" if refusal else "pairs"] += 1
        shutil.rmtree(cwd)
        left = max(0, end - time.monotonic())
        print(f"\r{count['pairs']} pairs the same after {count['kills']} kills, {count['refused']} refused, "
              f"{left / 60:.1f} minutes left: {controller} with {codec}    ", end="", file=sys.stderr, flush=True)
    print(f"\n{count['pairs']} passed, 0 failed, {count['refused']} skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
