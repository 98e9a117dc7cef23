"""What the tests of the extractor share: from a source text to what was found in it."""

from __future__ import annotations

from textwrap import dedent, indent

from lmdiag.catalog.extract import extract
from lmdiag.catalog.sites import Site
from lmdiag.catalog.texts import Text

PLACE = "pkg/mod.py"


def sites_of(source: str, **others: str) -> list[Site]:
    """The sites of pkg/mod.py; the other modules of pkg are named by keyword, `sub__inner` for pkg/sub/inner.py."""
    sources = {f"pkg/{name.replace('__', '/')}.py": dedent(text) for name, text in others.items()}
    sites, _ = extract({PLACE: dedent(source), "pkg/__init__.py": "", **sources})
    return [site for site in sites if site.file == PLACE]


def shown(text: Text) -> str:
    """A text to read: names of holes in braces."""
    return "".join(f"{{{part}}}" if index % 2 else part for index, part in enumerate(text))


def messages(source: str, **others: str) -> list[str]:
    """The alternatives of what the last raise site of a module says."""
    return [shown(text) for text in sites_of(source, **others)[-1].texts]


def raised(body: str, **others: str) -> list[str]:
    """The same for the body of a function `check(self, value, name)`."""
    return messages(f"def check(self, value, name):\n{indent(dedent(body), '    ')}\n", **others)


def said(expression: str) -> list[str]:
    """The texts of an expression that is the argument of a ValueError."""
    return raised(f"raise ValueError({expression})")
