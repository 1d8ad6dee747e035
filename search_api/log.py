"""The log: our own words from INFO on, everyone else's warnings, on standard error."""

import logging
import sys

OUR_ROOMS = ("indexer", "search_api")


def log_to_stderr(form: str = "%(levelname)s %(name)s: %(message)s") -> None:
    """Send the log to what is standard error now."""
    logging.basicConfig(level=logging.WARNING, format=form, stream=sys.stderr)
    for room in OUR_ROOMS:
        logging.getLogger(room).setLevel(logging.INFO)
    # uvicorn warns of every request that it cannot read; the caller is told.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
