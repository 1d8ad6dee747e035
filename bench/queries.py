"""What is searched for, by class: drawn from an archive's own texts, the same for the same archive and seed."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeAlias

from bench.corpus import RARE_WORD, read_manifest
from bench.transcripts import texts_of
from bench.turns import turns_in_time

SAMPLED_TURNS = 3_000
SAMPLED_LINES = 20
"""Of one text: an output of 1 MB is not more of a sample than one of 1 KB."""

TRIES = 50
"""For each query wanted, until a class gives what it has."""

UNSELECTIVE = "regex without literals"
"""The class in which nothing selects: it reads everything, newest first, within a time limit."""

_WORD = re.compile("[A-Za-z]+")
_HASH = re.compile(r"\b(?:[0-9a-f]{40}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22})\b")
_PATH = re.compile(r"[\w/]+/[\w/]+\.[a-z]+(?::\d+)?")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~][!-/:-@\[-`{-~ ]{0,3}[!-/:-@\[-`{-~]")
_EAST_ASIAN = re.compile("[぀-ヿ一-鿿가-힣]{2,}")
_EMOJI = re.compile("[☀-➿🌀-🫿]")


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    mode: Literal["text", "regex", "words"] = "text"

    def arguments(self, *, full: bool = False) -> dict[str, Any]:
        """As `SearchRequest` takes them."""
        return {"query": self.text, "mode": self.mode, "full": full, "project": "*"}


Classes: TypeAlias = dict[str, list[Query]]


def fixed_queries(hash_prefix: str) -> Classes:
    """A few that are the same for every archive, the hard ones among them."""
    words = {
        "frequent word": ["the", "parser", "error"],
        "rare word": [RARE_WORD, "commit is"],
        "phrase": ["of the", "the parser", "to the and"],
        "phrase without match": ["of  the", "the  parser", "the\tof"],
        "fragment": ["arse", "rror", "oke"],
        "fragment without match": ["qxzj", "zzyzx", "wqwq"],
        "path": ["src/the/", "src/parser/error.rs", "/home/a/src"],
        "punctuation": ["=>", "::new(", "{", "<("],
        "one character": ["e", "x", "7"],
        "CJK": ["错", "错误", "解析器"],
        "emoji": ["🎉", "👍🏽"],
        "hash prefix": [hash_prefix],
        "long query": ["the of to and a in is it you that for on are with as this be at have from or one had by not"],
        "no word at all": ["}}", "§"],
    }
    return {name: [Query(text) for text in texts] for name, texts in words.items()}


def drawn_queries(corpus: Path, data_dir: Path, *, count: int, seed: int = 1) -> Classes:
    """Up to `count` different queries of each class; a class of which the archive has nothing is left out."""
    lines = list(sampled_lines(corpus, data_dir))
    classes = _Draw(Random(seed), lines).classes()
    drawn = {name: _different(draw, count) for name, draw in classes.items()}
    return {name: queries for name, queries in drawn.items() if queries}


def mixed(classes: Classes, seed: int = 1) -> list[Query]:
    """All classes together in random order, but for the one that reads everything."""
    queries = [query for name, some in classes.items() if name != UNSELECTIVE for query in some]
    Random(seed).shuffle(queries)
    return queries


def sampled_lines(corpus: Path, data_dir: Path) -> Iterator[str]:
    """Lines of every so many turns, spread over the whole archive."""
    step = max(1, read_manifest(corpus).turns // SAMPLED_TURNS)
    for turn in islice(turns_in_time(corpus, data_dir), 0, None, step):
        for item in turn.items[:100]:
            for text in texts_of(item):
                yield from (line for line in text[:10_000].split("\n")[:SAMPLED_LINES] if line.strip())


Draw: TypeAlias = Callable[[], Query | None]


def _different(draw: Draw, count: int) -> list[Query]:
    found: dict[Query, None] = {}
    for _ in range(count * TRIES):
        query = draw()
        if query is not None:
            found[query] = None
        if len(found) == count:
            break
    return list(found)


class _Draw:
    """How a query of each class is drawn; each call answers one, or None where this try found none."""

    def __init__(self, random: Random, lines: list[str]) -> None:
        self._random = random
        self._lines = lines
        self._all = "\n".join(lines).lower()
        self._counts = Counter(word.lower() for line in lines for word in _WORD.findall(line))
        self._frequent = [word for word, _ in self._counts.most_common(60) if len(word) > 1]
        self._rare = [word for word, times in self._counts.items() if times == 1 and len(word) >= 5] or self._frequent
        self._long = [word for word in self._counts if len(word) >= 6] or self._frequent
        self._prose = [line for line in lines if len(_WORD.findall(line)) >= 6] or lines

    def classes(self) -> dict[str, Draw]:
        return {
            "frequent word": lambda: self._one_of(self._frequent),
            "rare word": lambda: self._one_of(self._rare),
            "phrase": lambda: Query(" ".join(self._neighbours(self._random.randint(2, 4)))),
            "fragment": self._fragment,
            "fragment without match": self._missing_fragment,
            "path": lambda: self._part(_PATH, 4),
            "punctuation": lambda: self._part(_PUNCTUATION, 2),
            "one character": self._character,
            "CJK": lambda: self._part(_EAST_ASIAN, 2),
            "emoji": self._emoji,
            "hash prefix": self._hash_prefix,
            "long query": self._long_query,
            "regex with literals": self._regex,
            UNSELECTIVE: self._unselective_regex,
            "words": self._words,
        }

    def _one_of(self, words: list[str]) -> Query:
        return Query(self._random.choice(words))

    def _neighbours(self, count: int) -> list[str]:
        """Words that stand beside each other in some line."""
        words = self._random.choice(self._prose).split()
        start = self._random.randrange(max(1, len(words) - count))
        return words[start : start + count]

    def _fragment(self) -> Query | None:
        word = self._random.choice(self._long)
        length = self._random.randint(3, 5)
        start = self._random.randint(1, max(1, len(word) - length - 1))
        return Query(word[start : start + length])

    def _missing_fragment(self) -> Query | None:
        # Shorter ones may be in base64 somewhere beyond the sample.
        text = "".join(self._random.choices("qxzjwvkhg", k=self._random.randint(5, 8)))
        return None if text in self._all else Query(text)

    def _found(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.findall(self._random.choice(self._lines))
        return self._random.choice(found) if found else None

    def _part(self, pattern: re.Pattern[str], least: int) -> Query | None:
        """What a pattern finds, whole or a part of it."""
        found = self._found(pattern)
        if found is None or len(found.strip()) < least:
            return None
        start = self._random.choice([0, self._random.randint(0, len(found) - least)])
        longest = min(len(found) - start, 4 if pattern is _EAST_ASIAN else len(found))
        return Query(found[start : start + self._random.randint(least, longest)].strip())

    def _character(self) -> Query | None:
        character = self._random.choice(self._random.choice(self._lines))
        return None if character.isspace() else Query(character)

    def _emoji(self) -> Query | None:
        line = self._random.choice(self._lines)
        found = _EMOJI.search(line)
        if found is None:
            return None
        return Query(line[max(0, found.start() - self._random.randint(0, 6)) : found.end()].strip())

    def _hash_prefix(self) -> Query | None:
        found = self._found(_HASH)
        return None if found is None else Query(found[: self._random.choice([7, 8, 8, 12, 40])])

    def _long_query(self) -> Query | None:
        line = self._random.choice(self._prose).strip()
        return Query(line[:200].strip()) if len(line) >= 60 else None

    def _regex(self) -> Query | None:
        words = _WORD.findall(self._random.choice(self._prose))
        if len(words) < 2:
            return None
        first, last = sorted(self._random.sample(range(len(words)), 2))
        one, other = words[first], words[last]
        pattern = self._random.choice(
            [
                rf"{one}.*{other}",
                rf"\b{one}\s+\w+",
                rf"({self._random.choice(self._rare)}|{self._random.choice(self._rare)})\b",
                rf"src/{self._random.choice(self._rare)}/\w+\.(rs|py)",
                rf"{one}\w*\(.*\)",
                rf"{other}.?:\d+",
            ]
        )
        return Query(pattern, "regex")

    def _unselective_regex(self) -> Query | None:
        count = self._random.randint(4, 14)
        pattern = self._random.choice(
            [
                rf"\b[a-z]{{{count}}}\b",
                rf"[0-9a-f]{{{count}}}",
                rf"\([^)]{{{count}}}\)",
                rf"^\W+[a-z]{{{count}}}",
                rf"\d{{{count % 4 + 1}}}$",
            ]
        )
        return Query(pattern, "regex")

    def _words(self) -> Query | None:
        one, other = self._random.choice(self._long), self._random.choice(self._rare)
        phrase = " ".join(_WORD.findall(" ".join(self._neighbours(2)))) or one
        frequent = self._random.choice(self._frequent)
        text = self._random.choice(
            [
                f"{one} {frequent}",
                f'"{phrase}"',
                f'"{phrase}" {frequent}',
                f"{one} OR {other}",
                f"{one} -{frequent}",
                f"{one[:4]}*",
                f"{phrase}",
            ]
        )
        return Query(text, "words")
