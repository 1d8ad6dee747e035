"""What is read in the place of what is no text: its data is never kept, but that it was there is worth knowing."""

IMAGE = "[Image]"
DOCUMENT = "[Document]"


def first_words(text: str) -> str:
    """The first line that says something, as a title: empty where all there is are pictures and documents."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and line not in (IMAGE, DOCUMENT)), "")
