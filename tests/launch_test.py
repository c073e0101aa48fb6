"""Ranks that start, meet, disagree, go missing and die."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import unittest

from program import PROGRAM, QUICK, ProgramTest, environment, free_port


class Dying(ProgramTest):
    def rank_pid(self, parent, rank):
        """The process id of a rank that `parent` started."""
        for _ in range(300):
            for pid in subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True).stdout.split():
                try:
                    variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                except OSError:
                    continue
                if f"RANK={rank}".encode() in variables:
                    return int(pid)
            time.sleep(0.1)
        self.fail(f"rank {rank} did not start")

    def test_when_one_rank_dies_the_others_end_and_it_is_named(self):
        process = self.start("train", "--workers", 4, "--samples", 2000, "--epochs", 1000, "--out", "run")
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

    @unittest.skipUnless(shutil.which("torchrun"), "no torchrun here")
    def test_under_torchrun(self):
        # Debian's torchrun crashes without -r 1 -t 1 under Python 3.11.
        command = ["torchrun", "--nnodes", "1", "--nproc_per_node", "2", "--rdzv_backend", "c10d", "--rdzv_endpoint",
                   f"127.0.0.1:{free_port()}", "-r", "1", "-t", "1", "--no_python", PROGRAM, "train", *QUICK, "--out", "run"]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, env=environment())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(self.read_run(self.folder / "run")[0]["workers"], 2)


if __name__ == "__main__":
    unittest.main()
