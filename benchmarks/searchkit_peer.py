"""Searches a log for two patterns with searchkit, the library that hotsos searches with. Run by benchmarks.peers."""

from __future__ import annotations

import sys

from searchkit import FileSearcher, SearchDef

searcher = FileSearcher()
for name in ("ValueError", "RuntimeError"):
    searcher.add(SearchDef(f".*{name}: (.*)", tag=name), sys.argv[1])
found = searcher.run()
print(*(f"{name}: {len(found.find_by_tag(name))}" for name in ("ValueError", "RuntimeError")))
