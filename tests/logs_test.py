"""What `train` writes for other programs: TensorBoard's event files and Perfetto's traces, read by readers of their own."""

import json
import math
import struct
import unittest

from program import QUICK, ProgramTest, forget_after


def crc32c(data):
    """Bit by bit, as the polynomial says: nothing in common with a table."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The messages of an event file; checksums that do not hold are errors."""
    at = 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at:at + 8]), f"checksum of the length at {at}"
        event = data[at + 12:at + 12 + length]
        assert len(event) == length, f"cut short at {at}"
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(event), f"checksum of the event at {at}"
        yield event
        at += 16 + length


def fields(message):
    """(number, value) of a protocol-buffer message."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            shift += 7
            at += 1
            if message[at - 1] < 128:
                return value, at

    at = 0
    while at < len(message):
        key, at = varint(at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(at)
        elif wire == 2:
            length, at = varint(at)
            value, at = message[at:at + length], at + length
        else:
            size, code = {1: (8, "<d"), 5: (4, "<f")}[wire]
            value, at = struct.unpack_from(code, message, at)[0], at + size
        yield number, value


class TensorBoard(ProgramTest):
    def test_scalars_are_the_record(self):
        self.run_program("train", "--workers", 2, *QUICK, "--tensorboard", "--out", "run", "--codec", "topk:keep=0.1")
        _, epochs, _ = self.read_run(self.folder / "run")
        path = self.folder / "run" / "events.out.tfevents.accordion"
        first, *events = [dict(fields(event)) for event in records(path.read_bytes())]
        self.assertEqual(first[3], b"brain.Event:2")
        self.assertEqual([event.get(2, 0) for event in events], [0, 1])
        for event, epoch in zip(events, epochs):
            self.assertGreater(event[1], 1.5e9)
            scalars = {}
            for _, value in fields(event[5]):
                parts = dict(fields(value))
                scalars[parts[1].decode()] = parts[2]
            expected = {"loss/train": "train_loss", "loss/test": "test_loss", "test/accuracy": "test_accuracy", "schedule/lr": "lr",
                        "schedule/global_batch": "global_batch", "cost/seconds": "seconds", "cost/payload_bytes": "payload_bytes",
                        "cost/wire_bytes": "wire_bytes"}
            expected = {tag: epoch[key] for tag, key in expected.items()}
            for layer in epoch["layers"]:
                expected |= {"norm/" + layer["name"]: layer["norm"], "level/" + layer["name"]: layer["level"]}
            self.assertEqual(sorted(scalars), sorted(expected))
            for tag, value in expected.items():
                self.assertTrue(math.isclose(scalars[tag], value, rel_tol=1e-6), tag)

        # A byte that is not what it was does not pass.
        broken = bytearray(path.read_bytes())
        broken[-6] ^= 1
        with self.assertRaises(AssertionError):
            list(records(broken))

        # A run that takes the folder's place takes its event file too.
        self.run_program("train", *QUICK, "--out", "run", "--overwrite", "--quiet")
        self.assertFalse(path.exists())


    def test_a_run_that_goes_on_keeps_all_of_its_epochs(self):
        self.run_program("train", *QUICK, "--tensorboard", "--checkpoint-every", "1epoch", "--out", "run", "--quiet")
        forget_after(self.folder / "run", 12)
        self.run_program("resume", "run", "--tensorboard", "--trace", "--quiet")
        _, *events = [dict(fields(event)) for event in records((self.folder / "run" / "events.out.tfevents.accordion").read_bytes())]
        self.assertEqual([event.get(2, 0) for event in events], [0, 1])
        self.assertTrue(json.loads((self.folder / "run" / "trace.json").read_text())["traceEvents"])


class Trace(ProgramTest):
    def test_all_buckets_of_all_ranks(self):
        self.run_program("train", "--workers", 2, *QUICK, "--trace", "--out", "run", "--codec", "powersgd:approx-rank=1")
        _, epochs, _ = self.read_run(self.folder / "run")
        trace = json.loads((self.folder / "run" / "trace.json").read_text())
        events = trace["traceEvents"]
        self.assertEqual({event["pid"] for event in events}, {0, 1})
        self.assertEqual({event["args"]["name"] for event in events if event["name"] == "process_name"}, {"rank 0", "rank 1"})
        for rank in (0, 1):
            spans = [event for event in events if event["pid"] == rank and event["ph"] == "X"]
            kinds = [event["name"].split()[0].rstrip(":") for event in spans]
            steps = epochs[1]["steps"]
            self.assertEqual(kinds.count("step"), steps)
            buckets = kinds.count("encode")
            self.assertEqual(buckets % steps, 0)
            self.assertEqual(len([event for event in events if event["pid"] == rank and event["ph"] == "i"]), buckets)
            # The epoch's own time, which began where ranks met.
            last = max(event["ts"] + event["dur"] for event in spans)
            self.assertLess(last, 1.5e6 * epochs[1]["seconds"] + 1e6)
            self.assertTrue(all(event["ts"] > -1e6 and event["dur"] >= 0 for event in spans))
            # What a rank contributed by the messages of the trace is what was counted.
            sent = sum(event["args"]["bytes"] for event in spans if event["name"].startswith("wire"))
            self.assertEqual(sent, epochs[1]["payload_bytes"])
            # One thread moves buckets one after the other.
            exchange = sorted((event["ts"], event["ts"] + event["dur"]) for event in spans if event["tid"] == 3)
            self.assertTrue(all(end <= begin + 1 for (_, end), (begin, _) in zip(exchange, exchange[1:])))

    def test_the_only_epoch(self):
        self.run_program("train", "--samples", 200, "--test-samples", 100, "--epochs", 1, "--batch", 50, "--trace", "--out", "run", "--quiet")
        self.assertTrue(json.loads((self.folder / "run" / "trace.json").read_text())["traceEvents"])


if __name__ == "__main__":
    unittest.main()
