"""tools/netlab: hosts, their links, and that nothing of them stays behind."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from program import PROGRAM, QUICK, environment, read_run, weights
from train_test import without_times

NETLAB = str(pathlib.Path(__file__).resolve().parent.parent / "tools" / "netlab")
NOT_ALLOWED = 77

# Host 0 receives BYTES from host 1, which connects as soon as it can, ROUNDS times, and prints the seconds of each.
TRANSFER = """
import os, socket, sys, time
size, rounds, pause = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    listener = socket.create_server(address)
    for _ in range(rounds):
        peer, _ = listener.accept()
        left, begin = size, None
        while left:
            left -= len(peer.recv(min(left, 1 << 20)))
            begin = begin or time.monotonic()
        print("seconds", time.monotonic() - begin, flush=True)
        peer.close()
elif os.environ["RANK"] == "1":
    for _ in range(rounds):
        while True:
            try:
                peer = socket.create_connection(address)
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        peer.sendall(bytes(size))
        peer.recv(1)
        time.sleep(pause)
"""

# Runs the arguments, and prints the addresses on which this host listened meanwhile, in the kernel's hexadecimal notation, and
# those of them that it still listened on when the first epoch was recorded, and how often it was looked at then.
LISTENING = """
import json, pathlib, subprocess, sys, time
def listening():
    lines = [line.split() for table in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    return {tuple(words[1].split(":")) for words in lines if words[3] == "0A"}
process, seen, late, looks = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL), set(), set(), 0
while process.poll() is None:
    now = listening()
    seen |= now
    record = pathlib.Path(sys.argv[1])
    if record.exists() and record.read_text():
        late |= now
        looks += 1
    time.sleep(0.005)
print(json.dumps([sorted({address for address, _ in seen}), sorted({port for _, port in seen}), sorted({port for _, port in late}), looks]))
sys.exit(process.returncode)
"""


def setUpModule():
    check = subprocess.run([NETLAB, "check"], capture_output=True, text=True)
    if check.returncode == NOT_ALLOWED:
        print("no network namespaces here: " + check.stderr.strip(), file=sys.stderr)  # CTest looks for this.
        raise unittest.SkipTest(check.stderr.strip())


def spaces():
    try:
        return {name for name in os.listdir("/run/netns") if name.startswith("netlab.")}
    except FileNotFoundError:
        return set()


def interfaces():
    return set(os.listdir("/sys/class/net"))


def process_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


class NetlabTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="netlab-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.before = interfaces()

    def start(self, *arguments):
        process = subprocess.Popen([NETLAB, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, cwd=self.folder, env=environment())
        self.addCleanup(process.kill)
        return process

    def netlab(self, *arguments, status=0, timeout=120):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=timeout)
        self.assertEqual(process.returncode, status, out + err)
        return out, err

    def mine(self, process):
        return {name for name in spaces() if f".{process.pid}." in name}

    def await_true(self, condition, what, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def transfer(self, size, rounds, pause, *arguments):
        out, _ = self.netlab("run", "--hosts", 2, *arguments, "--", sys.executable, "-c", TRANSFER, size, rounds, pause)
        return [float(line.split()[2]) for line in out.splitlines() if line.startswith("[0] seconds ")]


class Running(NetlabTest):
    def test_every_rank_knows_its_place(self):
        script = ("import json, os, socket; print(json.dumps({n: os.environ.get(n) for n in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', "
                  "'LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'GLOO_SOCKET_IFNAME', 'NETLAB_NAME')} | "
                  "{'interfaces': sorted(name for _, name in socket.if_nameindex())}))")
        out, _ = self.netlab("run", "--hosts", 3, "--name", "places", "--port", 4711, "--", sys.executable, "-c", script)
        places = {}
        for line in out.splitlines():
            head, _, text = line.partition(" ")
            places[head] = json.loads(text)
        self.assertEqual(sorted(places), ["[0]", "[1]", "[2]"])
        for rank in range(3):
            place = places[f"[{rank}]"]
            self.assertEqual(place["RANK"], str(rank))
            self.assertEqual((place["WORLD_SIZE"], place["LOCAL_RANK"], place["LOCAL_WORLD_SIZE"]), ("3", "0", "1"))
            self.assertEqual((place["MASTER_ADDR"], place["MASTER_PORT"]), ("10.77.0.1", "4711"))
            self.assertEqual((place["GLOO_SOCKET_IFNAME"], place["NETLAB_NAME"]), ("eth0", "places"))
            self.assertEqual(place["interfaces"], ["eth0", "lo"])
        self.assertEqual(interfaces(), self.before)

    def test_the_first_failing_rank_gives_the_status_and_ends_the_others(self):
        begin = time.monotonic()
        out, _ = self.netlab("run", "--hosts", 3, "--", "sh", "-c", 'echo $RANK; [ $RANK = 1 ] && exit 7; sleep 60', status=7)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertIn("[1] 1\n", out)

    def test_a_rank_that_is_killed_counts_as_failed_and_nothing_stays(self):
        process = self.start("run", "--hosts", 2, "--", "sh", "-c", 'echo pid $$; exec sleep 60')
        pids = [int(process.stdout.readline().split()[2]) for _ in range(2)]
        os.kill(pids[0], signal.SIGKILL)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL, out + err)
        self.assertEqual(self.mine(process), set())
        for pid in pids:
            self.assertTrue(process_gone(pid))

    def test_output_is_passed_on_as_it_is(self):
        out, err = self.netlab("run", "--hosts", 1, "--no-prefix", "--", "sh", "-c", "echo out; echo err >&2; printf unfinished")
        self.assertEqual((out, err), ("out\nunfinished\n", "err\n"))

    def test_two_labs_at_once_do_not_meet(self):
        first = self.start("run", "--hosts", 2, "--", "sh", "-c", 'echo up; exec sleep 60')
        first.stdout.readline()
        out, _ = self.netlab("run", "--hosts", 2, "--", "sh", "-c", 'ip -o -4 address show eth0')
        self.assertIn("10.77.0.1", out)
        self.assertEqual(len(self.mine(first)), 3)
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=30)
        self.assertEqual(first.returncode, 128 + signal.SIGTERM)
        self.assertEqual(self.mine(first), set())


class CleaningUp(NetlabTest):
    def interrupted(self, number):
        process = self.start("run", "--hosts", 2, "--rate", "100mbit", "--", "sh", "-c", 'echo pid $$; trap "" TERM INT; sleep 60; sleep 60')
        pids = [int(process.stdout.readline().split()[2]) for _ in range(2)]
        self.assertEqual(len(self.mine(process)), 3)
        self.assertEqual(interfaces(), self.before, "the lab shows in the machine's own network")
        process.send_signal(number)
        process.communicate(timeout=40)
        return process, pids

    def test_after_ctrl_c(self):
        process, pids = self.interrupted(signal.SIGINT)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assertEqual(self.mine(process), set())
        for pid in pids:
            self.assertTrue(process_gone(pid), "a rank outlived the lab")

    def test_after_ctrl_c_while_the_others_are_asked_to_end(self):
        process = self.start("run", "--hosts", 2, "--", "sh", "-c",
                             'if [ $RANK = 1 ]; then sleep 1; exit 3; fi; trap "echo asked" TERM; echo pid $$; while :; do sleep 9; done')
        pid = int(process.stdout.readline().split()[2])
        self.assertEqual(process.stdout.readline(), "[0] asked\n")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=40)
        self.assertEqual(process.returncode, 3, err)
        self.assertEqual(self.mine(process), set())
        self.assertTrue(process_gone(pid), "a rank outlived the lab")

    def test_after_netlab_itself_was_killed(self):
        process, pids = self.interrupted(signal.SIGKILL)
        for pid in pids:
            self.await_true(lambda: process_gone(pid), "a rank outlived netlab")
        self.assertEqual(len(self.mine(process)), 3)
        self.assertIn("left behind", self.netlab("list")[0])
        self.assertIn(f"removed lab{process.pid}", self.netlab("clean")[0])
        self.assertEqual(self.mine(process), set())

    def test_clean_leaves_running_labs_and_names_of_others_alone(self):
        other = f"unrelated-{os.getpid()}"
        subprocess.run(["ip", "netns", "add", other], check=True)
        self.addCleanup(subprocess.run, ["ip", "netns", "delete", other])
        process = self.start("hold", "--hosts", 2)
        lab = json.loads(process.stdout.readline())
        self.assertEqual([host["address"] for host in lab["hosts"]], ["10.77.0.1", "10.77.0.2"])
        self.netlab("clean")
        self.assertEqual(len(self.mine(process)), 3)
        self.assertTrue(os.path.exists(f"/run/netns/{other}"))
        process.communicate(timeout=30)  # The end of its input ends it.
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.mine(process), set())


class Refusing(NetlabTest):
    def test_what_cannot_be(self):
        for arguments, reason in (
                (["run", "--name", "a/b", "--", "true"], "name='a/b', expected a letter, then at most 31"),
                (["run", "--name", "", "--", "true"], "name=''"),
                (["run", "--name", "x.1.2", "--", "true"], "name='x.1.2'"),
                (["run", "--hosts", "0", "--", "true"], "hosts=0, expected 1 to 1000"),
                (["run", "--rate", "fast", "--", "true"], "rate=fast, expected none or a rate such as 100mbit"),
                (["run", "--rate-at", "5", "--", "true"], "rate-at=5, expected SECONDS=RATE"),
                (["run"], "no command, expected one after --"),
                (["rate", "nowhere", "1gbit"], "name=nowhere, expected a lab that is running")):
            with self.subTest(arguments):
                self.assertIn("netlab: " + reason, self.netlab(*arguments, status=2)[1])

    def test_a_name_that_is_in_use(self):
        first = self.start("run", "--hosts", 1, "--name", "taken", "--", "sh", "-c", 'echo up; exec sleep 60')
        first.stdout.readline()
        self.assertIn("a lab of that name is running", self.netlab("run", "--name", "taken", "--", "true", status=2)[1])
        first.terminate()
        first.communicate(timeout=30)

    def test_where_it_is_not_allowed_it_says_so(self):
        done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", NETLAB, "run", "--", "true"], capture_output=True, text=True)
        self.assertEqual(done.returncode, NOT_ALLOWED, done.stderr)
        self.assertIn("needs root", done.stderr)


    def test_a_failure_of_its_own_is_not_called_not_allowed(self):
        with tempfile.TemporaryDirectory() as folder:
            tc = pathlib.Path(folder) / "tc"
            tc.write_text(f'#!/bin/sh\n[ "$4" = replace ] && echo "no such rate" >&2 && exit 2\nexec {shutil.which("tc")} "$@"\n')
            tc.chmod(0o755)
            done = subprocess.run([NETLAB, "run", "--rate", "100mbit", "--", "true"], capture_output=True, text=True,
                                  env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no such rate", done.stderr)
        self.assertEqual(subprocess.run([NETLAB, "check"]).returncode, 0)


class Shaping(NetlabTest):
    SIZE = 5_000_000  # 0.4 s at 100 Mbit/s.

    def ideal(self, bits):
        # Two buckets of tokens are full at the start.
        return 8 * (self.SIZE - 2 * 65536) / bits

    def test_a_transfer_takes_what_the_rate_says(self):
        seconds = min(self.transfer(self.SIZE, 3, 0.3, "--rate", "100mbit"))
        self.assertGreater(seconds, 0.95 * self.ideal(100e6))
        self.assertLess(seconds, 1.3 * self.ideal(100e6))
        self.assertLess(min(self.transfer(self.SIZE, 3, 0, "--rate", "none")), 0.25 * self.ideal(100e6))

    def test_the_rate_changes_while_a_command_runs(self):
        times = self.transfer(self.SIZE, 6, 1, "--rate", "none", "--rate-at", "2.5=100mbit")
        self.assertLess(times[0], 0.25 * self.ideal(100e6))
        self.assertGreater(times[-1], 0.95 * self.ideal(100e6))

    def test_the_rate_changes_from_outside(self):
        process = self.start("run", "--hosts", 2, "--rate", "100mbit", "--name", "dial", "--", sys.executable, "-c", TRANSFER,
                             self.SIZE, 3, 0.5)
        slow = float(process.stdout.readline().split()[2])
        self.netlab("rate", "dial", "none")
        rest, _ = process.communicate(timeout=60)
        fast = float(rest.splitlines()[-1].split()[2])
        self.assertEqual(process.returncode, 0)
        self.assertGreater(slow, 0.95 * self.ideal(100e6))
        self.assertLess(fast, 0.25 * self.ideal(100e6))


class Listening(NetlabTest):
    def test_a_run_of_several_machines_listens_on_their_network_alone(self):
        for run, choice in (("any", []), ("named", ["--interface", "eth0"])):
            with self.subTest(run):
                command = [PROGRAM, "train", *QUICK, "--epochs", 6, "--out", run, "--quiet", *choice]
                out, _ = self.netlab("run", "--hosts", 2, "--port", 4711, "--", sys.executable, "-c", LISTENING,
                                     self.folder / run / "epochs.jsonl", *command)
                for line in out.splitlines():
                    head, _, text = line.partition(" ")
                    addresses, ports, late, looks = json.loads(text)
                    # Ranks listen so briefly that it may go unseen; the meeting place, on host 0, does not.
                    self.assertLessEqual(set(addresses), {"01004D0A" if head == "[0]" else "02004D0A"}, "something else than 10.77.0.x was listened on")
                    self.assertEqual(f"{4711:04X}" in ports, head == "[0]")
                    self.assertNotIn(f"{4711:04X}", late, "the meeting place outlives the meeting")
                    self.assertGreater(looks, 0, "the run ended before it was looked at")
                self.assertEqual(len(out.splitlines()), 2)


class Faults(NetlabTest):
    def test_a_host_taken_down_and_brought_back_costs_time_alone(self):
        train = ["train", *QUICK, "--epochs", 6, "--codec", "topk:keep=0.1", "--checkpoint-every", "2steps", "--quiet"]
        subprocess.run([PROGRAM, *map(str, train), "--workers", "3", "--out", "whole"], check=True, cwd=self.folder, env=environment())
        process = self.start("run", "--hosts", 3, "--name", "cable", "--", PROGRAM, *train, "--timeout", 3, "--max-restarts", 4, "--out", "run")
        record = self.folder / "run/epochs.jsonl"
        while process.poll() is None and not record.exists():
            time.sleep(0.01)
        self.netlab("down", "cable", 2)
        time.sleep(4)
        self.netlab("up", "cable", 2)
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(err, r"rank 2 exited with status 1(?s:.)*starting again from the last checkpoint")
        self.assertEqual(without_times(read_run(self.folder / "run")[1]), without_times(read_run(self.folder / "whole")[1]))
        self.assertTrue(weights(self.folder / "run") == weights(self.folder / "whole"), "the weights differ")


class Benchmarks(NetlabTest):
    def test_ddp_beside_pytorchs_on_links(self):
        run = subprocess.run([PROGRAM, "bench", "ddp", "--models", "cnn", "--workers", "2", "--rate", "100mbit", "--steps", "6"],
                             capture_output=True, text=True, env=environment())
        self.assertEqual(run.returncode, 0, run.stderr)
        (row,) = [line.split() for line in run.stdout.splitlines() if line.startswith("cnn ")]
        ours, torchs, ratio = map(float, row[4:7])
        # 1.76 MB each way, at 100 Mbit/s.
        for milliseconds in (ours, torchs):
            self.assertGreater(milliseconds, 60)
        self.assertLess(abs(ratio - 1), 0.5)

    def test_sums_beside_gloos(self):
        out, _ = self.netlab("run", "--hosts", 2, "--rate", "100mbit", "--", "sh", "-c",
                             '"$0" bench collectives --operations sum --from 4 --to 1000000 --factor 500 --repetitions 5 --json > out$RANK',
                             PROGRAM)
        rows = json.loads((self.folder / "out0").read_text())["rows"]
        self.assertTrue(rows)
        for row in rows:
            self.assertGreater(row["gloo_ms"], 0)
            self.assertGreater(row["ms"], 0)


class Counting(NetlabTest):
    def test_the_record_has_what_left_the_interface(self):
        script = ('sent() { cat /sys/class/net/eth0/statistics/tx_bytes; }; before=$(sent); "$0" "$@" || exit 1; '
                  'echo $(( $(sent) - before ))')
        out, _ = self.netlab("run", "--hosts", 2, "--", "sh", "-c", script, PROGRAM, "train", *QUICK, "--codec", "topk:keep=0.2", "--quiet",
                             "--checkpoint-every", "never", "--out", "counted")
        left = next(int(line.split()[1]) for line in out.splitlines() if line.startswith("[0]"))
        _, epochs, _ = read_run(self.folder / "counted")
        sent = sum(epoch["sent_bytes"] for epoch in epochs)
        self.assertGreater(sent, sum(epoch["wire_bytes"] for epoch in epochs))
        self.assertGreaterEqual(left, sent)
        self.assertLessEqual(left, 1.1 * sent)

    def test_the_interface_counts_what_the_communicator_counts(self):
        script = ('sent() { cat /sys/class/net/eth0/statistics/tx_bytes; }; before=$(sent); '
                  '"$0" bench collectives --operations "$1" --from 4000000 --to 4000000 --repetitions 5 --no-gloo --json > out$RANK || exit 1; '
                  'echo $(( $(sent) - before ))')
        for operation in ("sum", "gather", "broadcast"):
            with self.subTest(operation):
                out, _ = self.netlab("run", "--hosts", 4, "--", "sh", "-c", script, PROGRAM, operation)
                left = {int(line.split()[0].strip("[]")): int(line.split()[1]) for line in out.splitlines()}
                sent = json.loads((self.folder / "out0").read_text())["total_sent_bytes"]
                # The last of a broadcast's chain sends nothing but small control messages, which are mostly headers.
                for rank in range(3 if operation == "broadcast" else 4):
                    self.assertGreater(sent[rank], 5 * 3_000_000)
                    self.assertGreaterEqual(left[rank], sent[rank])
                    self.assertLessEqual(left[rank], 1.1 * sent[rank])


if __name__ == "__main__":
    unittest.main()
