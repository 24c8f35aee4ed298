"""Seeded texts that tokenizers tend to disagree on: scripts, code, spaces, emoji, marks, bytes."""
import random

# A few common words of each script; random letters of its ranges are mixed in.
WORDS = {
    "latin": "the quick naïve café señor straße fjörður œuvre ångström dağ żółw don't I'll we've THEY'RE it's "
             "O'Neill rock'n'roll vis-à-vis Übergrößenträger",
    "cyrillic": "привет мир как дела хорошо русский язык Москва ёлка їжак білорусь съешь ещё этих мягких булок",
    "greek": "καλημέρα κόσμε ελληνικά γλώσσα άνθρωπος θάλασσα ΑΘΗΝΑ ὁδός ῥήτωρ",
    "arabic": "مرحبا بالعالم كيف حالك اللغة العربية كتاب مَدْرَسَةٌ ١٢٣ فارسی گپ",
    "hebrew": "שלום עולם מה שלומך ספר עברית יְרוּשָׁלַיִם",
    "devanagari": "नमस्ते दुनिया हिन्दी भाषा क्षत्रिय विद्यालय १२३ क़लम फ़ोन",
    "japanese": "東京 日本語 こんにちは ありがとう カタカナ プログラミング 吾輩は猫である が ガ ｶﾞ 々 ー",
    "chinese": "你好 世界 中文 计算机 科学 繁體字 龍 〇 一二三",
    "thai": "สวัสดี โลก ภาษาไทย กรุงเทพ น้ำ ๑๒๓",
    "hangul": "안녕하세요 세계 한국어 서울 감사합니다 각 ᄀᆞ",
    "other": "გამარჯობა բարեւ வணக்கம் నమస్కారం ನಮಸ್ಕಾರ হ্যালো ਸਤਿ ආයුබෝවන් ជំរាបសួរ မင်္ဂလာပါ ሰላም ᏣᎳᎩ བོད",
}
RANGES = {
    "latin": [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x1E00, 0x1EFF)],
    "cyrillic": [(0x400, 0x52F)],
    "greek": [(0x370, 0x3FF), (0x1F00, 0x1FFF)],
    "arabic": [(0x600, 0x6FF), (0x750, 0x77F), (0xFE70, 0xFEFC)],
    "hebrew": [(0x591, 0x5F4), (0xFB1D, 0xFB4F)],
    "devanagari": [(0x900, 0x97F)],
    "japanese": [(0x3041, 0x30FF), (0x4E00, 0x9FFF), (0xFF66, 0xFF9F)],
    "chinese": [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0x20000, 0x2A6DF), (0xF900, 0xFAD9)],
    "thai": [(0xE01, 0xE5B), (0xE81, 0xEDF)],
    "hangul": [(0xAC00, 0xD7A3), (0x1100, 0x11FF), (0x3131, 0x318E)],
    "other": [(0x980, 0xDFF), (0xF00, 0xFDA), (0x1000, 0x109F), (0x10A0, 0x10FF), (0x1200, 0x139F), (0x1780, 0x17FF)],
}
SPACES = [" ", " ", "  ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\x85", "\xa0", "\u1680", "\u180e", "\u2002",
          "\u2009", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff", "\x1c", "\x1f"]
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇯🇵", "🇩🇪🇫🇷", "❤️", "☺", "1️⃣", "🧑🏿‍🚀", "👨🏻‍❤️‍💋‍👨🏼", "🫠", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "‼️", "🀄"]
MARKS = [chr(c) for c in (0x300, 0x301, 0x308, 0x323, 0x327, 0x328, 0x302, 0x303, 0x345, 0x338, 0x591, 0x5B0, 0x64B,
                          0x651, 0x93C, 0x94D, 0x9BE, 0xE38, 0x3099, 0x309A, 0x1161, 0x11A8, 0x1DF6, 0x20D0, 0xFE0F)]
DIGITS = "0123456789٠١٢٣۴۵६७८๑๒๓០១༠᠑０１２²³¹¼½Ⅷⅻ①⑳㉑〇一𝟘𝟙𝟚𐒠𑁦"
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»“”‘’„…–—·•¡¿、。「」（）％©®™€£¥§°±×÷≤≠∞→∑√"
CODE = [
    "def f(x):\n    return x ** 2  # square\n\n\nclass A(object):\n\tpass\n",
    "#include <vector>\nint main() {\n  std::vector<int> v{1, 2, 3};\n  for (auto& x : v) x <<= 1;\r\n}\n",
    "SELECT a.id, COUNT(*) FROM t AS a WHERE a.name LIKE '%x_%' GROUP BY 1;",
    "const re = /^[\\w.+-]+@\\w+\\.\\w{2,}$/gi; let s = `${a}-${b?.c ?? 'd'}`;\n",
    "<div class=\"x\" id='y'>&nbsp;&amp;<br/></div>\n<!-- comment -->",
    "{\"key\": [1, 2.5e-10, null, true], \"n\\u00e9\": \"\\\\\"}",
    "for i in $(seq 1 100); do echo \"${i}%\" | sed 's/a/b/g' >> /tmp/out.txt; done",
    "fn main() -> Result<(), Box<dyn Error>> { let x: &'static str = r#\"raw\"#; Ok(()) }",
    "0xDEADBEEF 1_000_000 3.14159f -1e-9 0b1010 1234567890123456789",
    "https://example.com/a/b?c=d&e=%20f#g user@host:~/dir$ C:\\Windows\\System32",
    "\\begin{align} x &= \\frac{1}{2} \\\\ \\end{align} $$\\sum_{i=0}^{n} i^2$$",
    "        deeply indented\n            more\n\t\t\ttabs\n  \t mixed\n\n\n\nend",
]


class Samples:
    """Draws texts of all kinds from one seed. `tokens` are contents to embed, `lines` natural text."""

    def __init__(self, seed: int, tokens: list[str], lines: list[str]):
        self.random = random.Random(seed)
        self.tokens = tokens
        self.lines = lines
        self.kinds = [self.natural, self.script, self.script, self.mixed_scripts, self.code, self.spaces, self.emoji,
                      self.marks, self.digits, self.special, self.special, self.random_bytes, self.random_points,
                      self.controls, self.punctuation, self.everything]

    def draw(self, count: int) -> list[str]:
        return [self.kinds[i % len(self.kinds)]() for i in range(count)]

    def some(self, items, low=1, high=12) -> list:
        return self.random.choices(items, k=self.random.randint(low, high))

    def letters(self, script: str) -> str:
        low, high = self.random.choice(RANGES[script])
        return "".join(chr(self.random.randint(low, high)) for _ in range(self.random.randint(1, 8)))

    def words(self, script: str, count: int) -> list[str]:
        known = WORDS[script].split()
        return [self.random.choice(known) if self.random.random() < 0.7 else self.letters(script)
                for _ in range(count)]

    def natural(self) -> str:
        if not self.lines:
            return self.script()
        line = self.random.choice(self.lines)
        begin = self.random.randrange(max(1, len(line) - 50))
        return line[begin:begin + self.random.randint(20, 400)]

    def script(self) -> str:
        gap = self.random.choice([" ", " ", " ", "", ", ", "\n"])
        return gap.join(self.words(self.random.choice(list(WORDS)), self.random.randint(1, 20)))

    def mixed_scripts(self) -> str:
        parts = [self.words(self.random.choice(list(WORDS)), 1)[0] for _ in range(self.random.randint(2, 12))]
        return "".join(part + self.random.choice(["", " ", "'s", "-", "1", ". "]) for part in parts)

    def code(self) -> str:
        text = "".join(self.some(CODE, 1, 3))
        begin = self.random.randrange(len(text))
        return text[begin:begin + self.random.randint(10, 300)]

    def spaces(self) -> str:
        pieces = SPACES + ["a", "Z", "é", "1", ".", "日", "'s", "-"]
        return "".join(self.random.choice(pieces) * self.random.choice([1, 1, 1, 2, 3, 7])
                       for _ in range(self.random.randint(1, 20)))

    def emoji(self) -> str:
        return "".join(self.some(EMOJI + ["\u200d", "\ufe0f", "🏽", "🇺", " ", "a", "!"], 1, 15))

    def marks(self) -> str:
        bases = "aeouAEOnCsقहกかはᄀ각가 \u0344\u212b\u2126\u1e9b\u0958\ufb1d\uac00\u11b4\U0001D15E"
        return "".join(self.some(bases, 1, 2)[0] + "".join(self.some(MARKS, 0, 4)) for _ in range(12))

    def digits(self) -> str:
        return "".join(self.some(DIGITS + DIGITS[:10] * 4 + " .,-", 1, 40))

    def special(self) -> str:
        pieces = list(self.tokens) or ["<|x|>"]
        cut = [token[:self.random.randint(1, len(token))] for token in self.some(pieces, 2, 4)]
        around = [" ", "  ", "\n", "a", "hello", "é", "1", "<", "<|", "|>", "_", ".", "", "\u3000"]
        parts = self.some(pieces, 1, 6) + self.some(cut + around + around, 1, 10)
        self.random.shuffle(parts)
        return "".join(parts)

    def random_bytes(self) -> str:
        return self.random.randbytes(self.random.randint(1, 60)).decode("utf-8", "replace")

    def random_points(self) -> str:
        top = self.random.choice([0x7F, 0x7FF, 0xFFFF, 0x1FFFF, 0x10FFFF])
        points = (self.random.randint(0, top) for _ in range(self.random.randint(1, 40)))
        return "".join(chr(p) for p in points if not 0xD800 <= p < 0xE000)

    def controls(self) -> str:
        return "".join(chr(c) for c in self.some(list(range(0x20)) + list(range(0x7F, 0xA0)) + [0x20, 0x61], 1, 20))

    def punctuation(self) -> str:
        return "".join(self.some(list(PUNCTUATION) + [" ", "\n", "a", "'S", "'ſ", "'LL", "'Re"], 1, 30))

    def everything(self) -> str:
        return "".join(self.random.choice(self.kinds[:-1])()[:20] for _ in range(self.random.randint(2, 6)))
