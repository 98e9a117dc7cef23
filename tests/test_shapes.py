"""Every shape of a traceback that the field knows gives its cause, once."""

from __future__ import annotations

import pytest
from helpers import diagnose, roots
from shapes import SHAPES, Shape


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name.replace(" ", "-"))
def test_the_cause_is_found_once(shape: Shape) -> None:
    """The root is reported with its exact message, as the only incident."""
    assert roots(diagnose(shape.log)) == shape.roots
