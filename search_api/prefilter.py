"""A cheap look at the JSON of a chunk, as bytes: most that the index names in vain need not be taken apart."""

from collections.abc import Iterable

import orjson

from schemas.folding import FOLDED

_FOLD_TO_ASCII = [char.encode() for char, folded in FOLDED.items() if folded.isascii()]
"""The few characters outside ASCII that an ASCII text may stand for, such as the Kelvin sign."""


class Prefilter:
    """Tells that no text in a chunk's JSON can hold some folded texts, all of them; it may know too little."""

    def __init__(self, texts: Iterable[str]) -> None:
        known = {orjson.dumps(text)[1:-1] for text in texts}
        self._ascii = [text for text in known if text.isascii()]
        self._has_wide = len(self._ascii) < len(known)

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
        return all(text in lowered for text in self._ascii)
