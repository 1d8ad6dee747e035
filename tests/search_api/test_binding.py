"""What the headers of a call bind it to."""

import pytest

from schemas.errors import InvalidArgument
from search_api.binding import Binding, binding_of


@pytest.mark.parametrize(
    ("headers", "binding"),
    [
        ({}, Binding()),
        ({"x-cydonia-project": "/home/a/kettle"}, Binding(project="/home/a/kettle")),
        ({"x-turndex-project": "/home/a/kettle"}, Binding(project="/home/a/kettle")),
        ({"x-turndex-project": "/ours", "x-cydonia-project": "/theirs"}, Binding(project="/ours")),
        ({"x-cydonia-project": "%2Fhome%2Fa%2Fna%C3%AFve%20kettle"}, Binding(project="/home/a/naïve kettle")),
        ({"x-cydonia-project": "/home/a/na\xc3\xafve"}, Binding(project="/home/a/naïve")),
        ({"x-cydonia-session": "1790000004300"}, Binding(session="1790000004300")),
        ({"x-turndex-session": " 0198f3c2 ", "x-turndex-project": "/p"}, Binding(project="/p", session="0198f3c2")),
        ({"x-turndex-directory": "/home/a/kettle/src"}, Binding(directory="/home/a/kettle/src")),
        ({"x-cydonia-project": ""}, Binding()),
        ({"x-cydonia-project": "%2Fhome%FF"}, Binding()),
        ({"x-cydonia-project": "/home/%zz"}, Binding()),
    ],
)
def test_headers_bind_what_they_say_and_nothing_where_they_cannot_be_decoded(
    headers: dict[str, str], binding: Binding
) -> None:
    assert binding_of(headers.items()) == binding


@pytest.mark.parametrize(
    "binding",
    [
        Binding(),
        Binding(project="/home/a/naïve 100% kettle#1"),
        Binding(directory="/home/错误/x\ny", session="s 1"),
    ],
)
def test_what_is_written_is_read_back(binding: Binding) -> None:
    assert all(value.isascii() and value.isprintable() for value in binding.headers().values())
    assert binding_of(binding.headers().items()) == binding


def test_a_directory_whose_name_is_no_text_binds_to_what_can_be_said_of_it() -> None:
    assert binding_of(Binding(directory="/home/\udcff").headers().items()) == Binding(directory="/home/\ufffd")


@pytest.mark.parametrize("header", ["x-turndex-project", "x-cydonia-project", "x-turndex-directory"])
@pytest.mark.parametrize(
    "value", ["kettle", "kettle/src", "./kettle", "~/kettle", "*", "%2a", "home%2Fa", "/home/a%00b"]
)
def test_a_path_that_is_none_is_refused_and_not_every_project(header: str, value: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^Error .*: the header {header} takes an absolute path"):
        binding_of([(header, value)])


@pytest.mark.parametrize("name", ["project", "directory"])
def test_a_path_that_was_left_empty_is_refused_and_not_every_project(name: str) -> None:
    for value in ("", "  "):
        with pytest.raises(InvalidArgument, match=f"x-turndex-{name} takes an absolute path, and is empty"):
            binding_of([(f"x-turndex-{name}", value), (f"x-cydonia-{name}", "/home/a")])


def test_a_header_that_is_right_does_not_stand_in_for_one_that_is_not() -> None:
    for good in ("x-cydonia-project", "x-turndex-directory"):
        with pytest.raises(InvalidArgument, match="x-turndex-project"):
            binding_of([(good, "/home/a"), ("x-turndex-project", "kettle")])


@pytest.mark.parametrize("name", ["project", "session", "directory"])
@pytest.mark.parametrize("values", [("/home/a", "/home/b"), ("/home/a", "/home/a"), ("", "/home/a"), ("/home/a", "")])
def test_a_header_that_is_there_twice_is_refused(name: str, values: tuple[str, str]) -> None:
    with pytest.raises(InvalidArgument, match=f"the header x-turndex-{name} is there twice"):
        binding_of([(f"x-turndex-{name}", value) for value in values])
