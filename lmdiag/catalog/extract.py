"""From the sources of one release to its raise sites, with the figures by which the result is checked."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from lmdiag.catalog.modules import Package
from lmdiag.catalog.sites import Site, module_sites
from lmdiag.catalog.texts import dotted, is_opaque

_RECURSION = 20_000


class Figures(NamedTuple):
    """What was counted in a release."""

    modules: int
    unparsable: tuple[str, ...]
    """Files that this Python cannot parse: their sites are missing."""
    sites: int
    value_errors: int
    """`raise ValueError` statements that the extractor found."""
    value_errors_in_source: int
    """The same by a plain walk over the syntax trees: both must be equal."""
    opaque_value_errors: int
    """Those whose message has no literal word."""


def extract(sources: Mapping[str, str]) -> tuple[list[Site], Figures]:
    """Return the raise sites of a package from its sources (path from the package's parent -> text)."""
    package = Package(sources)
    with _deep_recursion():
        sites = [site for module in package.modules.values() for site in module_sites(package, module)]
    found: dict[tuple[str, int], bool] = {}
    for site in sites:
        if site.type == "ValueError" and site.how == "raise":
            found.setdefault((site.file, site.line), all(map(is_opaque, site.texts)))
    plain = {(module.path, line) for module in package.modules.values() for line in _plain_value_errors(module.raises)}
    figures = Figures(
        len(package.modules),
        tuple(package.unparsable),
        len(sites),
        len(plain & found.keys()),
        len(plain),
        sum(found.values()),
    )
    return sites, figures


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Allow for a sum of a thousand strings or an `elif` chain as long, which nest as deep in the tree."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _plain_value_errors(raises: Iterable[ast.Raise]) -> list[int]:
    raised = ((node.exc, node.lineno) for node in raises)
    return [
        line for error, line in raised if dotted(error.func if isinstance(error, ast.Call) else error) == "ValueError"
    ]
