r"""The file of a catalogue: a head that says where its parts lie, and parts that are compressed one by one.

    lmdiag-catalog <format> <bytes of the head>\\n  head  part  part  …

Each part is a zlib stream, so that a scan unpacks only what it needs. The head, as JSON: `versions` (project -> its
releases, oldest first), `rows` (how many there are), `parts` (name -> [offset, length]), and `texts` and `blocks` ([offset,
length] of each block of rows).

texts    one line a row: the message's literals with HOLE between them, or OPAQUE and the place of one without words
words    one line a word: the word, a blank, the numbers of the rows that are filed under it
files    one line a file: its path, a blank, the numbers of the blocks that have a site in it
renamed  one line a rewording: number of the old row, a blank, number of the new one
block    JSON: a list of rows: [names of the holes, site, …]; site: [number of the project, file, qualified name, how,
         [[release, type, family], …], [[release, line, step, …], …]]: a list of runs over releases without a gap, where
         a step is the difference to the line in the release before. `how` is r(aise), a(ssert), b(uilt), a(g)ain, and v
         behind it for a validator of pydantic. Releases are numbers into `versions`.
"""

from __future__ import annotations

MAGIC = "lmdiag-catalog"
FORMAT = 2
DIRECTORY = "catalog"
"""Where it lies among the rules."""
FILE = "catalog.bin"
RELEASES = "releases.json"
SETTINGS = "settings.json"
HOLE = "\x00"
LINE_BREAK = "\x01"
OPAQUE = "\x02"
ROWS_PER_BLOCK = 96
HOWS = {"r": "raise", "a": "assert", "b": "built", "g": "again"}
