"""What the headers of a call bind it to."""

import pytest

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
        ({"x-cydonia-project": "kettle"}, Binding()),
        ({"x-cydonia-project": "%2Fhome%FF"}, Binding()),
        ({"x-cydonia-project": "/home/%zz"}, Binding()),
        ({"x-cydonia-project": "/home/a%00b"}, Binding()),
    ],
)
def test_headers_bind_what_they_say_and_nothing_where_they_cannot_be_decoded(
    headers: dict[str, str], binding: Binding
) -> None:
    assert binding_of(headers) == binding


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
    assert binding_of(binding.headers()) == binding


def test_a_directory_whose_name_is_no_text_binds_to_what_can_be_said_of_it() -> None:
    assert binding_of(Binding(directory="/home/\udcff").headers()) == Binding(directory="/home/\ufffd")
