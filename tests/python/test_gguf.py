"""GGUF files: every tensor, read by llama.cpp's own reader, and the text that llama.cpp generates from them."""
import numpy as np
import pytest

gguf = pytest.importorskip("gguf", reason="reads files with llama.cpp's own package")

from odd_text import odd_lines  # noqa: E402
from program_runs import run, run_json, train  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

ROPE = ["norm.sublayer=rms", "model.positions=rope", "model.activation=swiglu"]
FORMS = {
    "qwen3": ["norm.scheme=qknorm", *ROPE],
    "llama": ["norm.scheme=none", *ROPE, "model.n_kv_heads=1", "model.bias=true"],
    "olmo2": ["norm.scheme=olmo2", *ROPE],
    "gpt2": ["norm.scheme=none", "model.activation=gelu_tanh"],
}
BYTES = ["data.tokenizer=byte", "model.seq_len=64", "train.batch_size=4", "train.max_steps=60", "train.eval_windows=2",
         "data.folds=4", "data.fold=3"]


@pytest.fixture(scope="module", params=FORMS)
def exported(request, text, tmp_path_factory):
    """The form, the run, and the file that was written of it."""
    folder = tmp_path_factory.mktemp(request.param)
    trained = train(text, folder / "run", *BYTES, *FORMS[request.param])
    made = run_json("export", trained, "--to", "gguf", "--out", folder / "model.gguf")
    assert made["form"] == request.param and made["largest_difference"] <= 1e-4 * max(1.0, made["largest_logit"])
    return request.param, trained, folder / "model.gguf"


def as_in_gguf(name, tensor, kind, heads):
    """A tensor of transformers as llama.cpp's converter writes it."""
    if kind == "gpt2" and ".c_" in name and tensor.ndim == 2:
        return tensor.T
    if kind == "llama" and (".q_proj." in name or ".k_proj." in name):
        n = heads if ".q_proj." in name else 1
        return tensor.reshape(n, 2, -1, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)
    return tensor


def test_every_tensor_is_that_of_the_hugging_face_checkpoint(exported, tmp_path):
    kind, trained, file = exported
    run("export", trained, "--to", "hf", "--out", tmp_path / "hf")
    arch = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == kind)
    names = gguf.get_tensor_name_map(arch, 2)
    expected = {names.get_name(name, try_suffixes=(".weight", ".bias")): as_in_gguf(name, tensor, kind, 2)
                for name, tensor in load_file(tmp_path / "hf/model.safetensors").items()}
    if kind in ("gpt2", "olmo2"):
        expected.setdefault("output.weight", expected["token_embd.weight"])
    reader = gguf.GGUFReader(file)
    written = {tensor.name: np.asarray(tensor.data) for tensor in reader.tensors}
    assert written.keys() == expected.keys()
    for name, tensor in expected.items():
        assert np.array_equal(written[name], tensor), name
    value = {key: field.contents() for key, field in reader.fields.items()}
    assert value["general.architecture"] == kind
    assert (value[f"{kind}.block_count"], value[f"{kind}.attention.head_count"]) == (2, 2)
    assert len(value["tokenizer.ggml.tokens"]) == 256 and value["tokenizer.ggml.model"] == "gpt2"


def llama_cpp(file, context):
    xllamacpp = pytest.importorskip("xllamacpp", reason="runs the file in llama.cpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = context
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.warmup = False
    return xllamacpp.Server(params)


def test_llama_cpp_generates_the_same_text(exported, text):
    _, trained, file = exported
    prompt = text.read_text()[:12]
    said = run_json("generate", trained, "--prompt", prompt, "--tokens", 40, "--temperature", 0)["text"]
    answer = llama_cpp(file, 64).handle_completions({"prompt": prompt, "max_tokens": 40, "temperature": 0})
    assert prompt + answer["choices"][0]["text"] == said


def test_llama_cpp_reads_a_learned_tokenizer(text, tmp_path):
    (tmp_path / "odd.txt").write_text(text.read_text() + "\n".join(odd_lines(100)))
    run("bpe", "learn", "--bytes", "--input", tmp_path / "odd.txt", "--operations", 200, "--codes",
        tmp_path / "tokenizer.json")
    trained = train(text, tmp_path / "run", *BYTES, *FORMS["qwen3"], "data.tokenizer=subword",
                    f"data.tokenizer_file={tmp_path / 'tokenizer.json'}", "train.max_steps=20")
    run("export", trained, "--to", "gguf", "--out", tmp_path / "model.gguf")
    prompt = "The king's 12 men, naïve 日本語\n went  home"
    said = run_json("generate", trained, "--prompt", prompt, "--tokens", 8, "--temperature", 0)["text"]
    answer = llama_cpp(tmp_path / "model.gguf", 64).handle_completions(
        {"prompt": prompt, "max_tokens": 8, "temperature": 0})
    count = run("bpe", "encode", "--tokenizer", tmp_path / "tokenizer.json", "--whole", input=prompt).stdout.split()
    assert answer["usage"]["prompt_tokens"] == len(count)
    assert prompt + answer["choices"][0]["text"] == said


@pytest.mark.parametrize("settings, words", [
    (["norm.scheme=lp", "norm.p=3", "data.tokenizer=byte"], "this one is none, because"),
    (["norm.scheme=none", "data.tokenizer=byte"], "gelu_tanh only"),
    (["norm.scheme=none", *ROPE], "its symbols are characters"),
])
def test_what_gguf_cannot_hold_is_refused(settings, words, text, tmp_path):
    trained = train(text, tmp_path / "run", "train.max_steps=1", *settings)
    done = run("export", trained, "--to", "gguf", "--out", tmp_path / "model.gguf", check=False)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") <= 4, done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"]


def test_a_file_that_is_there_stays(exported):
    _, trained, file = exported
    before = file.read_bytes()
    done = run("export", trained, "--to", "gguf", "--out", file, check=False)
    assert done.returncode == 2 and "exists already" in done.stderr and file.read_bytes() == before
