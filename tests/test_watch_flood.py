"""What a flood only repeats is left out; what is new in it is not."""

from __future__ import annotations

from lmdiag.watch.flood import Flood

BLOCK = b"".join(b"ERROR 12-01 02:00:%02d [core.py:1] request %d: ValueError: too long\n" % (n % 60, n) for n in range(100))


def test_the_first_block_is_kept_and_its_repeats_are_not() -> None:
    flood = Flood()
    assert not flood.repeats(BLOCK, hexadecimal=False)
    assert flood.repeats(BLOCK.replace(b"request 7", b"request 8"), hexadecimal=False)


def test_one_new_line_keeps_the_block() -> None:
    flood = Flood()
    flood.repeats(BLOCK, hexadecimal=False)
    assert not flood.repeats(BLOCK + b"ValueError: something else\n", hexadecimal=False)


def test_what_tells_of_the_servers_life_is_kept() -> None:
    flood = Flood()
    block = BLOCK + b"INFO 12-01 02:00:00 [x.py:1] Application startup complete.\n"
    assert not flood.repeats(block, hexadecimal=False)
    assert not flood.repeats(block, hexadecimal=False)


def test_request_ids_are_seen_through_when_it_must_be() -> None:
    flood = Flood()
    first, second = (BLOCK.replace(b"request", b"cmpl-" + name) for name in (b"fe01ab", b"0d9ce3"))
    flood.repeats(first, hexadecimal=False)
    assert not flood.repeats(second, hexadecimal=False)
    assert not flood.repeats(first, hexadecimal=True)
    assert flood.repeats(second, hexadecimal=True)


def test_afterwards_everything_is_new_again() -> None:
    flood = Flood()
    flood.repeats(BLOCK, hexadecimal=False)
    flood.calm()
    assert not flood.repeats(BLOCK, hexadecimal=False)
