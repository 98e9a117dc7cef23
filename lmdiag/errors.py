"""The errors that lmdiag raises for a person to read; each is raised once, with context, and reported once, by the CLI."""

from __future__ import annotations


class LmdiagError(Exception):
    """Base of all of them. The message says what, where, and what to do next."""


class UsageError(LmdiagError):
    """The command line contradicts itself or names something that does not exist (exit code 2)."""


class InputError(LmdiagError):
    """An input cannot be read, or not to its end: missing, forbidden, broken archive. What was read so far still counts."""


class CardError(LmdiagError):
    """A card or a rule directory is invalid. Each problem names file and key."""


class CatalogError(LmdiagError):
    """A catalogue is missing, damaged or of another format. A scan goes on without it."""


class ConfigError(LmdiagError):
    """The configuration cannot be used (exit code 2). Holds all of its problems, not only the first."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        head = () if len(problems) == 1 else (f"{len(problems)} problems in the configuration:",)
        super().__init__("\n  ".join(head + problems))


class StateError(LmdiagError):
    """The daemon's state directory cannot be used, or its state not be saved."""
