"""The private copy of a library file."""

import errno
import hashlib
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stemma.errors import DocumentTooLarge, MovedWhileReading, UnreadableFile
from stemma.library import spool as spool_module
from stemma.library.spool import hash_source, spool


def spooled(path: Path, folder: Path, max_bytes: int = 10_000_000):
    return spool(path.parent, os.fsencode(path.name), folder, source_path="the/file", max_bytes=max_bytes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spool").mkdir()
    return tmp_path / "spool"


@given(content=st.binary(max_size=5_000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_copy_and_hash_are_those_of_the_bytes(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("spool")
    original = folder / "original"
    original.write_bytes(content)
    copy = spooled(original, folder)
    assert copy.path.read_bytes() == content
    assert copy.content_hash == hashlib.sha256(content).hexdigest()
    assert copy.stat.size == len(content)
    assert hash_source(original.parent, os.fsencode(original.name), "x")[0] == copy.content_hash


def test_a_copy_stays_what_it_was(tmp_path, folder):
    original = tmp_path / "file"
    original.write_text("before")
    copy = spooled(original, folder)
    original.write_text("after and longer")
    assert copy.path.read_text() == "before"


def test_a_file_modified_just_now_is_not_stable(tmp_path, folder):
    original = tmp_path / "file"
    original.write_text("new")
    assert not spooled(original, folder).stable
    os.utime(original, (time.time() - 60, time.time() - 60))
    assert spooled(original, folder).stable


def test_the_clocks_of_a_file_are_utc(tmp_path, folder):
    original = tmp_path / "file"
    original.write_text("x")
    os.utime(original, (1_000_000_000, 1_000_000_000))
    copy = spooled(original, folder)
    assert copy.modified_at.isoformat() == "2001-09-09T01:46:40+00:00"
    assert copy.created_at is None or abs(copy.created_at.timestamp() - time.time()) < 3600


def test_a_pipe_is_refused_without_waiting(tmp_path, folder):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(MovedWhileReading, match="no longer a regular file"):
        spooled(pipe, folder)


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_links_and_folders_are_refused(tmp_path, folder, kind):
    target = tmp_path / "target"
    if kind == "link":
        (tmp_path / "real").write_text("x")
        target.symlink_to(tmp_path / "real")
    else:
        target.mkdir()
    with pytest.raises(MovedWhileReading):
        spooled(target, folder)


def test_a_file_that_is_gone_has_moved(tmp_path, folder):
    with pytest.raises(MovedWhileReading):
        spooled(tmp_path / "nowhere", folder)


def test_a_large_file_is_refused_before_it_is_read(tmp_path, folder, monkeypatch):
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(10_000_000_001)
    monkeypatch.setattr(spool_module, "_read", lambda *_: pytest.fail("read"))
    with pytest.raises(DocumentTooLarge):
        spooled(large, folder, max_bytes=10_000_000_000)


def test_a_file_that_changes_during_the_copy_has_moved(tmp_path, folder, monkeypatch):
    original = tmp_path / "file"
    original.write_bytes(b"a" * 3_000_000)
    read = spool_module._read

    def read_and_write(descriptor: int, source_path: str) -> bytes:
        piece = read(descriptor, source_path)
        with original.open("r+b") as file:
            file.write(b"b")
        return piece

    monkeypatch.setattr(spool_module, "_read", read_and_write)
    with pytest.raises(MovedWhileReading):
        spooled(original, folder)


def test_a_file_that_grows_without_end_is_not_followed(tmp_path):
    growing = tmp_path / "log"
    growing.write_bytes(b"x" * 2_000_000)
    stop = threading.Event()

    def grow() -> None:
        with growing.open("ab", buffering=0) as file:
            while not stop.is_set():
                file.write(b"x" * 10_000)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        with pytest.raises(MovedWhileReading):
            for _ in range(100):
                hash_source(tmp_path, b"log", "log")
    finally:
        stop.set()
        writer.join()


def test_a_failed_copy_leaves_nothing_behind(tmp_path, folder, monkeypatch):
    original = tmp_path / "file"
    original.write_text("x")

    def refuse(_: int, __: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(spool_module.os, "read", refuse)
    with pytest.raises(UnreadableFile) as caught:
        spooled(original, folder)
    assert "Input/output error" in caught.value.message and str(tmp_path) not in caught.value.message
    assert list(folder.iterdir()) == []
