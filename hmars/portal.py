"""A loop of our own in a thread, for callers that have none or must not block theirs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

Result = TypeVar("Result")


class Portal:
    """Runs awaitables on one loop in one thread, started when it is first needed."""

    def __init__(self) -> None:
        self._portal: BlockingPortal | None = None
        self._thread = ExitStack()
        self._starting = threading.Lock()

    def run(self, call: Callable[[], Awaitable[Result]]) -> Result:
        with self._starting:
            if self._portal is None:
                self._portal = self._thread.enter_context(start_blocking_portal())
        return self._portal.call(call)

    def close(self, last: Callable[[], Awaitable[None]]) -> None:
        """Run `last` on the loop, if there is one, and end the thread."""
        if self._portal is not None:
            self._portal.call(last)
            self._portal = None
            self._thread.close()


class Closing(ABC):
    """Something that is closed when its `with` or `async with` block ends."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def close_sync(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close_sync()
