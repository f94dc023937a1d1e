"""The thread of a client that is not of asyncio: an event loop, and calls into it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Coroutine
from typing import Any, Callable, TypeVar

from .errors import Cancelled, LockdError

__all__ = ["Background", "Stop"]

_T = TypeVar("_T")


class Stop:
    """Gives up calls that wait, from another thread: they raise ``Cancelled``.

    stop = lockd.Stop()
    threading.Timer(5, stop.set).start()
    locks.acquire("my-job", stop=stop)
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._is_set = False
        self._calls: list[Callable[[], object]] = []

    @property
    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """For any thread; not for a signal handler."""
        with self._mutex:
            self._is_set = True
            calls, self._calls = self._calls, []
        for cancel in calls:
            cancel()

    def _attach(self, cancel: Callable[[], object]) -> None:
        with self._mutex:
            if not self._is_set:
                self._calls.append(cancel)
                return
        cancel()

    def _detach(self, cancel: Callable[[], object]) -> None:
        with self._mutex:
            if cancel in self._calls:
                self._calls.remove(cancel)


class Background:
    """Lives for as long as anybody refers to it, a client or what was acquired by it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._mutex = threading.RLock()  # what is collected meanwhile may have something to say
        self._calls: set[concurrent.futures.Future[Any]] = set()
        self._thread = threading.Thread(target=_run, args=(self.loop,), name="lockd", daemon=True)
        self._thread.start()
        self._finish = weakref.finalize(self, self.loop.call_soon_threadsafe, self.loop.stop)
        self._finish.atexit = False  # a process that ends closes its connections anyway

    def call(self, doing: Coroutine[Any, Any, _T], stop: Stop | None = None) -> _T:
        """Does it on the thread, and waits. An exception here, as by Ctrl-C, cancels it there."""
        if os.getpid() != self._pid:
            doing.close()
            raise RuntimeError("a client does not survive fork: make one in the child")
        if self.is_here:
            doing.close()
            raise RuntimeError("the thread of a client cannot wait for itself")
        future = self._submit(doing)
        if stop is not None:
            stop._attach(future.cancel)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Cancelled("the call was cancelled") from None
        except BaseException:
            future.cancel()
            raise
        finally:
            with self._mutex:
                self._calls.discard(future)
            if stop is not None:
                stop._detach(future.cancel)

    def call_soon(self, function: Callable[[], object]) -> None:
        """Does it on the thread, and does not wait. Nothing after the end, or in a child."""
        if os.getpid() != self._pid:
            return
        with self._mutex:
            if self._finish.alive:
                self.loop.call_soon_threadsafe(function)

    @property
    def is_here(self) -> bool:
        """Whether it is the thread that asks: as when what it collects has a ``__del__``."""
        return threading.current_thread() is self._thread

    def close(self, doing: Coroutine[Any, Any, None]) -> None:
        """Cancels all calls, does this as the last one, and ends the thread."""
        self._cancel_all()
        with contextlib.suppress(Cancelled):  # when it was closed before
            self.call(doing)
        with self._mutex:
            self._finish()
        self._cancel_all()
        self._thread.join()

    def _submit(self, doing: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        with self._mutex:
            if not self._finish.alive:
                doing.close()
                raise Cancelled("the client was closed")
            future = asyncio.run_coroutine_threadsafe(doing, self.loop)
            self._calls.add(future)
            return future

    def _cancel_all(self) -> None:
        with self._mutex:
            calls = list(self._calls)
        for future in calls:
            future.cancel()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    # Signals are for the program's own threads.
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    asyncio.set_event_loop(loop)
    loop.set_exception_handler(_report)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(asyncio.sleep(0))  # a release that was just begun says so
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(_last_words(tasks))
        loop.close()


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Leaves out what a call raised whose caller was interrupted, as by Ctrl-C: nobody waits."""
    if not isinstance(context.get("exception"), LockdError):
        loop.default_exception_handler(context)


async def _last_words(tasks: set[asyncio.Task[Any]]) -> None:
    """Lets tasks and connections end that were told to."""
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)
