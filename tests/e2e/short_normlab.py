#!/usr/bin/env python3
"""Stands for `normlab` in the sandbox of the documents' commands: the same command on a small model, few steps and the
sandbox's own text. Usage: short_normlab.py PROGRAM VERB ..."""
import os
import pathlib
import sys
import tomllib

SMALL = {"model.n_layers": 3, "model.n_heads": 4, "model.d_model": 16, "model.d_ff": 32, "model.seq_len": 16,
         "train.batch_size": 2, "train.max_steps": 4, "train.eval_every": 2, "train.eval_windows": 4,
         "train.seed": 1, "data.fold": 0, "optim.warmup_steps": 1, "optim.decay_steps": 4}
SMALL_LADDER = {"ladder.width_per_layer": 8, "ladder.head_width": 8, "ladder.evaluations": 2, "model.seq_len": 16,
                "train.eval_windows": 4, "train.batch_size": 2}
SMALL_RUNGS = {"ladder.depth": [1, 2, 3], "ladder.tokens": [400, 800, 1600], "ladder.tokens_per_param": [0.1, 0.2, 0.4]}
SMALL_TRANSLATOR = {"translation.encoder_layers": 1, "translation.bpe_operations": 30, "translation.batch_tokens": 200,
                    "model.seq_len": 64, "train.max_steps": 2, "train.eval_every": 2}


def recipe_keys(arguments):
    """Values by dotted key of the files that follow -c or --config."""
    keys = {}
    for option, value in zip(arguments, arguments[1:]):
        if option not in ("-c", "--config") or not value.endswith(".toml"):
            continue
        for section, content in tomllib.loads(pathlib.Path(value).read_text()).items():
            if isinstance(content, dict):
                keys.update({f"{section}.{key}": each for key, each in content.items()})
    return keys


def shortened(arguments):
    """What is appended. Lists stay as the recipe has them, since they make its variants, which its baseline names; only
    of learning rates three are enough."""
    verb, keys = arguments[0], recipe_keys(arguments)
    new_study = verb == "compare" and any(option in arguments for option in ("-c", "--config"))
    if "--resume" in arguments or not (verb == "train" or new_study):
        return []
    translator = bool(keys.get("translation.source"))
    small = dict(SMALL)
    if translator:
        small.update(SMALL_TRANSLATOR)
        del small["train.batch_size"]
        if keys.get("translation.dev", "dev"):
            del small["data.fold"]
    if keys.get("optim.schedule", "cosine") not in ("cosine", "linear"):
        del small["optim.decay_steps"]
    if any(key.startswith("ladder.") for key in keys):
        small = dict(SMALL_LADDER)
        for key, values in SMALL_RUNGS.items():
            if key in keys:
                small[key] = values if isinstance(keys[key], list) else values[0]
    if "--prepare" in arguments:  # runs nothing: a document may name any of its trials
        small = {key: value for key, value in small.items() if key not in ("data.fold", "train.seed")}
    settings = [f"{key}={value}".replace(" ", "") for key, value in small.items()
                if key in SMALL_RUNGS or key in ("data.fold", "train.seed") or not isinstance(keys.get(key), list)]
    if isinstance(keys.get("optim.lr"), list):
        settings.append(f"optim.lr={keys['optim.lr'][:3]}".replace(" ", ""))
    nice = ["--nice", "0"] if verb == "compare" else []
    data = [] if "--data" in arguments else ["--data", os.environ["SHORT_PAIRS" if translator else "SHORT_TEXT"]]
    return [*nice, *data, "--set", *settings]


def with_small_budget(arguments):
    """A study without a recipe: two schemes in half a minute."""
    if "--budget" not in arguments:
        return arguments
    at = arguments.index("--budget")
    schemes = [] if "--schemes" in arguments else ["--schemes", "none,rms"]
    return [*arguments[:at], "--budget", "30s", *schemes, *arguments[at + 2:]]


def main():
    program, *arguments = sys.argv[1:]
    arguments = with_small_budget(arguments)
    os.execv(program, [program, *arguments, *(shortened(arguments) if arguments else [])])


if __name__ == "__main__":
    main()
