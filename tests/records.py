"""Run folders made up: what training would take too long to record, or never records."""

import json


def layer(name, epoch, critical=True, **changes):
    return {"name": name, "elements": 1000, "norm": 10.0 / (epoch + 1), "level": 0 if critical else 1,
            "codec": "topk:keep=0.1" if critical else "topk:keep=0.001",
            "reason": "norm fell 60 % since epoch 0, threshold 50 %" if critical else "norm unchanged since epoch 0, threshold 50 %",
            "payload_bytes": 4000 if critical else 40} | changes


def epoch(number, layers=("conv.weight", "fc.weight"), critical=lambda epoch, layer: epoch < 2, **changes):
    record = {"epoch": number, "lr": 0.1 if number < 2 else 0.01, "global_batch": 64, "train_loss": 2.0 / (number + 1),
              "test_loss": 2.2 / (number + 1), "test_accuracy": 0.5 + 0.1 * number / (number + 1), "seconds": 1.5, "steps": 10,
              "dropped_steps": 0, "payload_bytes": 8000, "wire_bytes": 12000, "control_bytes": 10, "sent_bytes": 13000,
              "paper_floats": 2000, "entries": 100, "saturated": 0, "input_wait_seconds": 0.01, "hidden_share": 0.5,
              "step_split": {"compute_ms": 100.0, "encode_ms": 5.0, "wire_ms": 30.0, "decode_ms": 15.0, "busy_wire_ms": 60.0},
              "layers": [layer(name, number, critical(number, name)) for name in layers]}
    return {key: value for key, value in (record | changes).items() if value is not ...}


def write_run(folder, epochs, options=None, summary=True, tail=""):
    folder.mkdir(parents=True, exist_ok=True)
    config = {"version": "0", "torch": "0", "started": "2024-01-01T00:00:00Z", "machine": {"cpu": "a processor", "cores": 2},
              "workers": 2, "threads": 1, "options": {"model": "cnn", "data": "fashion-mnist", "seed": 1, "controller": "accordion"} | (options or {})}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "epochs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in epochs) + tail)
    if summary:
        (folder / "summary.json").write_text(json.dumps({"status": "finished", "epochs": len(epochs)}))
    return folder
