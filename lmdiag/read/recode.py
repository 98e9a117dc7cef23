"""Bytes as UTF-8: UTF-16 with a byte order mark (PowerShell's `>` writes it) is recoded, a UTF-8 mark is dropped."""

from __future__ import annotations

import codecs

from lmdiag.errors import InputError
from lmdiag.read.files import RawReader

_BLOCK = 1 << 16


class Utf8Reader(RawReader):
    """UTF-8 from another reader. What is no valid UTF-16 becomes invalid UTF-8, so that the line reader counts it."""

    def __init__(self, inner: RawReader) -> None:
        self._inner = inner
        self._ready = b""
        self._sniffed = False
        self._decoder: codecs.IncrementalDecoder | None = None

    @property
    def position(self) -> int:
        """See RawReader."""
        return self._inner.position

    def close(self) -> None:
        """See RawReader."""
        self._inner.close()

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """See RawReader."""
        if not self._sniffed:
            self._sniff()
        if not self._ready:
            if self._decoder is None:
                return self._inner.readinto(buffer)
            self._ready = self._recoded(self._decoder)
        data, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def _sniff(self) -> None:
        self._sniffed = True
        head = self._head(len(codecs.BOM_UTF8))
        for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
            if head.startswith(mark):
                self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
                self._ready = self._decoder.decode(head[len(mark) :]).encode("utf-8", "surrogatepass")
                return
        self._ready = head.removeprefix(codecs.BOM_UTF8)

    def _head(self, size: int) -> bytes:
        head = b""
        buffer = bytearray(size)
        try:
            while len(head) < size and (count := self._inner.readinto(memoryview(buffer)[: size - len(head)])):
                head += buffer[:count]
        except InputError:
            pass  # the next read raises it again, after these bytes were delivered
        return head

    def _recoded(self, decoder: codecs.IncrementalDecoder) -> bytes:
        """Recode the next bytes; b"" at the end."""
        buffer = bytearray(_BLOCK)
        while count := self._inner.readinto(buffer):
            text = decoder.decode(bytes(memoryview(buffer)[:count]))
            if text:
                return text.encode("utf-8", "surrogatepass")
        cut_off = bool(decoder.getstate()[0])
        decoder.reset()
        return b"\xff" if cut_off else b""
