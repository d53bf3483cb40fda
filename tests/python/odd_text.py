"""Lines of text that tokenisers are known to disagree about."""
import random

WORDS = [
    "the", "The", "king's", "don't", "DON'T", "I'LL", "you\u2019re", "na\u00efve", "Stra\u00dfe", "日本語", "中文字符", "한국어",
    "العربية", "עברית", "ไทย", "हिन्दी", "русский", "ελληνικά", "👩‍👩‍👧‍👦", "🏳️‍🌈", "e\u0301", "a\u0323\u0302", "\ufb01ne", "\u212b",
    "𝔘𝔫𝔦", "١٢٣", "Ⅻ", "½", "1234567", "3.14159", "x²", "\t", "\u00a0", "\u3000", "\u2028", "\u200b", "\u180e", "\u0085",
    "\x1c", "\r", "\x00", "\ufeff", "\U0001e900", "\U00031350", "\U00010d50", "\U00010784", "<s>", "</s>", "<|endoftext|>",
    "<0x0A>", "▁", "▁the", "Ġthe", "'\u017f", "...", "!?!", "-->", "  ", "   ", "\x7f", "\ue000", "\U0010ffff", "word" * 40,
]


def odd_lines(count, seed=1):
    """Without line feeds, some of them empty."""
    draw = random.Random(seed)

    def part():
        kind = draw.random()
        if kind < 0.6:
            return draw.choice(WORDS)
        if kind < 0.8:
            ranges = [(0x20, 0x3000), (0x3000, 0xD800), (0xE000, 0x110000)]
            return chr(draw.randrange(*draw.choice(ranges)))
        return "".join(draw.choices("abcdefghij ABC 0123456789 .,;'\"", k=draw.randint(1, 12)))

    def line():
        return "".join(part() + draw.choice(["", "", " ", " ", " ", "  ", "\t"]) for _ in range(draw.randint(0, 14)))

    return [line().replace("\n", " ") for _ in range(count)]
