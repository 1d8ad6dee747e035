"""The truth: projects, sessions, numbers, turns and their text, in one SQLite database.

`schema` has the tables, `chunks` how text is packed, `writer` the one that writes, `reader` the many
that read. The index is derived from here and can be thrown away; this cannot.
"""
