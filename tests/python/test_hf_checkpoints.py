"""Checkpoints to and from transformers: logits, greedy text, tokenizers, fine-tuning, and files that are refused."""
import json
import shutil

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="compares with transformers")
tokenizers = pytest.importorskip("tokenizers", reason="compares with the tokenizers package")

import normlab  # noqa: E402
from odd_text import odd_lines  # noqa: E402
from program_runs import run, run_json, train  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from test_tokenizer_json import check  # noqa: E402

ROPE = ["norm.sublayer=rms", "model.positions=rope", "model.activation=swiglu"]
EXPORTS = {
    "qwen3": ["norm.scheme=qknorm", *ROPE],
    "llama": ["norm.scheme=none", *ROPE, "model.rope_pairing=interleaved", "model.n_kv_heads=1"],
    "olmo2": ["norm.scheme=olmo2", *ROPE],
    "gpt2": ["norm.scheme=none"],
    "normlab": ["norm.scheme=lp", "norm.p=3"],
}
LONG = ["model.seq_len=256", "data.folds=4", "data.fold=3", "train.batch_size=2", "train.max_steps=8", "train.eval_windows=2"]


def load_hf(folder, dtype=torch.float32):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True, dtype=dtype).eval()
    if model.config.model_type.startswith("gemma"):
        model.set_attn_implementation("eager")  # the others leave the caps out
    return model


@pytest.mark.parametrize("form", EXPORTS)
def test_an_exported_model_is_the_same_in_transformers(form, text, tmp_path):
    trained = train(text, tmp_path / "run", *LONG, *EXPORTS[form])
    made = run_json("export", trained, "--to", "hf", "--out", tmp_path / "hf")
    assert made["form"] == form and made["largest_difference"] <= 1e-4 * max(1.0, made["largest_logit"])
    theirs, ours = load_hf(tmp_path / "hf"), normlab.load(trained)
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    tokens = torch.tensor([ours.tokenizer.encode(text.read_text()[:200])])
    assert words(text.read_text()[:200], add_special_tokens=False)["input_ids"] == tokens[0].tolist()
    with torch.no_grad():
        torch.testing.assert_close(theirs(tokens).logits, ours(tokens), rtol=0, atol=1e-4)
        prompt = tokens[:, :8]
        greedy = theirs.generate(prompt, max_new_tokens=200, do_sample=False, attention_mask=torch.ones_like(prompt))
    said = run_json("generate", trained, "--prompt", text.read_text()[:8], "--tokens", 200, "--temperature", 0)["text"]
    assert words.decode(greedy[0], clean_up_tokenization_spaces=False) == said


SIZES = dict(vocab_size=420, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
WIDE = dict(intermediate_size=48, num_key_value_heads=2, head_dim=8, tie_word_embeddings=False)
GEMMA = dict(intermediate_size=48, num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=12, sliding_window=5)
TOKENS = dict(bos_token_id=None, eos_token_id=None, pad_token_id=None)
IMPORTS = {
    "qwen3": lambda: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**SIZES, **WIDE, **TOKENS)),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, **WIDE, **TOKENS)),
    "olmo2": lambda: transformers.Olmo2ForCausalLM(transformers.Olmo2Config(**SIZES, **WIDE, **TOKENS)),
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**SIZES, **TOKENS)),
    "gemma2": lambda: transformers.Gemma2ForCausalLM(transformers.Gemma2Config(
        **SIZES, **GEMMA, **TOKENS, attn_logit_softcapping=4.0, final_logit_softcapping=6.0)),
    "gemma3_text": lambda: transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
        **SIZES, **GEMMA, **TOKENS, layer_types=["sliding_attention", "full_attention"])),
}


def write_checkpoint(kind, folder, dtype=torch.float32, **options):
    torch.manual_seed(3)
    model = IMPORTS[kind]().eval()
    with torch.no_grad():  # the initial weights are so small that attention would be almost uniform
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.to(dtype).save_pretrained(folder, **options)
    words = tokenizers.Tokenizer(tokenizers.models.BPE())
    words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = tokenizers.decoders.ByteLevel()
    words.train_from_iterator(odd_lines(200), tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    words.save(str(folder / "tokenizer.json"))
    return load_hf(folder), words  # loaded anew: rotary frequencies were rounded to the type, too


@pytest.mark.parametrize("kind", IMPORTS)
def test_an_imported_model_is_fine_tuned_and_exported(kind, text, tmp_path):
    """Sharded, in bfloat16 but for one; all parameters but gains frozen."""
    sharded = {} if kind == "gpt2" else dict(dtype=torch.bfloat16, max_shard_size="20KB")
    model, words = write_checkpoint(kind, tmp_path / "hf", **sharded)
    assert (tmp_path / "hf/model.safetensors.index.json").exists() == bool(sharded)
    imported = tmp_path / "imported"
    run("import", "--from", "hf", tmp_path / "hf", "--out", imported)
    ours = normlab.load(imported)
    sentence = text.read_text()[:120]
    tokens = torch.tensor([words.encode(sentence).ids])[:, :60]
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens), model(tokens).logits, rtol=0, atol=1e-4)
        greedy = model.generate(tokens[:, :8], max_new_tokens=40, do_sample=False,
                                attention_mask=torch.ones_like(tokens[:, :8]))
    check(words, tmp_path / "hf/tokenizer.json", odd_lines(1000, seed=7))
    prompt = words.decode(tokens[0, :8].tolist())
    said = run_json("generate", imported, "--prompt", prompt, "--tokens", 40, "--temperature", 0)["text"]
    assert words.decode(greedy[0].tolist(), skip_special_tokens=False) == said
    assert run_json("eval", imported, "--data", text)["loss"] > 0
    run("train", "-c", imported / "config.toml", "--data", text, "--out", tmp_path / "tuned", "--threads", 1, "--set",
        f"train.start={imported}", "train.only=gains", "train.max_steps=20", "train.batch_size=2", "optim.lr=0.01",
        "train.eval_windows=2", "data.folds=4", "data.fold=3", "model.seq_len=64")
    assert run_json("export", tmp_path / "tuned", "--to", "hf", "--out", tmp_path / "again")["form"] == kind
    assert (tmp_path / "again/tokenizer.json").read_bytes() == (tmp_path / "hf/tokenizer.json").read_bytes()
    before, after = model.state_dict(), load_hf(tmp_path / "again").state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if "norm" in name or ".ln_" in name}


def test_a_checkpoint_that_cannot_be_imported_is_refused_by_name(tmp_path):
    write_checkpoint("qwen3", tmp_path / "whole", max_shard_size="20KB")
    write_checkpoint("gemma3_text", tmp_path / "gemma")
    shard = next(p.name for p in sorted((tmp_path / "whole").glob("model-00002-*.safetensors")))
    tensor = next(iter(load_file(tmp_path / "whole" / shard)))

    def refused(words, change, source="whole"):
        folder = tmp_path / "changed"
        shutil.copytree(tmp_path / source, folder)
        change(folder)
        done = run("import", "--from", "hf", folder, "--out", tmp_path / "out", check=False)
        shutil.rmtree(folder)
        assert done.returncode == 3 and words in done.stderr and done.stderr.count("\n") <= 4, done.stderr
        assert not (tmp_path / "out").exists()

    def config(**changes):
        def change(folder):
            file = folder / "config.json"
            file.write_text(json.dumps(json.loads(file.read_text()) | changes))
        return change

    def tensors(edit):
        def change(folder):
            content = load_file(folder / shard)
            edit(content)
            save_file(content, folder / shard)
        return change

    refused("mixtral", config(model_type="mixtral"))
    refused("yarn", config(rope_parameters={"rope_type": "yarn", "rope_theta": 1e4}))
    refused("use_sliding_window", config(use_sliding_window=True))
    refused(shard, lambda folder: (folder / shard).unlink())
    refused(shard, lambda folder: (folder / shard).write_bytes((folder / shard).read_bytes()[:-8]))
    refused(tensor, tensors(lambda content: content.pop(tensor)))
    refused(tensor, tensors(lambda content: content.update({tensor: torch.zeros(3, 5)})))
    refused("tokenizer.json", lambda folder: (folder / "tokenizer.json").unlink())
    refused("layer_types", config(layer_types=["full_attention", "sliding_attention"]), "gemma")
    refused("hidden_activation", config(hidden_activation="silu"), "gemma")
    refused("use_bidirectional_attention", config(use_bidirectional_attention=True), "gemma")
    refused("query_pre_attn_scalar", config(query_pre_attn_scalar=0), "gemma")
    refused("gemma3;", config(model_type="gemma3"), "gemma")
