"""The lake: immutable Parquet objects of stage results, behind a universal path (a local folder, s3://, gs://)."""

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

import polars as pl
from upath import UPath

from stemma.errors import Unavailable
from stemma.failpoints import reach


class LakeUnavailable(Unavailable):
    """The lake cannot be written or read."""

    code, remedy = "lake_unavailable", "Check the disk or bucket of STEMMA_LAKE: space, permissions, connection."


class MissingObject(Unavailable):
    """An object that a stage result names is not in the lake."""

    code, remedy = "lake_object_missing", "Nothing to do: the stage is computed again from the file's bytes."


@dataclass(frozen=True)
class StoredObject:
    """An object that lies in the lake."""

    name: str
    size: int
    """Bytes."""
    modified_at: datetime


class Lake:
    """One folder of objects, `<stage>/<name>.parquet` and `figures/<sha256>`; an object is complete or absent, and never changes."""

    def __init__(self, root: str) -> None:
        self._root = UPath(root)

    def write(self, stage: str, frame: pl.DataFrame) -> str:
        """Store the frame and return the object's name. Raises LakeUnavailable; nothing half is left under the name."""
        name = f"{stage}/{uuid4().hex}.parquet"
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="zstd")
        self._write(name, buffer.getbuffer())
        return name

    def keep_picture(self, sha256: str, data: bytes) -> None:
        """Store a picture under the hash of its bytes; one that is there stays. Raises LakeUnavailable."""
        if not self.holds(_picture(sha256)):
            self._write(_picture(sha256), data)

    def picture(self, sha256: str) -> bytes:
        """The bytes of a picture. Raises MissingObject or LakeUnavailable."""
        return self._read(_picture(sha256))

    def remove_picture(self, sha256: str) -> None:
        """Remove a picture that no document shows any more; one that is gone already is no error. Raises LakeUnavailable."""
        self.remove(_picture(sha256))

    def _write(self, name: str, data: bytes | memoryview) -> None:
        target = self._root / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.protocol not in ("", "file"):
                target.write_bytes(bytes(data))  # an object store shows an object only when it is whole
                return
            partial = target.with_name(f".{target.name}.partial")
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            reach("lake.before_rename")
            partial.rename(target)
        except OSError as error:
            raise LakeUnavailable(f"cannot write {name}: {error.strerror or error}") from error

    def _read(self, name: str) -> bytes:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            raise MissingObject(name) from None
        except OSError as error:
            raise LakeUnavailable(f"cannot read {name}: {error.strerror or error}") from error

    def read(self, name: str, keys: Sequence[str], columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The object's rows whose `key` is one of these, in its order; all columns, or `key` and these.

        Raises MissingObject, also for a damaged object, which is removed, lest it be found again; or LakeUnavailable.
        """
        data = self._read(name)
        try:
            frame = pl.read_parquet(io.BytesIO(data), columns=None if columns is None else ["key", *columns])
        except pl.exceptions.PolarsError as error:
            (self._root / name).unlink(missing_ok=True)
            raise MissingObject(f"{name} is damaged") from error
        return frame.filter(pl.col("key").is_in(list(keys)))

    def holds(self, name: str) -> bool:
        """Whether the object exists."""
        return (self._root / name).exists()

    def size(self, name: str) -> int:
        """Bytes of the object, 0 if there is none."""
        try:
            return (self._root / name).stat().st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise LakeUnavailable(f"cannot look at {name}: {error.strerror or error}") from error

    def objects(self) -> Iterator[StoredObject]:
        """Every object of a stage, with what an interrupted write left behind; no pictures; in no order. Raises LakeUnavailable."""
        try:
            for path in self._root.glob("*/*"):
                if not path.name.endswith((".parquet", ".parquet.partial")):
                    continue
                try:
                    status = path.stat()
                except FileNotFoundError:  # removed since it was listed
                    continue
                yield StoredObject(f"{path.parent.name}/{path.name}", status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))
        except OSError as error:
            raise LakeUnavailable(f"cannot list the lake: {error.strerror or error}") from error

    def remove(self, name: str) -> None:
        """Remove the object; one that is gone is no error. Raises LakeUnavailable."""
        try:
            (self._root / name).unlink(missing_ok=True)
        except OSError as error:
            raise LakeUnavailable(f"cannot remove {name}: {error.strerror or error}") from error


def _picture(sha256: str) -> str:
    return f"figures/{sha256}"
