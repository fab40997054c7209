"""A library that changes: seeded texts, and seeded operations of a person with an editor and a file manager.

Every sentence holds NEEDLE, so that every chunk does, whatever the chunk size: one query finds all that is live.
"""

import hashlib
import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

NEEDLE = "needle"
WORKSPACES = ("atlas", "notes")
ATTIC = "attic"
FOLDERS = ("", "a", "a/b", "c")
_WORDS = [
    "river",
    "stone",
    "lantern",
    "harbour",
    "willow",
    "copper",
    "meadow",
    "anvil",
    "thistle",
    "orchard",
    "pebble",
    "glacier",
    "timber",
    "saddle",
    "compass",
    "ember",
    "quarry",
    "velvet",
    "beacon",
    "marble",
    "falcon",
    "cedar",
    "tunnel",
    "bramble",
]


@dataclass
class Library:
    """A folder on disk, and what happened to it."""

    root: Path
    random: random.Random
    versions: dict[str, list[bytes]] = field(default_factory=dict)
    """source path -> every content it ever had, in order."""
    disturbed: set[str] = field(default_factory=set)
    """Paths that were ever deleted, moved away, emptied or broken: a reader may find nothing there."""
    kept_out: dict[str, str] = field(default_factory=dict)
    """source path -> sha256 of the bytes that were deleted while the file stays."""
    ever_kept_out: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    _clock: int = 0

    @property
    def paths(self) -> list[str]:
        """The files that lie in the library now, sorted."""
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())

    @property
    def movable(self) -> list[str]:
        """Files that an operation may take: neither a workspace's anchor nor one that was deleted while its file stays."""
        return [path for path in self.paths if not path.endswith("anchor.md") and path not in self.kept_out]

    @property
    def folders(self) -> list[str]:
        """Folders below a workspace that an operation may take whole."""
        folders = sorted({path.rpartition("/")[0] for path in self.movable if path.count("/") >= 2})
        return [folder for folder in folders if not any(path.startswith(f"{folder}/") for path in self.kept_out)]

    def keep_out(self, path: str, content_hash: str) -> None:
        """The document is deleted, its file stays."""
        self.kept_out[path] = content_hash
        self.ever_kept_out.add(path)

    def write(self, path: str, content: bytes) -> None:
        """Write a file whose mtime lies in the past and differs from that of every other."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        new = self.root.parent / "being_written"
        new.write_bytes(content)
        self._settle(new)
        if content == b"" or content.startswith(b"%PDF"):
            self.disturbed.add(path)
        self.versions.setdefault(path, []).append(content)  # before a reader can meet it
        new.replace(target)

    def _settle(self, path: Path) -> None:
        self._clock += 1
        mtime_ns = time.time_ns() - 3_600_000_000_000 + self._clock * 1_000_000
        os.utime(path, ns=(mtime_ns, mtime_ns))

    def move(self, old: str, new: str) -> None:
        """Rename a file."""
        self.disturbed |= {old, new}
        self.versions.setdefault(new, []).append((self.root / old).read_bytes())
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)

    def remove(self, path: str) -> None:
        """Delete a file."""
        self.disturbed.add(path)
        (self.root / path).unlink(missing_ok=True)

    def new_path(self) -> str:
        """A path that no file ever had."""
        folder = "/".join(part for part in (self.random.choice(WORKSPACES), self.random.choice(FOLDERS)) if part)
        return f"{folder}/{self.random.choice(_WORDS)}-{self.random.randrange(10_000)}.{self.random.choice(['md', 'txt', 'md'])}"

    def begin(self, n_files: int = 5) -> None:
        """Some files, and in each workspace one that always stays: an emptied workspace is never pruned."""
        for workspace in WORKSPACES:
            self.write(f"{workspace}/anchor.md", self.text())
        for _ in range(n_files):
            self.write(self.new_path(), self.text())
        self.fill_attic()

    def fill_attic(self) -> str:
        """Files in a workspace that has no anchor: it may be emptied, and then waits for an operator."""
        for number in range(2):
            self.write(f"{ATTIC}/box-{number}-{self.random.randrange(10_000)}.md", self.text())
        return "filled"

    def clear_attic(self) -> str:
        """Empty it; returns nothing where it is empty."""
        found = [path for path in self.movable if path.startswith(f"{ATTIC}/")]
        for path in found:
            self.remove(path)
        return "emptied" if found else ""

    def text(self) -> bytes:
        """A small Markdown text. Headings and sentences are few, so that vectors are often found in the cache."""
        draw = self.random
        parts = [f"# The {NEEDLE} of the {draw.choice(_WORDS)}"]
        for _ in range(draw.randrange(1, 4)):
            if draw.random() < 0.4:
                parts.append(f"## A {NEEDLE} and its {draw.choice(_WORDS)}")
            parts.append(" ".join(self._sentence() for _ in range(draw.randrange(1, 5))))
        return ("\n\n".join(parts) + "\n").encode()

    def _sentence(self) -> str:
        return f"This {NEEDLE} is the {self.random.choice(_WORDS)} number {self.random.randrange(3)}."

    def edited(self, content: bytes) -> bytes:
        """The text with one paragraph more, less or other; never the same bytes as any file before it."""
        paragraphs = content.decode().strip().split("\n\n")
        stamp = f"The {NEEDLE} was revised {self.random.randrange(10**9)} times."
        match self.random.randrange(3):
            case 0:
                paragraphs.insert(self.random.randrange(1, len(paragraphs) + 1), stamp)
            case 1 if len(paragraphs) > 2:
                paragraphs[self.random.randrange(1, len(paragraphs))] = stamp
            case _:
                paragraphs[-1] += f" {stamp}"
        return ("\n\n".join(paragraphs) + "\n").encode()

    # What a person does. Each picks its file itself and does nothing where there is none.

    def add(self) -> str:
        path = self.new_path()
        self.write(path, self.text())
        return path

    def edit(self) -> str:
        path = self.random.choice(self.paths)
        self.write(path, self.edited(self._text_of(path)))
        self.kept_out.pop(path, None)  # other bytes bring it back
        return path

    def revert(self) -> str:
        path = self.random.choice([path for path in self.paths if path not in self.kept_out])
        self.write(path, self.random.choice([content for content in self.versions[path] if content.startswith(b"#")] or [self.text()]))
        return path

    def rename(self) -> str:
        old = self.random.choice(self.movable or [self.add()])
        new = f"{old.rpartition('/')[0]}/renamed-{self.random.randrange(10_000)}.{old.rpartition('.')[2]}"
        self.move(old, new)
        return f"{old} -> {new}"

    def move_away(self) -> str:
        old, new = self.random.choice(self.movable or [self.add()]), self.new_path()
        self.move(old, new)
        return f"{old} -> {new}"

    def copy(self) -> str:
        old = self.random.choice([path for path in self.paths if path not in self.kept_out])
        new = self.new_path()
        self.write(new, (self.root / old).read_bytes())
        return f"{old} -> {new}"

    def delete(self) -> str:
        if not self.movable:
            return "nothing"
        path = self.random.choice(self.movable)
        self.remove(path)
        return path

    def move_folder(self) -> str:
        if not (folders := self.folders):
            return "nothing"
        old = self.random.choice(folders)
        new = f"{self.random.choice(WORKSPACES)}/moved-{self.random.randrange(10_000)}"
        for path in self.paths:
            if path.startswith(f"{old}/"):
                self.disturbed |= {path, new + path.removeprefix(old)}
                self.versions.setdefault(new + path.removeprefix(old), []).append((self.root / path).read_bytes())
        (self.root / old).rename(self.root / new)
        return f"{old}/ -> {new}/"

    def delete_folder(self) -> str:
        if not (folders := self.folders):
            return "nothing"
        folder = self.random.choice(folders)
        self.disturbed |= {path for path in self.paths if path.startswith(f"{folder}/")}
        shutil.rmtree(self.root / folder)
        return f"{folder}/"

    def break_file(self) -> str:
        path = self.random.choice(self.movable or [self.add()])
        self.write(path, b"%PDF-1.7\n" + f"this is none, number {self.random.randrange(10**9)}\n".encode())
        return path

    def empty(self) -> str:
        path = self.random.choice(self.movable or [self.add()])
        self.write(path, b"")
        return path

    def _text_of(self, path: str) -> bytes:
        content = (self.root / path).read_bytes()
        return content if content.startswith(b"#") else self.text()


FILE_OPERATIONS: dict[Callable[[Library], str], int] = {
    Library.add: 4,
    Library.edit: 8,
    Library.revert: 2,
    Library.rename: 3,
    Library.move_away: 2,
    Library.copy: 2,
    Library.delete: 3,
    Library.move_folder: 1,
    Library.delete_folder: 1,
    Library.break_file: 1,
    Library.empty: 1,
}
"""What a person does to files, and how often."""


def change(library: Library) -> None:
    """One operation, drawn by weight; it is noted in `done`."""
    operation = library.random.choices(list(FILE_OPERATIONS), list(FILE_OPERATIONS.values()))[0]
    library.done.append(f"{operation.__name__}: {operation(library)}")


def text_hash(content: bytes) -> str:
    """sha256 (hex)."""
    return hashlib.sha256(content).hexdigest()
