"""What a long parse has finished so far, in a folder: whoever parses the same bytes by the same recipe goes on from there."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Page = TypeVar("Page")

BATCH_PAGES = 20
"""Pages per batch where a page costs milliseconds; where one costs seconds (recognition), it is a batch by itself."""


class WorkFolder:
    """The finished pages of one document, a JSON record each, in files named by the page that they begin with.

    The folder's name is the key of the work: hash of the bytes, format, recipe. Two processes may write it at once, since
    equal work gives equal files, each of which is complete or absent. Its owner is who gave the job: it removes the folder
    when it has the result. `WorkFolder(None)` keeps nothing.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path

    def finished(self, page: Callable[[Any], Page]) -> list[Page]:
        """The pages that were finished before, from the first on, without a gap; `page` makes one of its record."""
        pages: list[Page] = []
        while self.path is not None and (batch := _read(self.path / _name(len(pages)), page)):
            pages += batch
        return pages

    def n_batches(self) -> int:
        """How many batches were finished: whether a parse that was ended had got anywhere."""
        return 0 if self.path is None else sum(1 for _ in self.path.glob("*.json"))

    def keep(self, records: list[Any], *, first: int) -> None:
        """Keep a batch; `first` is the number of pages before it. A disk that refuses costs the resumption, not the parse."""
        if self.path is None or not records:
            return
        target = self.path / _name(first)
        partial = target.with_suffix(f".{os.getpid()}")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps(records), "ascii")
            partial.rename(target)
        except OSError as error:
            import structlog  # at its first use: a parser's process would start in three times the time

            structlog.get_logger(__name__).warning("Finished pages cannot be kept", folder=str(self.path), reason=error.strerror)


def _name(first: int) -> str:
    return f"{first:06}.json"


def _read(path: Path, page: Callable[[Any], Page]) -> list[Page]:
    """The pages of a batch; none where the file is absent, damaged or of another release: then they are read again."""
    try:
        return [page(record) for record in json.loads(path.read_text("ascii"))]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []
