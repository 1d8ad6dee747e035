"""What sessions are made of: prose, code, paths, identifiers, hashes, stack traces, other scripts, emoji.

Every text is invented, and the same for the same seed. Words follow Zipf's law, so that some are in
nearly every turn and most are rare; identifiers, hashes and numbers are new each time, as in real work.
"""

import base64
from itertools import accumulate
from random import Random
from typing import Literal, TypeAlias

VOCABULARY = 60_000

Mix: TypeAlias = Literal["whole", "plain"]
"""`plain` is prose and code: without hashes, base64, numbers that a program printed, other scripts and emoji."""

_ONSETS = [
    "b",
    "br",
    "c",
    "ch",
    "d",
    "f",
    "g",
    "gr",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
]
_NUCLEI = ["a", "e", "i", "o", "u", "ai", "ea", "io", "ou"]
_CODAS = ["", "", "", "l", "m", "n", "r", "s", "t", "nt", "rk", "st"]
_COMMON = (
    "the of to and a in is it you that for on are with as this be at have from or one had by not but what all were "
    "when we there can an your which their if do will each how them then parser span range test file line error index "
    "search session turn query token buffer request server client build fix add remove check read write open close"
)
FUNCTION_WORDS = _COMMON.split().index("parser")
"""The first words are those that sentences are held together with."""

_CHINESE = "解析器的错误处理在哪里中文搜索测试文件范围结束请看一下这个函数返回值为空会话索引"
_JAPANESE = "日本語のテキストも検索できます解析器のエラー処理はどこですかテスト結果を確認してください"
_KOREAN = "한국어도검색됩니다오류를처리하는함수가어디에있는지확인해주세요파일범위끝"
_EMOJI = ["🎉", "✅", "❌", "🚀", "👍🏽", "🐛", "⚠️"]
_EXTENSIONS = ["rs", "py", "ts", "go", "md", "toml"]
_STATEMENTS = [
    "let {a} = {b}.{c}(&{d});",
    "if ({a}.{b} !== null) {{ return {c}[{d}]; }}",
    "def {a}({b}: int, {c}: str) -> {d}:",
    "    return {a}.{b}({c}) => {d}",
    "for {a} in {b}.items(): {c} += {d}",
    "assert {a} == {b}, f\"{c}: {{{d}}}\"",
    "#define {a} ({b} << {c} | {d})",
    "{a}::{b}<{c}>::new({d})?",
]  # fmt: skip


PLAIN_IDENTIFIERS = 30_000
"""In code alone the same identifiers come again and again; logs and hashes are what makes ever new words."""


class Texts:
    """A stream of texts; each call answers a new one."""

    def __init__(self, random: Random, mix: Mix = "whole") -> None:
        self._random = random
        self.mix = mix
        # The words are the same for every seed, so that queries for them compare between archives.
        vocabulary = _vocabulary(Random(1), VOCABULARY)
        self._words = vocabulary
        self._weights = _zipf(len(vocabulary))
        # People name things after what they are: identifiers and paths are made of nouns and verbs.
        self._names = vocabulary[FUNCTION_WORDS:]
        self._name_weights = _zipf(len(self._names))
        self._identifiers: list[str] = []
        if mix == "plain":
            self._identifiers = [self._new_identifier() for _ in range(PLAIN_IDENTIFIERS)]
            self._identifier_weights = _zipf(PLAIN_IDENTIFIERS)

    def words(self, count: int) -> list[str]:
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def names(self, count: int) -> list[str]:
        return self._random.choices(self._names, cum_weights=self._name_weights, k=count)

    def sentence(self) -> str:
        words = self.words(self._random.randint(4, 18))
        return f"{' '.join(words).capitalize()}."

    def paragraph(self, sentences: int) -> str:
        """Mostly prose; every tenth in Chinese, Japanese or Korean, some with a path, a hash or an emoji in it."""
        roll = self._random.random()
        if roll < 0.1 and self.mix == "whole":
            return self.east_asian(sentences * 14)
        text = " ".join(self.sentence() for _ in range(sentences))
        if roll < 0.35:
            return f"{text}\nSee {self.path()}:{self._random.randint(1, 900)}"
        if self.mix == "plain":
            return text
        if roll < 0.4:
            return f"{text} ({self.hash()})"
        if roll < 0.45:
            return f"{text} {self._random.choice(_EMOJI)}"
        return text

    def east_asian(self, length: int) -> str:
        """Half Chinese, else Japanese or Korean; Korean has spaces between its words."""
        script = self._random.choice([_CHINESE, _CHINESE, _JAPANESE, _KOREAN])
        chars = "".join(self._random.choices(script, k=length))
        if script is not _KOREAN:
            return f"{chars}。"
        return " ".join(chars[start : start + 3] for start in range(0, length, 3)) + "."

    def path(self) -> str:
        folder, name = self.names(2)
        return f"src/{folder}/{name}.{self._random.choice(_EXTENSIONS)}"

    def identifier(self) -> str:
        if self._identifiers:
            return self._random.choices(self._identifiers, cum_weights=self._identifier_weights)[0]
        return self._new_identifier()

    def _new_identifier(self) -> str:
        first, second = self.names(2)
        style = self._random.randrange(3)
        if style == 0:
            return f"{first}_{second}"
        return f"{first}{second.capitalize()}" if style == 1 else f"{first}{self._random.randrange(1000)}"

    def hash(self) -> str:
        if self._random.random() < 0.5:
            return self._random.randbytes(20).hex()
        digits = self._random.randbytes(16).hex()
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def code(self, lines: int) -> str:
        return "\n".join(
            self._random.choice(_STATEMENTS).format(
                a=self.identifier(), b=self.identifier(), c=self.identifier(), d=self.identifier()
            )
            for _ in range(lines)
        )

    def trace(self, frames: int) -> str:
        lines = ["Traceback (most recent call last):"]
        for _ in range(frames):
            line = self._random.randint(1, 900)
            lines.append(f'  File "/home/a/{self.path()}", line {line}, in {self.identifier()}')
        return "\n".join([*lines, f"ValueError: {' '.join(self.words(5))}"])

    def output(self, size: int) -> str:
        """About `size` characters of what a tool answers: mostly a log, now and then base64; plain, it is code."""
        if self.mix == "plain":
            return self._source(size)
        return self.encoded(size) if self._random.random() < 0.01 else self.log(size)

    def _source(self, size: int) -> str:
        lines = []
        written = 0
        while written < size:
            lines.append(self.code(1))
            written += len(lines[-1]) + 1
        return "\n".join(lines)

    def log(self, size: int) -> str:
        """About `size` characters of what a build prints."""
        lines = []
        written = 0
        while written < size:
            step = self._random.randint(1, 9999)
            line = f"[{step:5d}] {' '.join(self.words(7))} {self.path()} ok={step % 7} {self._random.random():.6f}s"
            lines.append(line)
            written += len(line) + 1
        return "\n".join(lines)

    def encoded(self, size: int) -> str:
        """About `size` characters of base64, in lines of 76 as mail and certificates have them."""
        encoded = base64.encodebytes(self._random.randbytes(size * 3 // 4 + 1))
        return encoded.decode().rstrip("\n")


def _zipf(count: int) -> list[float]:
    """Cumulative weights of so many words, the most frequent first."""
    return list(accumulate(1 / (rank + 3) for rank in range(count)))


def _vocabulary(random: Random, count: int) -> list[str]:
    """Distinct words, the most frequent first."""
    words = dict.fromkeys(_COMMON.split())
    while len(words) < count:
        syllables = random.choice([1, 2, 2, 3, 3, 4])
        word = "".join(random.choice(part) for _ in range(syllables) for part in (_ONSETS, _NUCLEI, _CODAS))
        words[word] = None
    return list(words)
