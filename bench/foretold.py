#!/usr/bin/python3
"""What `accordion calibrate` foretells of a step, beside real steps on the same links: a table for docs/results/speed.md.

    bench/foretold.py                                    4 workers on this machine
    tools/netlab run --hosts 4 --rate 100mbit -- bench/foretold.py

Each model is calibrated, which takes its parts one by one, and then trained for real (`calibrate --check`): steps with each method in
turns, of which no part was fitted to them. Nothing else may run meanwhile. A verdict is which of two methods has the shorter step, of
all pairs whose measured steps differ by more than a tenth.
"""

import argparse
import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile

import workers

METHODS = ["powersgd:approx-rank=4", "powersgd:approx-rank=1", "topk:keep=0.01", "qsgd:bits=4"]
GATHERED = ("topk", "qsgd")
ROW = re.compile(r"^(\S+) +([\d.e+]+) +([\d.e+]+) +([\d.e+]+) to +([\d.e+]+) +[\d.e+]+$", re.M)


def steps_of(model, place, arguments):
    """Method: milliseconds foretold, measured, and the ends of the interval of what was measured."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(workers.ROOT / "build" / "accordion"), "calibrate", "--model", model, "--batch", str(arguments.batch),
                   "--workers", str(arguments.workers), "--seconds", str(arguments.seconds), "--codecs", ";".join(METHODS),
                   "--out", os.path.join(folder, "profile.json"), "--check"]
        out = subprocess.run(command, env=os.environ | place, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: tuple(map(float, numbers)) for name, *numbers in ROW.findall(out[out.find("\na step"):])}


def show(tables):
    print("| model | method | foretold, ms | measured, ms | 95 % interval | off |\n|---|---|---|---|---|---|")
    errors, right, pairs = {"sums": [], "gathers": []}, 0, 0
    for model, steps in tables.items():
        for method, (foretold, measured, low, high) in steps.items():
            off = foretold / measured - 1
            errors["gathers" if method.startswith(GATHERED) else "sums"].append(abs(off))
            print(f"| {model} | {method} | {foretold:.4g} | {measured:.4g} | {low:.4g} to {high:.4g} | {100 * off:+.1f} % |")
        for a, b in itertools.combinations(steps.values(), 2):
            if max(a[1], b[1]) > 1.1 * min(a[1], b[1]):
                pairs += 1
                right += (a[0] < b[0]) == (a[1] < b[1])
    print("\nMedian error: " + ", ".join(f"{100 * statistics.median(values):.1f} % ({what})" for what, values in errors.items())
          + f". Verdicts: {right} of {pairs} right.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="cnn,resnet20,resnet18")
    parser.add_argument("--workers", type=int, default=4, help="on this machine; a launcher's environment comes first")
    parser.add_argument("--batch", type=int, default=8, help="samples a worker")
    parser.add_argument("--seconds", type=float, default=45, help="of a calibration, roughly; steps take half as long again")
    arguments = parser.parse_args()
    tables = {}
    for turn, model in enumerate(arguments.models.split(",")):
        # Ranks that a launcher started meet anew for each model.
        port = os.environ.get("MASTER_PORT")
        tables[model] = steps_of(model, {"MASTER_PORT": str(int(port) + turn)} if port else {}, arguments)
    if int(os.environ.get("RANK", "0")) == 0:
        show(tables)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
