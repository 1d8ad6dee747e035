"""Which turndex this is."""

from importlib.metadata import version

VERSION = version("turndex")
