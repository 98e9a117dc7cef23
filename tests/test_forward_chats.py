"""What holds for each chat: `checked` of its own tests knows its limits and what could come to life there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import test_forward_sinks_discord as discord
import test_forward_sinks_slack as slack
from hypothesis import example, given, settings
from payloads import HOSTILE_TEXT, MESSAGES, hostile, of_hostiles

from lmdiag.forward.message import Message

CHATS = pytest.mark.parametrize("checked", [slack.checked, discord.checked], ids=["slack", "discord"])


@CHATS
@pytest.mark.parametrize("kind", MESSAGES)
def test_all_kinds_are_within_the_limits(kind: str, checked: Callable[[Message], object]) -> None:
    checked(MESSAGES[kind])


@CHATS
@settings(max_examples=50, deadline=None)
@given(text=HOSTILE_TEXT)
@example(text=":smile:<@U024BE7LH>")
def test_nothing_in_a_log_comes_to_life(text: str, checked: Callable[[Message], object]) -> None:
    checked(hostile(text))
    checked(of_hostiles(text))
