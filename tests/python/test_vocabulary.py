"""Subwords of a pair, compared with `normlab bpe`."""
import pytest

from normlab.vocabulary import PairVocabulary, Tokenizer
from program_runs import run

THRESHOLD = 12


@pytest.fixture
def vocabulary(text, tmp_path):
    """Codes of a text, and the subwords that are frequent in it: others are split again."""
    run("bpe", "learn", "--input", text, "--codes", tmp_path / "codes", "--operations", 60, "--write-vocabulary",
        tmp_path / "counts")
    codes = (tmp_path / "codes").read_text().splitlines()[1:]
    counts = [line.split(" ") for line in (tmp_path / "counts").read_text().splitlines()]
    subwords = [word for word, count in counts if int(count) >= THRESHOLD]
    ids = list(range(PairVocabulary.first_subword, PairVocabulary.first_subword + len(subwords)))
    assert len(subwords) < len(counts)
    return PairVocabulary({"kind": "bpe pair", "codes": codes, "subwords": subwords, "source": ids, "target": ids[::2]})


def test_segmentation_is_that_of_the_program(vocabulary, tmp_path):
    lines = ["the king spoke", "King spoke. kings  spoken landing", "h", "  his silences, theland !", "naïve 你好", ""]
    (tmp_path / "lines").write_text("\n".join(lines))
    files = ["--codes", tmp_path / "codes", "--vocabulary", tmp_path / "counts", "--input", tmp_path / "lines"]
    unfiltered, expected = (run("bpe", "apply", *files, "--threshold", threshold).stdout.splitlines()
                            for threshold in (1, THRESHOLD))
    assert expected != unfiltered  # the filter splits something
    for line, parts in zip(lines, expected):
        known = {word: i + PairVocabulary.first_subword for i, word in enumerate(vocabulary.subwords)}
        assert vocabulary.encode("source", line) == [known.get(part, PairVocabulary.unknown) for part in parts.split()]


def test_decoding_joins_subwords(vocabulary):
    ids = vocabulary.encode("source", "the king spoke")
    assert vocabulary.decode([PairVocabulary.begin, *ids, PairVocabulary.end]) == "the king spoke"
    assert vocabulary.decode([PairVocabulary.unknown]) == "<unk>"


def test_outputs_are_those_of_the_target(vocabulary):
    assert vocabulary.outputs()[:2] == [PairVocabulary.end, PairVocabulary.unknown]
    assert vocabulary.outputs()[2:] == sorted(vocabulary.of_side["target"])


def test_bytes():
    tokenizer = Tokenizer({"kind": "byte"})
    assert tokenizer.vocab_size == 256 and tokenizer.encode("é") == [0xC3, 0xA9]
    assert tokenizer.decode([0xC3, 0xA9, 0xC3]) == "é\ufffd"


@pytest.mark.parametrize("kind", [Tokenizer, PairVocabulary])
def test_other_kinds_are_refused(kind):
    with pytest.raises(ValueError, match="unknown kind; got 'words', expected"):
        kind({"kind": "words"})
