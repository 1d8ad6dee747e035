import threading
import time
from pathlib import Path

import pytest

from indexer.schedule import Schedule, Unit
from indexer.sources.base import Root
from indexer.sources.turn_file import TurnFileSource

ROOT = Root(Path("/turns"))
SOURCE = TurnFileSource([ROOT.path])


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("indexer.schedule.time.monotonic", clock)
    return clock


def unit(name: str) -> Unit:
    return Unit(SOURCE, ROOT, ROOT.path / name)


def due(schedule: Schedule) -> list[str]:
    return [one.path.name for one in schedule.pop_due()]


def test_a_file_that_changes_often_is_read_once(clock: Clock) -> None:
    schedule = Schedule()
    schedule.add([unit("a"), unit("b"), unit("a")])
    schedule.add([unit("a")])
    assert due(schedule) == ["a", "b"]
    assert due(schedule) == []


def test_a_file_is_read_when_its_delay_is_over(clock: Clock) -> None:
    schedule = Schedule()
    schedule.add([unit("a")], 2.0)
    assert due(schedule) == []
    assert schedule.next_due() == 102.0
    clock.now = 102.0
    assert due(schedule) == ["a"]
    assert schedule.next_due() is None


def test_of_two_times_the_earlier_counts(clock: Clock) -> None:
    schedule = Schedule()
    schedule.add([unit("a")], 2.0)
    schedule.add([unit("a")], 1.0)
    schedule.add([unit("a")], 3.0)
    assert schedule.next_due() == 101.0


def test_a_file_that_is_held_is_read_when_that_is_over_and_not_before(clock: Clock) -> None:
    schedule = Schedule()
    schedule.hold(Path("/turns/a"), 0.2)
    schedule.add([unit("a"), unit("b")])
    assert due(schedule) == ["b"]
    clock.now = 100.2
    assert due(schedule) == ["a"]
    schedule.add([unit("a")])
    assert due(schedule) == ["a"]


def test_the_file_that_waits_longest_comes_first(clock: Clock) -> None:
    schedule = Schedule()
    schedule.add([unit("late")], 1.0)
    clock.now = 100.5
    schedule.add([unit("b"), unit("a")])
    assert schedule.waiting_since("turn-file") == 100.0
    assert schedule.waiting_since("cydonia") is None
    clock.now = 101.0
    assert due(schedule) == ["late", "b", "a"]


def test_whoever_sleeps_wakes_when_something_is_added() -> None:
    schedule = Schedule()
    woken = threading.Event()

    def sleep() -> None:
        schedule.wait(None)
        woken.set()

    thread = threading.Thread(target=sleep)
    thread.start()
    schedule.add([unit("a")])
    assert woken.wait(30)
    thread.join()


def test_what_was_added_before_one_sleeps_is_not_slept_over() -> None:
    schedule = Schedule()
    schedule.add([unit("a")])
    schedule.wait(None)
    schedule.wake()
    schedule.wait(None)
    schedule.wait(time.monotonic())
