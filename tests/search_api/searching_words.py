"""Searches by words of an archive that a test wrote."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from indexer.index import IndexReader
from indexer.lane_writer import WORDS_FOLDER
from indexer.store.reader import StoreReader
from indexer.vocabulary import VocabularyReader
from schemas.answers import SearchAnswer
from schemas.requests import SearchRequest
from schemas.settings import Settings
from search_api.caller import Caller
from search_api.ranked_lists import RankedLists
from search_api.walk import Tools
from search_api.words_search import search_words

NOW_MS = 1_796_000_000_000


@contextmanager
def opened(settings: Settings) -> Iterator[Tools]:
    """Store and index as they are now."""
    with closing(StoreReader(settings.data_dir)) as store, store.snapshot():
        folder = settings.data_dir / str(store.meta("index_folder"))
        with closing(VocabularyReader(folder / WORDS_FOLDER)) as vocabulary:
            yield Tools(store, IndexReader(folder), vocabulary)


def search(tools: Tools, arguments: Mapping[str, Any], lists: RankedLists | None = None) -> SearchAnswer:
    """One page; without `lists` nothing is kept between pages, as on the command line."""
    order = arguments.get("order", "best")
    others = {name: value for name, value in arguments.items() if name != "order"}
    return search_words(
        tools,
        SearchRequest.read({"mode": "words", **others}),
        Caller(),
        order=order,
        now_ms=NOW_MS,
        is_late=lambda: False,
        lists=RankedLists() if lists is None else lists,
    )


def pages(tools: Tools, arguments: Mapping[str, Any], lists: RankedLists | None = None) -> Iterator[SearchAnswer]:
    answer = search(tools, arguments, lists)
    yield answer
    while answer.cursor is not None:
        answer = search(tools, {**arguments, "cursor": answer.cursor}, lists)
        yield answer
