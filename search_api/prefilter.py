"""A cheap look at the JSON of a chunk, as bytes: most that the index names in vain need not be taken apart."""

import re
from collections.abc import Iterable, Sequence

import orjson

from schemas.folding import FOLDED

_FOLD_TO_ASCII = [char.encode() for char, folded in FOLDED.items() if folded.isascii()]
"""The few characters outside ASCII that an ASCII text may stand for, such as the Kelvin sign."""

_SIGNS = rb"(?:[^a-z0-9\\]|\\(?:u00..|.))*"
"""What may stand between two words in JSON: no letter or digit but those of an escape."""


class Prefilter:
    """Tells that no text in a chunk's JSON can hold some folded texts, all of them; it may know too little."""

    def __init__(self, texts: Iterable[str]) -> None:
        known = {orjson.dumps(text)[1:-1] for text in texts}
        self._ascii = [text for text in known if text.isascii()]
        self._has_wide = len(self._ascii) < len(known)
        self._phrase: re.Pattern[bytes] | None = None

    @classmethod
    def of_phrase(cls, words: Sequence[str]) -> "Prefilter":
        """For words that follow each other with any signs between them."""
        prefilter = cls(words)
        if len(words) > 1 and not prefilter._has_wide:
            prefilter._phrase = re.compile(_SIGNS.join(re.escape(word).encode() for word in words))
        return prefilter

    def may_hold(self, json: bytes) -> bool:
        if json.isascii():
            if self._has_wide:
                return False
        elif any(char in json for char in _FOLD_TO_ASCII):
            return True
        if not self._ascii:
            return True
        # Of ASCII, `bytes.lower` is the folding; all else it leaves alone.
        lowered = json.lower()
        if not all(text in lowered for text in self._ascii):
            return False
        return self._phrase is None or self._phrase.search(lowered) is not None
