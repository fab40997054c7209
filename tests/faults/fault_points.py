"""Fail points as tests of one process use them: armed, waited for, let go on."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from stemma.failpoints import FailPoint

LIMIT_S = 120


@dataclass(frozen=True)
class FailPoints:
    """The folder that arms them."""

    folder: Path

    def arm(self, point: FailPoint, action: str) -> None:
        """What happens to whoever reaches the point next."""
        (self.folder / point).write_text(action)

    def disarm(self, point: FailPoint) -> None:
        """Nothing happens there."""
        (self.folder / point).unlink(missing_ok=True)

    def fired(self, point: FailPoint) -> bool:
        """Whether it struck."""
        return (self.folder / f"{point}.fired").exists()

    @contextmanager
    def paused(self, point: FailPoint, work: Callable[[], object]) -> Generator[None]:
        """The work, in a thread, is held at the point for the time of the block; afterwards it is ended, and what it raised is raised."""
        raised: list[BaseException] = []

        def worked() -> None:
            try:
                work()
            except BaseException as error:
                raised.append(error)

        self.arm(point, "pause")
        thread = Thread(target=worked)
        thread.start()
        deadline = time.monotonic() + LIMIT_S
        while not (self.folder / f"{point}.reached").exists():
            assert thread.is_alive() and time.monotonic() < deadline, f"{point} was not reached: {raised}"
            thread.join(0.005)
        (self.folder / f"{point}.reached").unlink()
        try:
            yield
        finally:
            (self.folder / f"{point}.go").touch()
            thread.join(LIMIT_S)
        assert not thread.is_alive(), f"the work after {point} does not end"
        if raised:
            raise raised[0]
