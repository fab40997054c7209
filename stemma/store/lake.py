"""The lake: immutable Parquet objects of stage results, behind a universal path (a local folder, s3://, gs://)."""

import io
import os
from collections.abc import Sequence
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


class Lake:
    """One folder of objects `<stage>/<name>.parquet`; an object is complete or absent, and never changes."""

    def __init__(self, root: str) -> None:
        self._root = UPath(root)

    def write(self, stage: str, frame: pl.DataFrame) -> str:
        """Store the frame and return the object's name. Raises LakeUnavailable; nothing half is left under the name."""
        name = f"{stage}/{uuid4().hex}.parquet"
        target = self._root / name
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="zstd")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.protocol not in ("", "file"):
                target.write_bytes(buffer.getvalue())  # an object store shows an object only when it is whole
                return name
            partial = target.with_name(f".{target.name}.partial")
            with partial.open("wb") as file:
                file.write(buffer.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            reach("lake.before_rename")
            partial.rename(target)
        except OSError as error:
            raise LakeUnavailable(f"cannot write {name}: {error.strerror or error}") from error
        return name

    def read(self, name: str, keys: Sequence[str], columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The object's rows whose `key` is one of these, in its order; all columns, or `key` and these.

        Raises MissingObject, also for a damaged object, which is removed, lest it be found again; or LakeUnavailable.
        """
        try:
            data = (self._root / name).read_bytes()
        except FileNotFoundError:
            raise MissingObject(name) from None
        except OSError as error:
            raise LakeUnavailable(f"cannot read {name}: {error.strerror or error}") from error
        try:
            frame = pl.read_parquet(io.BytesIO(data), columns=None if columns is None else ["key", *columns])
        except pl.exceptions.PolarsError as error:
            (self._root / name).unlink(missing_ok=True)
            raise MissingObject(f"{name} is damaged") from error
        return frame.filter(pl.col("key").is_in(list(keys)))

    def holds(self, name: str) -> bool:
        """Whether the object exists."""
        return (self._root / name).exists()
