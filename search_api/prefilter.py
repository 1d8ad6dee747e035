"""A cheap look at the JSON of a chunk, as bytes: most that the index names in vain need not be taken apart."""

import re
from collections.abc import Iterable, Sequence

import orjson

from schemas.folding import FOLDED

_FOLD_TO_ASCII = [char.encode() for char, folded in FOLDED.items() if folded.isascii()]
"""The few characters outside ASCII that an ASCII text may stand for, such as the Kelvin sign."""

_BETWEEN_CASED = re.compile("[" + "".join({*FOLDED, *FOLDED.values()} - set(map(chr, range(128)))) + "]")
"""Characters outside ASCII that stand for others or have others that stand for them; all else is what it is."""

_SIGNS = rb"(?:[^a-z0-9\\]|\\(?:u00..|.))*"
"""What may stand between two words in JSON: no letter or digit but those of an escape."""


class Prefilter:
    """Tells that no text in a chunk's JSON can hold some folded texts, all of them; it may know too little."""

    def __init__(self, texts: Iterable[str], phrase: Sequence[str] = ()) -> None:
        """`phrase` are words of which each must follow the one before, with any signs between them."""
        known = {piece for text in texts for piece in _BETWEEN_CASED.split(text) if piece}
        self._pieces = [orjson.dumps(piece)[1:-1] for piece in known]
        self._phrase: re.Pattern[bytes] | None = None
        if len(phrase) > 1 and all(word.isascii() for word in phrase):
            self._phrase = re.compile(_SIGNS.join(re.escape(word).encode() for word in phrase))

    @classmethod
    def of_phrase(cls, words: Sequence[str]) -> "Prefilter":
        """For words that follow each other with any signs between them."""
        return cls(words, words)

    def may_hold(self, json: bytes) -> bool:
        if not json.isascii() and any(char in json for char in _FOLD_TO_ASCII):
            return True
        # Of ASCII, `bytes.lower` is the folding; all else it leaves alone.
        lowered = json.lower()
        if not all(piece in lowered for piece in self._pieces):
            return False
        return self._phrase is None or self._phrase.search(lowered) is not None
