"""Server-sent events: work that blocks, told to a client while it happens, and ended when the client goes."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator

import anyio
import anyio.to_thread
from anyio import CapacityLimiter
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from stemma.errors import StemmaError
from stemma.service.problems import problem_of

MEDIA_TYPE = "text/event-stream"

Told = tuple[str, BaseModel]
"""The name of an event and its data."""


def encoded(name: str, data: BaseModel) -> bytes:
    """One event on the wire. Its JSON is one line: nothing in it can end the event."""
    return f"event: {name}\ndata: {data.model_dump_json()}\n\n".encode()


async def event_stream(work: Callable[[], Generator[Told]], *, limiter: CapacityLimiter, request_id: str | None) -> StreamingResponse:
    """A response that tells the events of `work`, which runs in threads of its own.

    The first event is waited for, so that what is refused at once is refused with a status. What fails later is told as the event
    `error`, a problem, and is the last. When the client goes, the generator is closed where it stands.
    """
    events = work()
    first = await anyio.to_thread.run_sync(next, events, None, limiter=limiter)

    async def told() -> AsyncGenerator[bytes]:
        event = first
        try:
            while event is not None:
                yield encoded(*event)
                event = await anyio.to_thread.run_sync(next, events, None, limiter=limiter)
        except StemmaError as error:
            yield encoded("error", problem_of(error, request_id=request_id))
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(events.close, limiter=limiter)

    return StreamingResponse(_closing(told()), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


async def _closing(pieces: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """The pieces; the generator behind them is closed as soon as nobody takes them any more, not when it is collected."""
    try:
        async for piece in pieces:
            yield piece
    finally:
        await pieces.aclose()
