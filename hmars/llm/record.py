"""Who spent what: usage per role, also of calls that failed, and a history of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from hmars.errors import CallFailed, EndpointError, ModelError
from hmars.llm.clock import Clock, SystemClock
from hmars.llm.contract import CallLog, ChatModel, ChatReply, ChatRequest
from hmars.model import CallRecord, Usage


@dataclass(frozen=True)
class ToldLog:
    """A log that tells someone else of each call as well."""

    log: CallLog
    tell: Callable[[CallRecord], None]

    async def log_call(self, record: CallRecord) -> None:
        await self.log.log_call(record)
        self.tell(record)


class Recorder:
    """Adds up the usage of one run or one question, and hands each finished call to the log."""

    def __init__(self, log: CallLog | None = None, clock: Clock | None = None) -> None:
        self._log = log
        self._clock = clock or SystemClock()
        self._usage: dict[str, Usage] = {}

    @property
    def usage(self) -> dict[str, Usage]:
        """By role, in order of first use. A copy."""
        return dict(self._usage)

    def wrap(self, inner: ChatModel, model: str) -> ChatModel:
        """`inner`, whose calls are recorded here under the name `model`."""
        return _Recorded(inner, self, model, self._clock)

    def add(self, role: str, usage: Usage) -> None:
        self._usage[role] = self._usage.get(role, Usage()) + usage

    async def finished(self, record: CallRecord) -> None:
        self.add(record.role, record.usage)
        if self._log is not None:
            await self._log.log_call(record)


class _Recorded:
    def __init__(self, inner: ChatModel, recorder: Recorder, model: str, clock: Clock) -> None:
        self._inner = inner
        self._recorder = recorder
        self._model = model
        self._clock = clock

    async def complete(self, request: ChatRequest) -> ChatReply:
        start = self._clock.monotonic()
        try:
            reply = await self._inner.complete(request)
        except asyncio.CancelledError:
            # What it cost is not known, and nothing may be awaited here.
            self._recorder.add(request.role, Usage(paths={"cancelled": 1}))
            raise
        except ModelError as error:
            usage = error.usage or Usage()
            known = isinstance(error, CallFailed | EndpointError)
            await self._finish(request, usage, start, error.problem if known else "failed")
            raise
        await self._finish(request, reply.usage, start, "cached" if reply.from_cache else "ok")
        return reply

    async def _finish(self, request: ChatRequest, usage: Usage, start: float, outcome: str) -> None:
        record = CallRecord(
            ts=datetime.fromtimestamp(self._clock.wall(), UTC).isoformat(timespec="milliseconds"),
            role=request.role,
            model=self._model,
            prompt=str(request.prompt),
            usage=usage,
            seconds=round(self._clock.monotonic() - start, 3),
            outcome=outcome,
        )
        await self._recorder.finished(record)
