"""Tags that the program puts around text: `<tag>text</tag>`, one after the other, perhaps with text behind them."""

import re
from collections.abc import Collection, Iterator

MAX_WRAPPERS = 256
"""What stands behind so many is taken as it is."""

_OPENING = re.compile(r"\s*<([A-Za-z][\w.:-]*)(?:\s[^<>]*)?>")


def wrappers(text: str) -> Iterator[tuple[str, str]]:
    """Each wrapper's name, and what stands in it; what stands in none has no name.

    A wrapper ends where another one of its name begins behind its end, else at its last end: what it holds may speak
    of the tag itself. One without an end holds all the rest.
    """
    at = 0
    for _ in range(MAX_WRAPPERS):
        opening = _OPENING.match(text, at)
        if opening is None:
            break
        name = opening[1]
        following = re.compile(rf"</{re.escape(name)}>(?=\s*<{re.escape(name)}[\s>])").search(text, opening.end())
        end = text.rfind(f"</{name}>", opening.end()) if following is None else following.start()
        at = len(text) if end < 0 else end + len(f"</{name}>")
        yield name, text[opening.end() : len(text) if end < 0 else end].strip()
    if rest := text[at:].strip():
        yield "", rest


def unwrapped(text: str) -> str:
    """The text without the tags of the wrappers that it is made of."""
    return "\n".join(body for _, body in wrappers(text) if body)


def is_only_of(text: str, names: Collection[str]) -> bool:
    """Whether a text is made of wrappers of these names, and has nothing beside them."""
    is_any = False
    for name, _ in wrappers(text):
        if name not in names:
            return False
        is_any = True
    return is_any


def tagged(text: str, tag: str) -> str | None:
    """What stands between a tag and its end, or the text's; None where there is no such tag."""
    start = text.find(f"<{tag}>")
    if start < 0:
        return None
    start += len(tag) + 2
    # The end is searched from behind: what a command printed may hold the tag itself.
    end = text.rfind(f"</{tag}>")
    return text[start:end] if end >= start else text[start:]
