"""Ranks that start, meet, disagree, go missing and die."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from program import PROGRAM, QUICK, ProgramTest, environment, free_port

# Only what moves gradients is linked to MPI.
HAS_MPI = b"libmpi" in subprocess.run(["ldd", PROGRAM + "-torch"], capture_output=True, check=True).stdout
TORCHRUN = [sys.executable, str(pathlib.Path(__file__).resolve().with_name("torchrun.py"))]


def children(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


class Dying(ProgramTest):
    def rank_pid(self, parent, rank):
        """The process id of a rank that `parent` started."""
        for _ in range(300):
            for pid in children(parent):
                try:
                    variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                except OSError:
                    continue
                if f"RANK={rank}".encode() in variables:
                    return int(pid)
            time.sleep(0.1)
        self.fail(f"rank {rank} did not start")

    def test_when_one_rank_dies_the_others_end_and_it_is_named(self):
        process = self.start("train", "--workers", 4, "--samples", 2000, "--test-samples", 500, "--epochs", 1000, "--out", "run")
        self.addCleanup(process.kill)
        record = self.folder / "run" / "epochs.jsonl"
        for _ in range(600):
            if record.exists() and record.read_text():
                break
            time.sleep(0.1)
        ranks = [self.rank_pid(process.pid, rank) for rank in range(4)]
        os.kill(ranks[2], signal.SIGKILL)
        begin = time.time()
        _, err = process.communicate(timeout=30)
        self.assertLess(time.time() - begin, 10)
        self.assertEqual(process.returncode, 1)
        self.assertIn("rank 2 was killed by signal 9 (Killed)", err)
        for pid in ranks:
            self.assertFalse(os.path.exists(f"/proc/{pid}"), "a rank outlived the run")


class Meeting(ProgramTest):
    def start_ranks(self, ranks, arguments, world=None, **added):
        port = added.pop("MASTER_PORT", None) or free_port()
        processes = []
        for rank in ranks:
            env = environment(RANK=rank, WORLD_SIZE=world or len(ranks), LOCAL_RANK=rank, MASTER_ADDR="127.0.0.1",
                              MASTER_PORT=port, **added)
            process = self.start("train", *arguments[rank] if isinstance(arguments, dict) else arguments, env=env)
            self.addCleanup(process.kill)
            processes.append(process)
        return processes

    def finish(self, processes, timeout=60):
        return [(*process.communicate(timeout=timeout), process.returncode) for process in processes]

    def test_ranks_take_their_place_from_the_environment(self):
        results = self.finish(self.start_ranks(range(3), [*QUICK, "--out", "run"]))
        self.assertEqual([status for _, _, status in results], [0, 0, 0], results)
        config, _, _ = self.read_run(self.folder / "run")
        self.assertEqual(config["workers"], 3)
        self.assertIn("Run folder", results[0][0])
        self.assertEqual(results[1][0], "", "only rank 0 reports")

    def listening(self, pids):
        """The addresses on which these processes listen, in the kernel's hexadecimal notation."""
        sockets = set()
        for pid in pids:
            try:
                sockets |= {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
            except OSError:
                continue
        lines = [line.split() for table in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
        return {words[1].split(":")[0] for words in lines if words[3] == "0A" and f"socket:[{words[9]}]" in sockets}

    def test_a_local_run_listens_on_loopback_alone(self):
        # For some milliseconds, until its ranks are connected: it may take more than one run to see them at it.
        seen = set()
        for attempt in range(20):
            process = self.start("train", *QUICK, "--workers", 3, "--out", f"run-{attempt}")
            self.addCleanup(process.kill)
            while process.poll() is None:
                seen |= self.listening(children(process.pid))
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, err)
            if seen:
                break
        self.assertEqual(seen, {"0100007F"}, "something else than 127.0.0.1 was listened on, or nothing seen")

    def test_ranks_that_disagree_say_in_what(self):
        arguments = {0: [*QUICK], 1: [*QUICK, "--lr", "0.2"], 2: [*QUICK]}
        for _, err, status in self.finish(self.start_ranks(range(3), arguments)):
            self.assertEqual(status, 1)
            self.assertIn("rank 1 differs from rank 0 in its configuration: lr = 0.2 against lr = 0.1", err)

    def test_ranks_with_other_data_say_so(self):
        source = "/usr/share/datasets/fashion-mnist"
        other = self.folder / "other"
        other.mkdir()
        for name in os.listdir(source):
            shutil.copy(f"{source}/{name}", other / name)
        # The test set in place of the training set: a valid data set, but not the same.
        for kind in ("images-idx3", "labels-idx1"):
            shutil.copy(other / f"t10k-{kind}-ubyte.gz", other / f"train-{kind}-ubyte.gz")
        arguments = {0: [*QUICK], 1: [*QUICK, "--data-dir", other]}
        for _, err, status in self.finish(self.start_ranks(range(2), arguments)):
            self.assertEqual(status, 1)
            self.assertIn("rank 1 differs from rank 0 in its data: training samples = 10000 against training samples = 60000", err)

    def test_a_missing_peer_is_named_within_the_timeout(self):
        begin = time.time()
        results = self.finish(self.start_ranks([0, 2], [*QUICK, "--timeout", "4"], world=3))
        self.assertLess(time.time() - begin, 25)
        for _, err, status in results:
            self.assertEqual(status, 1, err)
        self.assertIn("rank 1", results[0][1])

    def test_a_taken_port(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            [(_, err, status)] = self.finish(self.start_ranks([0], [*QUICK, "--timeout", "5"], world=2, MASTER_PORT=port))
        self.assertEqual(status, 1)
        self.assertRegex(err, f"port {port} .*taken")

    def test_a_rank_that_waits_can_be_interrupted(self):
        [process] = self.start_ranks([0], [*QUICK, "--timeout", "60"], world=2)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        begin = time.time()
        process.communicate(timeout=30)
        self.assertLess(time.time() - begin, 3)
        self.assertNotEqual(process.returncode, 0)

    def test_workers_must_agree_with_the_launcher(self):
        env = environment(RANK=0, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())
        _, err = self.run_program("train", *QUICK, "--workers", 4, env=env, status=2)
        self.assertIn("workers=4, but", err)

    def test_variables_that_cannot_be_are_named(self):
        usual = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
        for name, value in (("WORLD_SIZE", "99999999999"), ("WORLD_SIZE", "-1"), ("RANK", "-1"), ("RANK", "1"), ("MASTER_PORT", "abc"),
                            ("MASTER_PORT", "65536"), ("LOCAL_RANK", "x"), ("LOCAL_WORLD_SIZE", "9" * 1000), ("OMP_NUM_THREADS", "-2")):
            with self.subTest(f"{name}={value[:20]}"):
                _, err = self.run_program("train", *QUICK, env=environment(**{**usual, name: value}), status=2)
                self.assertRegex(err, f"(?m)^accordion: {name}={value}, expected a whole number from")

    def test_a_wrong_address(self):
        env = environment(RANK=1, WORLD_SIZE=2, MASTER_ADDR="no-such-host.invalid", MASTER_PORT=29500)
        begin = time.time()
        _, err = self.run_program("train", *QUICK, "--timeout", "4", env=env, status=1)
        self.assertLess(time.time() - begin, 20)
        self.assertIn("no-such-host.invalid", err)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_under_mpirun(self):
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", PROGRAM, "train", *QUICK, "--out", "run", "--quiet"]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120,
                                env=environment(MASTER_PORT=free_port()))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.read_run(self.folder / "run")[0]["workers"], 2)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_messages_over_mpi_give_the_same_bits(self):
        if not HAS_MPI:
            self.skipTest("the program was built without MPI")
        for backend in ("tcp", "gloo", "mpi"):
            command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", PROGRAM, "train", *QUICK, "--backend", backend,
                       "--codec", "powersgd:approx-rank=2", "--out", backend, "--quiet"]
            result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=180,
                                    env=environment(MASTER_PORT=free_port(), OMPI_MCA_mpi_yield_when_idle=1))
            self.assertEqual(result.returncode, 0, result.stderr)
        losses = [[epoch["train_loss"] for epoch in self.read_run(self.folder / backend)[1]] for backend in ("tcp", "gloo", "mpi")]
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(losses[0], losses[2])
        self.assertEqual(len(losses[0]), 2)

    def test_a_back_end_that_cannot_be(self):
        _, err = self.run_program("train", *QUICK, "--backend", "pigeon", status=2)
        self.assertIn('unknown backend "pigeon"', err)
        _, err = self.run_program("train", *QUICK, "--backend", "mpi", "--workers", 4, status=2)
        self.assertIn("start the ranks with mpirun -n 4" if HAS_MPI else "built where no MPI was found", err)

    def test_mpi_takes_no_interface(self):
        if not HAS_MPI:
            self.skipTest("the program was built without MPI")
        _, err = self.run_program("train", *QUICK, "--backend", "mpi", "--interface", "lo", status=2)
        self.assertIn("train: interface=lo with backend=mpi, expected no interface", err)

    @unittest.skipUnless(shutil.which("torchrun"), "no torchrun here")
    def test_under_torchrun(self):
        # Debian 12's torchrun crashes without -r 1 -t 1 under Python 3.11.
        command = [*TORCHRUN, "--nnodes", "1", "--nproc_per_node", "2", "--rdzv_backend", "c10d", "--rdzv_endpoint",
                   f"127.0.0.1:{free_port()}", "-r", "1", "-t", "1", "--no_python", PROGRAM, "train", *QUICK, "--out", "run"]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, env=environment())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(self.read_run(self.folder / "run")[0]["workers"], 2)

    @unittest.skipUnless(shutil.which("torchrun"), "no torchrun here")
    def test_a_group_that_torchrun_starts_again(self):
        # The first group meets, trains and fails; the second meets at the same store.
        script = '"$0" train "$@" --out run$TORCHELASTIC_RESTART_COUNT && [ $TORCHELASTIC_RESTART_COUNT = 1 ]'
        command = [*TORCHRUN, "--nnodes", "1", "--nproc_per_node", "2", "--max_restarts", "1", "--rdzv_backend", "c10d",
                   "--rdzv_endpoint", f"127.0.0.1:{free_port()}", "-r", "1", "-t", "1", "--no_python", "sh", "-c", script, PROGRAM, *QUICK]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=180, env=environment())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for run in ("run0", "run1"):
            self.assertEqual(self.read_run(self.folder / run)[2]["status"], "finished")


if __name__ == "__main__":
    unittest.main()
