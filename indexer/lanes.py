"""The two folders of the index, each with a writer of its own.

A Tantivy commit writes out all that its writer holds. So a first scan or a rebuild goes to `bulk`, with few
large commits, and everything after to `live`, with many small ones.
"""

LANES = ("bulk", "live")
BULK, LIVE = range(2)
