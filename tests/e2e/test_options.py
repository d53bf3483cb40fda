"""Every configuration key changes what it claims to change; a key without a row in ROWS fails."""
import dataclasses
import json

import pytest
import tomllib
from conftest import metrics, run, train, weights
from test_translate import KEYS as TRANSLATION_KEYS

# On top of TINY: four steps, evaluated at the end only, at a rate that makes gains and p move losses beyond rounding.
SHORT = ["train.max_steps=4", "train.eval_every=0", "optim.warmup_steps=0", "optim.lr=0.05"]
LP = ["norm.scheme=lp"]
ROPE = [*LP, "model.positions=rope"]
RMS = ["norm.scheme=rms"]
NGPT, ANGPT = ["norm.scheme=ngpt"], ["norm.scheme=angpt"]
COSINE = ["norm.scheme=cosine"]
MUON = ["optim.optimizer=muon"]
OTHER_TEXT, OTHER_RUN, FEW_MERGES, MORE_MERGES = "<another text>", "<another run>", "<10 merges>", "<40 merges>"
JSONL = "<documents>"


@dataclasses.dataclass
class Row:
    value: object  # against the default, or against what `given` says
    changes: list  # observations that must differ
    keeps: list = dataclasses.field(default_factory=list)  # observations that must not
    given: list = dataclasses.field(default_factory=list)  # settings of both sides, without which the key does nothing


def model(value, *given):
    """Acts on the forward pass: the very first loss differs."""
    return Row(value, ["first loss"], given=[*given])


def learning(value, *given):
    """Acts on the update: the first loss is the same, later ones differ."""
    return Row(value, ["later losses"], ["first loss"], [*given])


def rate(value, *given):
    """Acts on the learning rate, and by it on the update."""
    return Row(value, ["rates", "later losses"], ["first loss"], [*given])


def watching(value, change, *given):
    """Acts on what is recorded and kept, not on what is computed."""
    return Row(value, [change], ["final weights"], [*given])


ROWS = {
    "norm.scheme": model("qknorm"),
    "norm.sublayer": model("rms"),
    "norm.placement": model("post"),
    "norm.sublayer_eps": model(0.1),
    "norm.sublayer_scale": model("1/sqrt(layer)"),
    "norm.embedding": model("fixnorm"),
    "norm.residual": model("lerp", *ANGPT),
    "norm.alpha_init": model(0.3, *ANGPT),
    "norm.alpha_sharing": Row("layer", ["parameters", "later losses"], ["first loss"], ANGPT),
    "norm.map_scale": Row("none", ["first loss", "parameters"], given=NGPT),
    "norm.qk": model("lp"),
    "norm.p": model(2, *LP),
    "norm.learn_p": Row("true", ["parameters", "later losses"], given=LP),
    "norm.p_sharing": Row("head", ["parameters", "later losses"], ["first loss"], [*LP, "norm.learn_p=true"]),
    "norm.qk_groups": model(2, *LP),
    "norm.scope": model("all_heads", *LP),
    "norm.order": model("after_rope", *ROPE),
    "norm.qk_eps": model(1, *LP),
    "norm.qk_affine": Row("own", ["parameters", "later losses"], ["first loss"], RMS),
    "norm.gain": Row("head", ["parameters", "later losses"], ["first loss"], LP),
    "norm.gain_init": model("sqrt(d_head)", *LP),
    "norm.learn_gain": Row("false", ["parameters", "later losses"], ["first loss"], LP),
    "norm.gain_on": model("both", *LP),
    "norm.gain_form": Row("exp", ["later losses"], given=LP),
    "norm.gain_max": model(5, *COSINE),
    "norm.logit_scale": model("1/sqrt(d_head)", *LP),
    "norm.row_scale": model("log(n)", *LP),
    "norm.soft_cap": model(1, *LP),
    "norm.output_scale": Row("s_z", ["parameters", "later losses"], ["first loss"]),
    "norm.output_soft_cap": model(0.5),
    "norm.z_loss": model(0.1),
    "norm.stored_scale": Row(0.1, ["later losses"], given=LP),
    "norm.constraint": learning("ball", *NGPT),
    "norm.constraint_axis": model("rows", *NGPT),
    "norm.qk_clip": learning(0.001),
    "norm.sigma_reparam": Row("true", ["parameters", "later losses"]),
    "model.n_layers": Row(3, ["first loss", "parameters"]),
    "model.n_heads": model(4, *LP),
    "model.n_kv_heads": Row(1, ["first loss", "parameters"]),
    "model.d_model": Row(32, ["first loss", "parameters"]),
    "model.d_head": Row(6, ["first loss", "parameters"]),
    "model.d_ff": Row(24, ["first loss", "parameters"]),
    "model.seq_len": Row(12, ["first loss", "tokens"]),
    "model.window": model(3, *LP),
    "model.global_every": model(2, *LP, "model.window=3"),
    "model.activation": model("relu"),
    "model.positions": Row("sinusoidal", ["first loss", "parameters"]),
    "model.rope_pairing": model("interleaved", *ROPE),
    "model.rope_base": model(100, *ROPE),
    "model.rope_base_local": model(100, *ROPE, "model.window=3"),
    "model.rope_scaling": model("linear", *ROPE),
    "model.rope_factor": model(2, *ROPE, "model.rope_scaling=linear"),
    "model.rope_original_len": model(4, *ROPE, "model.rope_scaling=llama3"),
    "model.bias": Row("true", ["parameters", "later losses"]),
    "model.tied_head": Row("false", ["first loss", "parameters"]),
    "model.dropout": model(0.5),
    "model.mlp_dropout": model(0.5),
    "model.init": model("gpt2"),
    "model.kernels": Row("composite", ["kernels", "final weights"]),
    # Memory alone changes, which is too small to see here; tests/train/checkpoint_activations_test.cpp.
    "model.checkpoint_activations": Row("true", [], ["later losses", "final weights"], ["model.dropout=0.2"]),
    "data.source": Row(OTHER_TEXT, ["first loss", "validation losses"]),
    "data.tokenizer": Row("byte", ["first loss", "parameters"]),
    "data.tokenizer_file": Row(MORE_MERGES, ["first loss", "parameters"],
                               given=["data.tokenizer=subword", f"data.tokenizer_file={FEW_MERGES}"]),
    "data.vocab_size": Row(300, ["parameters", "first loss"],
                           given=["data.tokenizer=subword", f"data.tokenizer_file={FEW_MERGES}"]),
    "data.field": Row("body", ["first loss", "validation losses"], given=[f"data.source={JSONL}"]),
    "data.separator": Row("the", ["first loss", "validation losses"], given=[f"data.source={JSONL}"]),
    "data.memory_mb": Row(0, [], ["first loss", "later losses", "validation losses", "final weights"]),
    "data.folds": Row(5, ["first loss", "validation losses"], given=["data.fold=2"]),
    "data.fold": Row(2, ["first loss", "validation losses"]),
    "optim.optimizer": learning("muon"),
    "optim.lr": rate(0.01),
    "optim.min_lr": rate(0.01),
    "optim.schedule": rate("linear"),
    "optim.warmup_steps": rate(2),
    "optim.decay_steps": rate(3),
    "optim.beta1": learning(0.5),
    "optim.beta2": learning(0.9),
    "optim.eps": learning(0.01),
    "optim.weight_decay": learning(1),
    "optim.clip": learning(0.01),
    "optim.gain_lr": learning(30, "norm.scheme=qknorm"),
    "optim.adamw_lr": learning(0.01, *MUON),
    "optim.momentum": learning(0.5, *MUON),
    "optim.muon_scale": learning("original", *MUON),
    "train.max_steps": Row(5, ["logged steps", "tokens"], given=["optim.decay_steps=9"]),
    "train.batch_size": Row(5, ["first loss", "tokens"]),
    "train.accumulate": Row(2, ["first loss", "tokens"]),
    "train.eval_every": watching(2, "evaluated steps"),
    "train.eval_windows": watching(3, "validation losses"),
    "train.log_every": watching(2, "logged steps"),
    "train.save_every": watching(2, "checkpoints", "train.keep_last=9"),
    "train.keep_last": watching(3, "checkpoints", "train.save_every=1"),
    "train.keep_best": watching(3, "checkpoints", "train.eval_every=1"),
    "train.early_stop": Row(1, ["outcome", "logged steps"], ["first loss"],
                            ["train.eval_every=1", "optim.lr=0", "optim.min_lr=0"]),
    "train.seed": model(7),
    "train.start": model(OTHER_RUN),
    "train.only": learning("embeddings"),
    "train.dtype": Row("bfloat16", ["dtype", "kernels", "first loss"]),
    "train.threads": Row(2, ["threads"]),
    "train.device": Row("cpu", [], ["device", "final weights"]),  # what `auto` is without a GPU
    "probe.every": watching(2, "probed names"),
    "probe.heads": watching("false", "probed names", "probe.every=2"),
}


def observe(folder, summary):
    rows = metrics(folder)
    trained, evaluated = [r for r in rows if "loss" in r], [r for r in rows if "val_loss" in r]
    tensors = weights(folder)
    session = json.loads((folder / "manifest.json").read_text())["sessions"][-1]
    return {
        "first loss": trained[0]["loss"],
        "later losses": [r["loss"] for r in trained[1:]],
        "rates": [r["lr"] for r in trained],
        "logged steps": [r["step"] for r in trained],
        "tokens": trained[-1]["tokens"],
        "evaluated steps": [r["step"] for r in evaluated],
        "validation losses": [r["val_loss"] for r in evaluated],
        "parameters": {name: tensor.shape for name, tensor in tensors.items()},
        "final weights": {name: tensor.tobytes() for name, tensor in tensors.items()},
        "checkpoints": sorted(p.name for p in (folder / "checkpoints").glob("step-*")),
        "probed names": sorted({(r["step"], key) for r in rows for key in r if "/" in key}),
        "threads": session["threads"],
        "device": session["device"],
        "kernels": session["kernels"],
        "dtype": session["dtype"],
        "outcome": summary["outcome"],
    }


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def observed(text, own_cache, tmp_path_factory):
    """Observations of a run with these settings; the same settings run once."""
    other = tmp_path_factory.mktemp("other") / "text.txt"
    other.write_text(text.read_text()[::-1])
    files = {OTHER_TEXT: other, OTHER_RUN: tmp_path_factory.mktemp("start") / "run"}
    files[JSONL] = other.with_name("documents.jsonl")
    files[JSONL].write_text("".join(json.dumps({"text": line, "body": line[::-1]}) + "\n"
                                    for line in text.read_text().splitlines()))
    train(text, files[OTHER_RUN], *SHORT)
    for name, merges in ((FEW_MERGES, 10), (MORE_MERGES, 40)):
        files[name] = other.with_name(f"{merges}.json")
        run("bpe", "learn", "--bytes", "--input", text, "--operations", merges, "--codes", files[name], check=0)
    known = {}

    def filled(setting):
        for name, path in files.items():
            setting = setting.replace(name, str(path))
        return setting

    def get(settings):
        settings = tuple(map(filled, settings))
        if settings not in known:
            folder = tmp_path_factory.mktemp("run") / "run"
            known[settings] = observe(folder, train(text, folder, *SHORT, *settings))
        return known[settings]
    return get


def test_every_key_has_a_row():
    config = tomllib.loads(run("config", "print", check=0).stdout)
    assert {f"{section}.{key}" for section, keys in config.items() for key in keys} == set(ROWS) | TRANSLATION_KEYS


@pytest.mark.parametrize("key", ROWS)
def test_key(observed, key):
    row = ROWS[key]
    before, after = observed(row.given), observed([*row.given, f"{key}={row.value}"])
    assert {name for name in row.changes if before[name] == after[name]} == set(), "did not change"
    assert {name for name in row.keeps if before[name] != after[name]} == set(), "changed"


# On top of LP unless `GIVEN` says otherwise.
GIVEN = {"norm.residual": [*ANGPT, "optim.lr=0.01", "optim.min_lr=0"], "norm.qk": RMS + ["norm.qk_affine=none"],
         "norm.map_scale": NGPT, "norm.constraint": [*NGPT]}
CHOICES = {
    "norm.residual": ["lerp_unit", "lerp_nu", "lerp"],
    "norm.qk": ["none", "lp", "rms", "layer"],
    "norm.map_scale": ["none", "s_uv", "nu"],
    "norm.constraint": ["none", "unit", "ball"],
    "norm.sublayer": ["layer", "rms", "scale", "dyt", "none"],
    "norm.placement": ["pre", "post", "branch", "both"],
    "norm.embedding": ["none", "fixnorm", "scaled", "sqrt_d"],
    "norm.gain_init": ["log2(L^2-L)", "sqrt(d_head)", "matched", "1.5"],
    "norm.gain": ["none", "model", "layer", "head", "channel"],
    "norm.p": ["0.5", "1", "2", "3", "inf"],
    "model.activation": ["gelu", "gelu_tanh", "relu", "swiglu", "geglu"],
    "model.positions": ["learned", "sinusoidal", "rope", "sine"],
    "optim.schedule": ["cosine", "linear", "constant", "inverse_sqrt"],
}


@pytest.mark.parametrize("key", CHOICES)
def test_no_two_values_do_the_same(observed, key):
    curves = {}
    for value in CHOICES[key]:
        found = observed([*GIVEN.get(key, LP), f"{key}={value}"])
        assert curves.setdefault(str(found["later losses"]), value) == value
