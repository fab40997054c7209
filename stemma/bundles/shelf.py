"""Where bundles lie: the reserved folder of the library, or any universal path. A bundle is there whole or not at all."""

import contextlib
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

from upath import UPath

from stemma.bundles.errors import BundlesBusy, BundlesUnavailable, InvalidBundleName, UnknownBundle
from stemma.failpoints import reach
from stemma.library.walk import EXPORTS_FOLDER
from stemma.settings import Settings

SUFFIX, LOCKED_SUFFIX = ".zip", ".locked.zip"
PARTIAL = ".partial"
MAX_SAME_MINUTE = 1_000

_LABEL = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class Shelf:
    """The bundles at one place. On a local disk a bundle is written under a hidden name, synced and renamed; an object store shows
    an object when it is complete."""

    def __init__(self, root: str) -> None:
        self._root = UPath(root)
        self.is_local = self._root.protocol in ("", "file", "local")
        self._folder = Path(str(self._root.path)) if self.is_local else Path()

    def __str__(self) -> str:
        return str(self._folder if self.is_local else self._root)

    def names(self) -> list[str]:
        """What may be bundles, by name; hidden files and folders are none. Nothing, if the place does not exist yet."""
        with _explained(self):
            try:
                found = [path.name for path in self._root.iterdir() if path.name.endswith(SUFFIX) and path.is_file()]
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted(name for name in found if not name.startswith("."))

    @contextmanager
    def open(self, name: str) -> Generator[IO[bytes]]:
        """The bundle's bytes, seekable. Raises UnknownBundle or BundlesUnavailable."""
        if "/" in name or "\\" in name or "\0" in name or name.startswith("."):
            raise UnknownBundle(f"{name!r} is no name of a bundle")
        try:
            with _explained(self):
                file = (self._root / name).open("rb")
        except UnknownBundle:
            raise UnknownBundle(f"{name} does not lie in {self}") from None
        with file:
            yield cast("IO[bytes]", file)

    def size(self, name: str) -> int:
        """Bytes."""
        with _explained(self):
            return (self._root / name).stat().st_size

    def remove(self, name: str) -> None:
        """Remove a bundle; one that is gone already is no error. Raises BundlesUnavailable."""
        with contextlib.suppress(UnknownBundle), _explained(self):
            (self._root / name).unlink()

    def require_room(self, n_bytes: int) -> None:
        """Raises BundlesUnavailable when the local disk has less free; of a bucket nothing is known."""
        if self.is_local:
            require_room(self._folder, n_bytes)

    @contextmanager
    def writing(self) -> Generator[None]:
        """Be the only writer of a local place; what killed writers left is swept first. Raises BundlesBusy."""
        if not self.is_local:
            yield
            return
        with _explained(self):
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BundlesBusy(f"another export is writing to {self}") from None
            for leftover in self._folder.glob(f".*{PARTIAL}"):
                leftover.unlink(missing_ok=True)
            yield
        finally:
            os.close(descriptor)

    def free_name(self, corpus: str, moment: datetime, label: str | None, *, locked: bool) -> str:
        """A name that no bundle here has: the corpus, the minute (UTC), the label, and a number from the second of a minute on.

        Raises InvalidBundleName.
        """
        if label is not None and not _LABEL.fullmatch(label):
            raise InvalidBundleName(f"{label!r} cannot be part of a file name")
        stem = f"stemma-{corpus}-{moment:%Y%m%d-%H%M}" + (f"-{label}" if label else "")
        for number in range(1, MAX_SAME_MINUTE):
            name = stem + (f"-{number}" if number > 1 else "") + (LOCKED_SUFFIX if locked else SUFFIX)
            if not (self._root / name).exists():
                return name
        raise BundlesBusy(f"{MAX_SAME_MINUTE} bundles were made in this minute")

    @contextmanager
    def creating(self, name: str) -> Generator[IO[bytes]]:
        """A stream into the new bundle, which appears under its name when the block ends well, and not at all otherwise.

        Within `writing`. Raises BundlesUnavailable; never replaces anything.
        """
        try:
            with self._creating_file(name) if self.is_local else self._creating_object(name) as file:
                yield file
        except OSError as error:
            raise BundlesUnavailable(f"{self}: {error.strerror or error}") from error

    @contextmanager
    def _creating_file(self, name: str) -> Generator[IO[bytes]]:
        partial, target = self._folder / f".{name}{PARTIAL}", self._folder / name
        try:
            with partial.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            reach("export.before_rename")
            _appear(partial, target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        reach("export.renamed")

    @contextmanager
    def _creating_object(self, name: str) -> Generator[IO[bytes]]:
        path = self._root / name
        file = cast("Any", path.fs).open(path.path, "wb", autocommit=False)
        try:
            yield file
            file.close()
            reach("export.before_rename")
            file.commit()
        except BaseException:
            with contextlib.suppress(OSError, ValueError, NotImplementedError):
                file.discard()
            raise


def exports_of(settings: Settings) -> Shelf:
    """The reserved folder of the library."""
    return Shelf(str(settings.library / EXPORTS_FOLDER))


def require_room(folder: Path, n_bytes: int) -> None:
    """Raises BundlesUnavailable when the disk of the folder, or of what will hold it, has less free."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise BundlesUnavailable(f"{n_bytes:,} bytes are needed in {folder}, {free:,} are free")


def _appear(partial: Path, target: Path) -> None:
    """Give the file its name unless something has it: a link fails where a rename would replace."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links; other writers of this place wait for its lock
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        partial.rename(target)
    else:
        partial.unlink()


@contextmanager
def _explained(shelf: Shelf) -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise UnknownBundle(f"it does not lie in {shelf}") from error
    except OSError as error:
        raise BundlesUnavailable(f"{shelf}: {error.strerror or error}") from error
