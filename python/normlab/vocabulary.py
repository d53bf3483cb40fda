"""Text to token ids and back, as tokenizer.json of a checkpoint says: characters, bytes, or subwords of a pair."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any, Literal

WORD_END, JOINER = "</w>", "@@"  # ends the last symbol of a word in the codes; follows every part but the last


class Tokenizer:
    """Characters, bytes or subwords of a language model; those of a tokenizer.json need the package tokenizers.

    Of a model that was trained on token files without their tokenizer, a text is the numbers of its tokens.

    >>> tokenizer = Tokenizer({"kind": "char", "symbols": "abc"})
    >>> tokenizer.encode("cab"), tokenizer.decode([1, 0])
    ([2, 0, 1], 'ba')
    """

    def __init__(self, content: dict[str, Any]):
        self.kind = content.get("kind")
        if self.kind not in ("char", "byte", "subword", "ids"):
            raise ValueError(
                f"[tokenizer.json] unknown kind; got {self.kind!r}, expected 'char', 'byte', 'subword' or 'ids'."
            )
        self.symbols: str = content["symbols"] if self.kind == "char" else ""
        self._subwords = subwords_of(content["tokenizer"]) if self.kind == "subword" else None
        self._size: int = content.get("vocab_size", 256)
        self._id_of = {symbol: i for i, symbol in enumerate(self.symbols)}

    @property
    def vocab_size(self) -> int:
        return len(self.symbols) if self.kind == "char" else self._size

    def encode(self, text: str) -> list[int]:
        if self._subwords is not None:
            return self._subwords.encode(text, add_special_tokens=False).ids
        if self.kind == "byte":
            return list(text.encode())
        if self.kind == "ids":
            return [int(word) for word in text.split()]
        try:
            return [self._id_of[character] for character in text]
        except KeyError as missing:
            raise ValueError(
                f"[text] the character {missing.args[0]!r} is not one of the {self.vocab_size} of the vocabulary, "
                "which is the training text's."
            ) from None

    def decode(self, tokens: list[int]) -> str:
        if self._subwords is not None:
            return self._subwords.decode(tokens, skip_special_tokens=False)
        if self.kind == "byte":
            return bytes(tokens).decode(errors="replace")
        if self.kind == "ids":
            return "".join(f" {token}" for token in tokens)
        return "".join(self.symbols[token] for token in tokens)


class PairVocabulary:
    """Subwords of a language pair: byte pair codes as subword-nmt applies them, or a SentencePiece model."""

    padding, begin, end, unknown, first_subword = range(5)

    def __init__(self, content: dict[str, Any]):
        if content.get("kind") != "bpe pair":
            raise ValueError(f"[tokenizer.json] unknown kind; got {content.get('kind')!r}, expected 'bpe pair'.")
        self.subwords: list[str] = content["subwords"]
        self.of_side = {side: frozenset(content[side]) for side in ("source", "target")}
        self._id_of = {subword: self.first_subword + i for i, subword in enumerate(self.subwords)}
        codes = [tuple(line.split(" ")) for line in content["codes"]]
        # Of equal merges, and of merges into the same symbol, the one that was learned first counts.
        self._rank = {pair: i for i, pair in reversed(list(enumerate(codes)))}
        self._parts = {"".join(pair): pair for pair in reversed(codes)}
        self._known = {
            side: frozenset(self.subwords[i - self.first_subword] for i in ids) for side, ids in self.of_side.items()
        }
        self._pieces = None
        if "sentencepiece" in content:
            self._pieces = sentencepiece_of(base64.b64decode(content["sentencepiece"]))
        self._segment = lru_cache(maxsize=None)(self._segment_word)

    @property
    def size(self) -> int:
        return self.first_subword + len(self.subwords)

    def outputs(self) -> list[int]:
        """The ids that the target language may output, ascending."""
        return sorted({self.end, self.unknown} | self.of_side["target"])

    def encode(self, side: Literal["source", "target"], line: str) -> list[int]:
        """Without marks of begin and end."""
        if self._pieces:
            parts = self._pieces.encode(line, out_type=str)
        else:
            words = [word for word in line.strip("\r\n ").split(" ") if word]
            parts = [part for word in words for part in (self._segment(side, word) if self._rank else (word,))]
        return [self._id_of.get(part, self.unknown) for part in parts]

    def decode(self, ids: list[int]) -> str:
        """Subwords joined to words; marks are left out."""
        words = ["<unk>" if i == self.unknown else self.subwords[i - self.first_subword] for i in ids if i > self.end]
        if self._pieces:
            return self._pieces.decode(words)
        return " ".join(words).replace(JOINER + " ", "").removesuffix(JOINER)

    def _segment_word(self, side: str, word: str) -> list[str]:
        if len(word) == 1:
            return [word]
        symbols = [*word[:-1], word[-1] + WORD_END]
        while len(symbols) > 1:
            best = min(zip(symbols, symbols[1:]), key=lambda pair: self._rank.get(pair, len(self._rank) + 1))
            if best not in self._rank:
                break
            symbols = merged(symbols, best)
        symbols[-1] = symbols[-1].removesuffix(WORD_END)
        parts = [part for i, s in enumerate(symbols) for part in self._split(side, s, i == len(symbols) - 1)]
        return [part + JOINER for part in parts[:-1]] + parts[-1:]

    def _split(self, side: str, part: str, last: bool) -> list[str]:
        """Takes merges back until every part is in the vocabulary of its side or a single character."""
        pair = self._parts.get(part + WORD_END if last else part)
        if (part if last else part + JOINER) in self._known[side] or pair is None:
            return [part]
        left, right = pair
        if last:
            if not right.endswith(WORD_END) or right == WORD_END:
                return [part]
            right = right.removesuffix(WORD_END)
        return self._split(side, left, False) + self._split(side, right, last)


def merged(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    """``symbols`` with every ``pair`` replaced by one symbol, from the left.

    >>> merged(["a", "b", "a", "b"], ("a", "b"))
    ['ab', 'ab']
    """
    out: list[str] = []
    i = 0
    while i < len(symbols):
        both = tuple(symbols[i : i + 2]) == pair
        out.append("".join(pair) if both else symbols[i])
        i += 2 if both else 1
    return out


def subwords_of(content: str) -> Any:
    try:
        from tokenizers import Tokenizer as HfTokenizer
    except ImportError:
        raise ImportError(
            "[normlab] this model reads the subwords of a tokenizer.json, which need a package: pip install tokenizers."
        ) from None
    return HfTokenizer.from_str(content)


def sentencepiece_of(model: bytes) -> Any:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise ImportError(
            "[normlab] this translator reads SentencePiece subwords, which need a package: pip install sentencepiece."
        ) from None
    return SentencePieceProcessor(model_proto=model)
