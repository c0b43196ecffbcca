"""Connections to ports of a node over the standard input and output of one program that runs there.

Both sides are here: `RelayServer` runs on the node (this module and `listeners` travel there as one program), `RelayClient` where the
connections are wanted. One program carries all connections to a node, because each program is a step of the scheduler's.

A frame is a kind, the connection's number, the payload's length, the payload, and a newline: srun holds output back until a newline.
A side sends at most `WINDOW` bytes of a connection before the other side has read them, so that a slow connection does not hold up
the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import sys
from typing import Any, Awaitable, Callable, Dict, Optional, Set

from .listeners import PortClosedError, find_addresses, read_listeners

_OPEN, _READY, _REFUSED, _DATA, _END, _CLOSE, _READ, _PING = b"ORNDECWP"
_KINDS = frozenset((_OPEN, _READY, _REFUSED, _DATA, _END, _CLOSE, _READ, _PING))
_HEADER = struct.Struct(">BII")
_MAX_FRAME = 1 << 16

WINDOW = 1 << 18
PING_S = 5.0
"""Seconds between two signs of life of the client."""
SILENCE_S = 30.0
"""Seconds without a sign of life after which the server ends."""

CONNECT_S = 10.0
"""Seconds for a connection to a program."""


class ChannelClosedError(Exception):
    """The connection was closed or broke; the text says why, if that is known."""


class Channel:
    """One connection."""

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self.number = number
        self._received = bytearray()
        self._has_ended = False
        self._problem: Optional[str] = None
        self._credit = WINDOW
        self._changed = asyncio.Event()
        self._may_send = asyncio.Event()
        self._may_send.set()

    @property
    def is_open(self) -> bool:
        """Whether both directions are open and no data is unread."""
        return self._problem is None and not self._has_ended and not self._received

    async def read(self, limit: int = _MAX_FRAME) -> bytes:
        """The next bytes; empty at the end.

        Raises:
            ChannelClosedError: The connection broke.
        """
        while not self._received:
            if self._has_ended:
                return b""
            if self._problem is not None:
                raise ChannelClosedError(self._problem)
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self._received[:limit])
        del self._received[:limit]
        if self._problem is None:
            self._link.send(_READ, self.number, struct.pack(">I", len(data)))
        return data

    async def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            ChannelClosedError: The other side has closed the connection.
        """
        view = memoryview(data)
        while view:
            while self._credit <= 0 and self._problem is None:
                self._may_send.clear()
                await self._may_send.wait()
            if self._problem is not None:
                raise ChannelClosedError(self._problem)
            size = min(len(view), self._credit, _MAX_FRAME)
            self._credit -= size
            self._link.send(_DATA, self.number, bytes(view[:size]))
            view = view[size:]
            await self._link.drain()

    def end(self) -> None:
        """Say that no more bytes follow."""
        if self._problem is None:
            self._link.send(_END, self.number)

    def close(self, reason: str = "") -> None:
        """Close both directions."""
        if self._problem is None:
            self._link.send(_CLOSE, self.number, reason.encode("utf-8")[:1000])
            self.set_closed("the connection was closed")
        self._link.channels.pop(self.number, None)

    def set_closed(self, reason: str) -> None:
        """The other side has closed both directions."""
        self._problem = self._problem or reason
        self._changed.set()
        self._may_send.set()

    def receive(self, kind: int, payload: bytes) -> None:
        """Take a frame of this connection in."""
        if kind == _DATA:
            self._received += payload
        elif kind == _END:
            self._has_ended = True
        elif kind == _READ:
            self._credit += struct.unpack(">I", payload)[0]
            self._may_send.set()
        elif kind == _CLOSE:
            self.set_closed(payload.decode("utf-8", "replace") or "the other side closed it")
        self._changed.set()


class Link:
    """Frames over a pair of pipes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.channels: Dict[int, Channel] = {}
        self._reader = reader
        self._writer = writer
        self._draining = asyncio.Lock()

    def send(self, kind: int, number: int, payload: bytes = b"") -> None:
        """Send a frame; a broken pipe is noticed by who reads."""
        if not self._writer.is_closing():
            self._writer.write(_HEADER.pack(kind, number, len(payload)) + payload + b"\n")

    async def drain(self) -> None:
        """Wait until the pipe takes more."""
        async with self._draining:  # in old Pythons only one may wait
            with contextlib.suppress(OSError):
                await self._writer.drain()

    async def receive(self) -> Optional[Any]:
        """The next frame as kind, number and payload; None at the end, which is also what isn't a frame."""
        try:
            kind, number, length = _HEADER.unpack(await self._reader.readexactly(_HEADER.size))
            if kind not in _KINDS or length > _MAX_FRAME:
                return None
            payload = await self._reader.readexactly(length + 1)
        except (asyncio.IncompleteReadError, OSError):
            return None
        return kind, number, payload[:-1]

    def close_all(self, reason: str) -> None:
        """Nothing passes any more."""
        for channel in self.channels.values():
            channel.set_closed(reason)
        self.channels.clear()
        self._writer.close()


class PortRefusedError(Exception):
    """The node didn't connect; the text is ``nothing_listens``, ``other_users_port`` or an error's message."""


class RelayClient:
    """Opens connections through a running `RelayServer`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._link = Link(reader, writer)
        self._opening: Dict[int, asyncio.Future[None]] = {}
        self._count = 0
        self._has_ended = False
        self._tasks = [asyncio.ensure_future(self._read()), asyncio.ensure_future(self._ping())]

    @property
    def is_alive(self) -> bool:
        """Whether the program on the node runs, as far as is known."""
        return not self._has_ended

    async def open(self, port: int) -> Channel:
        """Connect to a port.

        Raises:
            PortRefusedError: The node didn't connect.
            ChannelClosedError: The program on the node has ended.
        """
        if self._has_ended:
            raise ChannelClosedError("the program on the node has ended")
        self._count += 1
        channel = self._link.channels[self._count] = Channel(self._link, self._count)
        opened = asyncio.get_event_loop().create_future()
        self._opening[channel.number] = opened
        self._link.send(_OPEN, channel.number, struct.pack(">I", port))
        try:
            await opened
        except BaseException:
            channel.close()
            raise
        finally:
            self._opening.pop(channel.number, None)
        return channel

    async def close(self) -> None:
        """End the program on the node: its input ends."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._end()

    def _end(self) -> None:
        self._has_ended = True
        for opened in self._opening.values():
            if not opened.done():
                opened.set_exception(ChannelClosedError("the program on the node has ended"))
        self._link.close_all("the program on the node has ended")

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING_S)
            self._link.send(_PING, 0)

    async def _read(self) -> None:
        while True:
            frame = await self._link.receive()
            if frame is None:
                break
            kind, number, payload = frame
            opened = self._opening.get(number)
            if opened is not None and not opened.done():
                if kind == _READY:
                    opened.set_result(None)
                    continue
                if kind == _REFUSED:
                    opened.set_exception(PortRefusedError(payload.decode("utf-8", "replace")))
                    continue
            channel = self._link.channels.get(number)
            if channel is not None:
                channel.receive(kind, payload)
        self._tasks[1].cancel()
        self._end()


class RelayServer:
    """Connects to ports of this machine on which programs of this user listen."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._link = Link(reader, writer)
        self._tasks: Set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until the input ends, or no sign of life has come for a while."""
        while True:
            try:
                frame = await asyncio.wait_for(self._link.receive(), SILENCE_S)
            except asyncio.TimeoutError:
                frame = None
            if frame is None:
                break
            kind, number, payload = frame
            if kind == _OPEN:
                channel = self._link.channels[number] = Channel(self._link, number)
                port = struct.unpack(">I", payload)[0]
                task = asyncio.ensure_future(self._serve(channel, port))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            elif number in self._link.channels:
                self._link.channels[number].receive(kind, payload)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, channel: Channel, port: int) -> None:
        try:
            reader, writer = await connect_own(port)
        except (PortClosedError, OSError) as error:
            text = str(error) or type(error).__name__
            if isinstance(error, PortClosedError):
                text = "other_users_port" if error.is_taken else "nothing_listens"
            elif isinstance(error, ConnectionRefusedError):
                text = "nothing_listens"
            self._link.send(_REFUSED, channel.number, text.encode("utf-8")[:1000])
            self._link.channels.pop(channel.number, None)
            return
        self._link.send(_READY, channel.number)
        try:
            await _join(channel, reader, writer)
            channel.close()
        except (ChannelClosedError, OSError) as error:
            channel.close(str(error))
        finally:
            writer.close()


async def connect_own(port: int) -> Any:
    """Connect to a port on which a program of this user listens; a reader and a writer.

    Raises:
        PortClosedError: There is none.
        OSError: It does not take the connection.
    """
    problem: OSError = ConnectionRefusedError()
    for address in find_addresses(port, os.getuid(), read_listeners()):
        connecting = asyncio.open_connection(address, port)
        try:
            return await asyncio.wait_for(connecting, CONNECT_S)
        except asyncio.TimeoutError:
            problem = OSError("the program does not take the connection")
        except OSError as error:
            problem = error
    raise problem


async def _join(
    channel: Channel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Carry bytes both ways until both directions have ended, or the client has closed the connection."""

    async def up() -> None:
        while True:
            data = await channel.read()
            if not data:
                break
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def down() -> None:
        while True:
            data = await reader.read(_MAX_FRAME)
            if not data:
                break
            await channel.write(data)
        channel.end()

    directions = [asyncio.ensure_future(up()), asyncio.ensure_future(down())]
    try:
        await asyncio.gather(*directions)
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)


async def serve_pipes(greeting: str) -> None:
    """Serve over standard input and output, after a line that says that the program runs."""
    loop = asyncio.get_event_loop()
    reader = asyncio.StreamReader(limit=1 << 18)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    flow: Callable[[], Any] = asyncio.streams.FlowControlMixin
    transport, protocol = await loop.connect_write_pipe(flow, os.fdopen(os.dup(1), "wb"))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    writer.write(greeting.encode("ascii") + b"\n")
    await RelayServer(reader, writer).run()


def run_relay(serve: Callable[[str], Awaitable[None]] = serve_pipes) -> None:
    """The program: its argument is the greeting."""
    asyncio.new_event_loop().run_until_complete(serve(sys.argv[1]))
