"""Coroutines in tests: Playwright's loop counts as running in the main thread from the first test with a browser to the last test of the process."""

from collections.abc import Awaitable, Callable

from anyio.from_thread import start_blocking_portal


def run_in_own_loop(work: Callable[[], Awaitable[None]]) -> None:
    """Run `work` to its end in a thread that no browser has touched; what it raises is raised here."""
    with start_blocking_portal() as portal:
        portal.call(work)
