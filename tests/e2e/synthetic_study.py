"""Study folders made of invented results, in the layout that `normlab compare` leaves."""
import json
import math
import random

import numpy
from safetensors.numpy import save_file

MODEL = {"norm.scheme": "lp", "model.n_layers": 6, "model.n_heads": 6, "model.d_model": 96, "model.seq_len": 64,
         "train.batch_size": 12}


def toml(settings):
    """Settings by dotted key, as TOML."""
    sections = {}
    for key, value in settings.items():
        section, name = key.split(".", 1)
        sections.setdefault(section, []).append(f"{name} = {json.dumps(value)}")
    return "\n".join(f"[{section}]\n" + "\n".join(lines) + "\n" for section, lines in sections.items())


def final_loss(p, matched):
    """A shallow valley: p = 1 is worst, p = 3 best, and the matched control is flat."""
    return 1.62 + (0.003 if matched else 0.055) * math.exp(-1.1 * (p - 1)) + 0.002 * (p - 3) ** 2


class SyntheticStudy:
    """Variants are the product of the lists among the axes, the last one changing fastest."""

    def __init__(self, folder, axes=None, folds=10, steps=2000, every=50, study=None, seed=1):
        self.folder, self.folds, self.steps, self.every = folder, folds, steps, every
        self.axes = axes or {"norm.p": [1, 1.5, 2, 2.5, 3, 3.5, 4]}
        self.settings = {**MODEL, "train.max_steps": steps, "train.eval_every": every}
        self.draw = random.Random(seed)
        self.fold_effect = [self.draw.gauss(0, 0.03) for _ in range(folds)]
        folder.mkdir(parents=True)
        lists = {**self.settings, **self.axes, "data.folds": 10, "data.fold": list(range(folds))}
        (folder / "study.toml").write_text(
            'normlab = "0.1.0"\n' + toml({**lists, "study.baseline": "p = 2", **(study or {})}))
        for variant in self.variants():
            for fold in range(folds):
                self.write_trial(variant, fold)

    def variants(self):
        combinations = [{}]
        for key, values in self.axes.items():
            combinations = [{**each, key: value} for each in combinations for value in values]
        return combinations

    @staticmethod
    def label(variant):
        return ", ".join(f"{key.split('.')[1]} = {value}" for key, value in variant.items())

    def trial_folder(self, variant, fold):
        plain = "".join(c if c.isalnum() or c in ".,=+-_" else "_" for c in self.label(variant).replace(" ", ""))
        return self.folder / "trials" / plain.rstrip("_") / f"fold{fold:02}-seed1337"

    def curve(self, variant, fold):
        p = float(variant.get("norm.p", 2))
        matched = variant.get("norm.gain_init") == "matched"
        end = final_loss(p, matched) + self.fold_effect[fold] + self.draw.gauss(0, 0.004)
        scale = 190 + (0 if matched else 45 * max(0, 2 - p))
        for step in range(0, self.steps + 1, self.every):
            yield step, end + (4.17 - end) * math.exp(-((step / scale) ** 0.62)) + self.draw.gauss(0, 0.002)

    def write_trial(self, variant, fold, status="finished", last=None):
        folder = self.trial_folder(variant, fold)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {**self.settings, **variant, "data.folds": 10, "data.fold": fold, "train.seed": 1337,
                    "train.threads": 1}
        (folder / "config.toml").write_text(toml(settings))
        machine = {"host": "node", "system": "Linux 6.1 x86_64", "cpu": "Example CPU", "cores": 2,
                   "memory_bytes": 16_000_000_000}
        (folder / "manifest.json").write_text(json.dumps({"sessions": [
            {"started": "2026-01-31T10:00:00Z", "version": "0.1.0", "command": ["normlab"], "machine": machine,
             "kernels": "AVX2", "threads": 1}]}))
        p = float(variant.get("norm.p", 2))
        speed = (0.0105 + 0.0002 * abs(p - 2)) * (1 + abs(self.draw.gauss(0, 0.03)))
        rows = []
        for step, loss in self.curve(variant, fold):
            if last is not None and step > last:
                break
            rows.append({"step": step, "val_loss": loss, "train_seconds": 1.1 * speed * step,
                         "train_cpu_seconds": speed * step})
        if status == "diverged":
            rows.append({"step": rows[-1]["step"] + 1, "loss": "nan", "grad_norm": "nan", "diverged": True})
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        if status in ("finished", "diverged", "crashed"):
            record = {"outcome": status, "step": rows[-1]["step"], "parameters": 700_000,
                      "train_seconds": 1.1 * speed * rows[-1]["step"], "train_cpu_seconds": speed * rows[-1]["step"],
                      "data_sha256": "0" * 64}
            if status != "finished":
                record["message"] = "the loss is not finite" if status == "diverged" else "it was <killed> & gone"
            (folder / "trial.json").write_text(json.dumps(record))
        if status == "finished":
            self.write_gains(folder, variant, p)

    def write_gains(self, folder, variant, p):
        start = 12 if variant.get("norm.gain_init") != "matched" else 12 * 40 ** (2 - p if p < 2 else 0) / p
        checkpoint = folder / "checkpoints" / f"step-{self.steps:06}"
        checkpoint.mkdir(parents=True, exist_ok=True)
        gains = {f"layers.{layer}.attn.qk_gain": numpy.array(
            [start * (1 + 0.12 * layer) * (1.3 - 0.1 * p) + self.draw.gauss(0, 0.3)], dtype=numpy.float32)
            for layer in range(6)}
        save_file(gains, checkpoint / "model.safetensors")
        (checkpoint / "state.json").write_text(json.dumps({"step": self.steps, "val_loss": 1.6}))
