"""normlab.load: the same numbers as the program, for every scheme."""
import json

import pytest
import torch

import normlab
from normlab.vocabulary import PairVocabulary
from program_runs import run, run_json, train

SCHEMES = [row["name"] for row in run_json("schemes")]
NOT_IN_TRANSLATORS = {"ngpt", "angpt", "z-loss"}
ROPE = ["model.positions=rope", "model.activation=swiglu", "model.tied_head=false"]
# What no row of the catalogue has, but a configuration may.
OTHER_MODELS = {
    "grouped keys, half pairs": ["norm.scheme=rms", "model.n_heads=4", "model.n_kv_heads=2", "model.bias=true", *ROPE,
                                 "model.rope_pairing=half", "norm.qk_affine=own"],
    "learned p per head": ["norm.scheme=lp", "norm.learn_p=true", "norm.p_sharing=head", *ROPE],
    "p = inf after RoPE": ["norm.scheme=lp", "norm.p=inf", "norm.order=after_rope", *ROPE],
    "windows and a layer that sees all": ["norm.scheme=lp", "model.window=3", "model.global_every=2",
                                          "norm.row_scale=log(n)", *ROPE],
    "norms on both sides, two bases": ["norm.scheme=rms", "norm.sublayer=rms", "norm.placement=both",
                                       "norm.embedding=sqrt_d", "model.positions=rope", "model.activation=geglu",
                                       "model.window=3", "model.global_every=2", "model.rope_base_local=100",
                                       "model.rope_scaling=linear"],
    "scaled frequencies": ["norm.scheme=none", *ROPE, "model.rope_scaling=llama3", "model.rope_original_len=12",
                           "model.rope_base=100"],
    "p below 1": ["norm.scheme=lp", "norm.p=0.5", "model.positions=sinusoidal"],
    "fixed matched gain": ["norm.scheme=lp", "norm.gain_init=matched", "norm.learn_gain=false", "model.positions=sine"],
    "gain of the model": ["norm.scheme=qknorm", "norm.gain=model", "norm.gain_form=exp", "norm.placement=post"],
    "stored gain per channel": ["norm.scheme=qknorm", "norm.gain=channel", "norm.stored_scale=0.5", *ROPE],
    "lerp of one alpha": ["norm.scheme=ngpt", "norm.residual=lerp", "norm.alpha_sharing=layer"],
    "angpt without QK norm": ["norm.scheme=angpt", "norm.qk=none", "norm.gain=none", "norm.gain_on=queries",
                              "norm.logit_scale=1/sqrt(d_head)", "model.activation=gelu", "model.bias=true"],
    "bytes, relu, dropout": ["data.tokenizer=byte", "model.activation=relu", "model.dropout=0.1",
                             "model.mlp_dropout=0.1", "norm.scheme=ln-scaling"],
}


def loss_of(model, text):
    """Over the held-out fold in consecutive windows, as `normlab eval` takes it."""
    tokens = torch.tensor(model.tokenizer.encode(text.read_text()))
    folds, fold, length = model.config["data"]["folds"], model.config["data"]["fold"], model.seq_len
    part = tokens[len(tokens) * fold // folds : len(tokens) * (fold + 1) // folds]
    total, n = 0.0, len(part) - 1
    with torch.no_grad():
        for begin in range(0, n, length):
            end = min(begin + length, n)
            window = part[begin : end + 1].unsqueeze(0)
            total += model.loss(window[:, :-1], window[:, 1:]).item() * (end - begin)
    return total / n


def pair_loss(model, pairs):
    """Over the development text, in nats per subword."""
    vocabulary, total, words = model.vocabulary, 0.0, 0
    sides = [(pairs / f"dev.{language}").read_text().splitlines() for language in ("gl", "en")]
    place = {int(token): i for i, token in enumerate(model.outputs)}
    with torch.no_grad():
        for source, target in zip(*sides):
            source = torch.tensor([vocabulary.encode("source", source) + [PairVocabulary.end]])
            ids = vocabulary.encode("target", target)
            labels = [place.get(i, place[PairVocabulary.unknown]) for i in [*ids, PairVocabulary.end]]
            logits = model(source, torch.tensor([[PairVocabulary.begin, *ids]]))[0]
            total += torch.nn.functional.cross_entropy(logits, torch.tensor(labels), reduction="sum").item()
            words += len(labels)
    return total / words, words


@pytest.mark.parametrize("scheme", SCHEMES)
def test_language_models_agree_with_eval(text, tmp_path, scheme):
    folder = train(text, tmp_path / "run", f"norm.scheme={scheme}")
    model, expected = normlab.load(folder), run_json("eval", folder)
    assert abs(loss_of(model, text) - expected["loss"]) < 1e-5
    greedy = run_json("generate", folder, "--prompt", "The ", "--tokens", 30, "--temperature", 0)["text"]
    assert model.generate("The ", tokens=30, temperature=0) == greedy


@pytest.mark.parametrize("settings", OTHER_MODELS.values(), ids=OTHER_MODELS.keys())
def test_other_models_agree_with_eval(text, tmp_path, settings):
    folder = train(text, tmp_path / "run", *settings)
    assert abs(loss_of(normlab.load(folder), text) - run_json("eval", folder)["loss"]) < 1e-5


@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name not in NOT_IN_TRANSLATORS])
def test_translators_agree_with_eval(pairs, tmp_path, scheme):
    folder = train(pairs, tmp_path / "run", f"norm.scheme={scheme}")
    model, expected = normlab.load(folder), run_json("eval", folder)
    loss, words = pair_loss(model, pairs)
    assert words == expected["tokens"] and abs(loss - expected["loss"]) < 1e-5


def test_translations_are_those_of_the_program(pairs, tmp_path):
    folder = train(pairs, tmp_path / "run", "norm.scheme=qknorm", "norm.embedding=fixnorm", "model.positions=rope",
                   "train.max_steps=80", "train.eval_every=80")
    lines = (pairs / "dev.gl").read_text()
    expected = run("translate", "--run", folder, "--beam", 1, "--threads", 1, input=lines).stdout.splitlines()
    assert normlab.load(folder).translate(lines.splitlines()) == expected
    assert len({len(line) for line in expected}) > 3  # sentences of several lengths, or little was compared


def test_batches_of_unequal_lengths_are_padded(pairs, tmp_path):
    model = normlab.load(train(pairs, tmp_path / "run", "norm.scheme=ssmax"))
    short, long = torch.tensor([[5, 6, 2]]), torch.tensor([[7, 5, 6, 8, 2]])
    target = torch.tensor([[1, 5, 6]])
    both = model(torch.cat((torch.nn.functional.pad(short, (0, 2)), long)), target.repeat(2, 1))
    torch.testing.assert_close(both, torch.cat((model(short, target), model(long, target))))


def test_samples_are_those_of_the_program(text, tmp_path):
    folder = train(text, tmp_path / "run", "norm.scheme=qknorm")
    options = ["--tokens", 60, "--temperature", 0.7, "--top-k", 20, "--top-p", 0.9, "--seed", 3]
    expected = run_json("generate", folder, "--prompt", "The ", *options)["text"]
    assert normlab.load(folder).generate("The ", 60, temperature=0.7, top_k=20, top_p=0.9, seed=3) == expected


def test_a_model_can_be_trained_on(text, tmp_path):
    model = normlab.load(train(text, tmp_path / "run", "norm.scheme=ngpt")).train()
    tokens = torch.tensor(model.tokenizer.encode(text.read_text())[:17]).unsqueeze(0)
    model.loss(tokens[:, :-1], tokens[:, 1:]).backward()
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert without == []


def test_folders_that_are_no_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a run; expected a folder of `normlab train`"):
        normlab.load(tmp_path)
    (tmp_path / "config.toml").write_text("[model]\n")
    with pytest.raises(FileNotFoundError, match="without a checkpoint yet"):
        normlab.load(tmp_path)


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.toml"])
def test_a_flipped_bit_is_refused(copied_run, file):
    damaged = copied_run / "checkpoints" / "latest" / file
    content = bytearray(damaged.read_bytes())
    content[-3] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(ValueError, match=f"is damaged: {file} has changed"):
        normlab.load(copied_run / "checkpoints" / "latest")


@pytest.mark.parametrize("file, content", [("model.safetensors", b"\0" * 7), ("tokenizer.json", b"{"),
                                           ("config.toml", b"[model"), ("config.toml", b"[model]\n")])
def test_files_that_are_no_checkpoint(copied_run, file, content):
    checkpoint = copied_run / "checkpoints" / "latest"
    (checkpoint / "SHA256SUMS").unlink()
    (checkpoint / file).write_bytes(content)
    with pytest.raises(ValueError, match="damaged|cannot be read as a checkpoint"):
        normlab.load(checkpoint)


def test_text_outside_the_vocabulary(lm_run):
    model = normlab.load(lm_run)
    with pytest.raises(ValueError, match="'ß' is not one of the"):
        model.generate("ß")
    with pytest.raises(ValueError, match="expected at most model.seq_len = 16"):
        model(torch.zeros(1, 17, dtype=torch.long))
    assert json.loads((lm_run / "checkpoints" / "latest" / "tokenizer.json").read_text())["kind"] == "char"
