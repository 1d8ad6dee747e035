"""From the text of a query to what the index is asked: facts that every matching chunk has.

A query is a phrase of terms. Its first and last may be part of a longer word, so they stand for all words
of the vocabulary that fit; each of those is spelled out in a phrase of its own where they are few.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from indexer.query import AnyTerm, Anything, ChunkQuery, Joint, Nothing, Phrase, all_of, any_of
from indexer.vocabulary import Fits, VocabularyReader
from indexer.words import STRIDE_CHARS, WINDOW_CHARS, QueryTerm, query_joints, query_terms, windows
from schemas.folding import fold

FEW_WORDS = 512
"""A fragment that no more words have is quickly completed to all of them, and the plan with it."""

MANY_WORDS = 5_000
"""A fragment that more words have tells chunks apart too little to be worth looking up."""

MANY_JOINTS = 2_000
"""The same of a joint of which the query knows three characters or two."""

FEW_PHRASES = 32
"""So many ways to complete both ends of several words are spelled out whole."""

FREQUENT = 4096
"""A term that is in so many chunks. Of the words that one end may stand for only frequent ones get phrases of
their own, and only where what they stand beside is as frequent: else there are so few chunks with both that these
are verified sooner than their phrases are looked up."""

MUCH_RARER = 16
"""One end of a query so many times as rare as the other makes the phrases of that one superfluous, too."""

SPELLED_WORDS = 64
"""So many of them get one, the most frequent;"""

SPELLED_NEIGHBOURS = 10
"""or so many at each end of a query of two words, where every two of them make a phrase."""

Frequency = Callable[[str], int]
"""In how many chunks a term is."""


@dataclass(frozen=True, slots=True)
class TextPlan:
    """What to ask the index for a text."""

    query: ChunkQuery
    is_complete: bool
    """Whether all is asked that could be; else more words than was allowed fit an end of the query."""

    def __str__(self) -> str:
        return str(self.query)


def plan_text(query: str, vocabulary: VocabularyReader, frequency: Frequency, most_words: int = FEW_WORDS) -> TextPlan:
    """Plan an exact search for a trimmed query, looking up to `most_words` that fit each of its ends."""
    needle = fold(query)
    terms = list(query_terms(needle))
    if not terms:
        return TextPlan(Anything(), True)  # characters that are white space to some only: the index has none of them
    ends = [_completed(term, vocabulary, most_words) for term in terms]
    is_complete = all(words is not None for words in ends)
    if any(words == [] for words in ends):
        return TextPlan(Nothing(), True)
    return TextPlan(all_of([_phrase(ends, frequency), _joints(needle, vocabulary)]), is_complete)


def _joints(needle: str, vocabulary: VocabularyReader) -> ChunkQuery:
    """Where an open word of the query meets its neighbour."""
    asked: list[ChunkQuery] = []
    for joint in query_joints(needle):
        found = [joint.text] if joint.is_whole else vocabulary.find_joints(joint.text, MANY_JOINTS)
        if found is not None:
            asked.append(Joint(tuple(found)) if found else Nothing())
    return all_of(asked)


def _completed(term: QueryTerm, vocabulary: VocabularyReader, most_words: int) -> list[tuple[str, ...]] | None:
    """What a term of the query may stand for in the index, each a run of terms; None: too much to list."""
    word = term.term
    if not term.is_open_left and not term.is_open_right:
        return [tuple(windows(word))]
    if term.is_open_left and term.is_open_right:
        found = vocabulary.find(word[:STRIDE_CHARS], Fits.ANYWHERE, most_words)
    elif term.is_open_left:
        found = vocabulary.find(word[-STRIDE_CHARS:], Fits.AT_END, most_words)
    else:
        found = vocabulary.find(word[:WINDOW_CHARS], Fits.AT_START, most_words)
    return None if found is None else [(word,) for word in found]


def _phrase(ends: Sequence[list[tuple[str, ...]] | None], frequency: Frequency) -> ChunkQuery:
    """Terms side by side, each of which may stand for several. Only the first and last are ever open."""
    left, right = ends[0], ends[-1] if len(ends) > 1 else [()]
    middle = tuple(part for end in ends[1:-1] if end is not None for part in end[0])
    if left is None and right is None:
        return _spelled([middle])
    if left is None or right is None:
        # The open end that too many words could complete is left off; the phrase of the others still holds.
        known = [(*start, *middle) for start in left] if left is not None else [(*middle, *end) for end in right or ()]
        return _any_phrase(known, frequency)
    if len(ends) == 1:
        return _spelled(left)
    if len(left) == 1 or (middle and len(right) == 1):
        return _any_phrase([(*start, *middle, *end) for start, end in product(left, right)], frequency)
    if middle and len(left) * len(right) <= FEW_PHRASES:
        return _spelled([(*start, *middle, *end) for start, end in product(left, right)])
    if middle:
        # Where one end is rare, it is enough to ask for a word at the other.
        before, behind = [(*start, *middle) for start in left], [(*middle, *end) for end in right]
        most_before, most_behind = _most_chunks(before, frequency), _most_chunks(behind, frequency)
        if most_behind < max(FREQUENT, most_before / MUCH_RARER):
            return all_of([_any_of_words(left), _any_phrase(behind, frequency)])
        if most_before < max(FREQUENT, most_behind / MUCH_RARER):
            return all_of([_any_phrase(before, frequency), _any_of_words(right)])
        return all_of([_any_phrase(before, frequency), _any_phrase(behind, frequency)])
    return _neighbours(left, right, frequency)


def _neighbours(left: Sequence[tuple[str, ...]], right: Sequence[tuple[str, ...]], frequency: Frequency) -> ChunkQuery:
    """One of `left` directly before one of `right`."""
    often_left, seldom_left = _by_frequency(left, frequency, SPELLED_NEIGHBOURS, place=-1)
    often_right, seldom_right = _by_frequency(right, frequency, SPELLED_NEIGHBOURS, place=0)
    if not often_left or not often_right:
        return all_of([_any_of_words(left), _any_of_words(right)])
    spelled = _spelled([(*start, *end) for start, end in product(often_left, often_right)])
    # The longer list is looked up once, as that is what costs.
    if len(left) > len(right):
        rest = [(seldom_left, right), (often_left, seldom_right)]
    else:
        rest = [(left, seldom_right), (seldom_left, often_right)]
    return any_of([spelled, *(all_of([_any_of_words(start), _any_of_words(end)]) for start, end in rest)])


def _any_phrase(phrases: Sequence[tuple[str, ...]], frequency: Frequency) -> ChunkQuery:
    """One of some phrases that differ at one end."""
    if len(phrases) <= 1:
        return _spelled(phrases)
    is_left_open = phrases[0][0] != phrases[1][0]
    place = 0 if is_left_open else -1
    rest = phrases[0][1:] if is_left_open else phrases[0][:-1]
    if rest and min(map(frequency, rest)) < FREQUENT:
        return all_of([AnyTerm(tuple(phrase[place] for phrase in phrases)), _spelled([rest])])
    often, seldom = _by_frequency(phrases, frequency, SPELLED_WORDS, place=place)
    ends = AnyTerm(tuple(phrase[place] for phrase in seldom))
    return any_of([_spelled(often), all_of([ends, _spelled([rest])]) if seldom else Nothing()])


def _most_chunks(phrases: Sequence[tuple[str, ...]], frequency: Frequency) -> int:
    """In how many chunks one of some phrases can be at most."""
    return sum(min(map(frequency, phrase)) for phrase in phrases)


def _by_frequency(
    runs: Sequence[tuple[str, ...]], frequency: Frequency, most: int, *, place: int
) -> tuple[Sequence[tuple[str, ...]], Sequence[tuple[str, ...]]]:
    """The runs whose term at `place` is most frequent, and the rest."""
    ranked = sorted(((frequency(run[place]), run) for run in runs), reverse=True)
    often = [run for count, run in ranked[:most] if count >= FREQUENT]
    return often, [run for _, run in ranked[len(often) :]]


def _any_of_words(runs: Sequence[tuple[str, ...]]) -> ChunkQuery:
    """One of some runs, of which only single words are asked for; none at all can be found nowhere."""
    if not runs:
        return Nothing()
    return _spelled(runs) if any(len(run) > 1 for run in runs) else AnyTerm(tuple(word for (word,) in runs))


def _spelled(phrases: Sequence[tuple[str, ...]]) -> ChunkQuery:
    """One of some phrases, as they are; an empty one is anywhere."""
    if any(not phrase for phrase in phrases):
        return Anything()
    if all(len(phrase) == 1 for phrase in phrases):
        return AnyTerm(tuple(word for (word,) in phrases))
    return any_of([Phrase(phrase) for phrase in phrases])
