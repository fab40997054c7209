"""Places: whether what is known of a path can be held against the disk that is there now."""

import os
import stat
from pathlib import Path


class Places:
    """Which folders of the library exist, and on which device; each is looked at once."""

    def __init__(self, library: Path) -> None:
        self._library = library
        self._found: dict[bytes, tuple[bool, int | None]] = {b"": self._look_at(library.resolve(), above=None)}

    def device(self, folder: bytes) -> int | None:
        """Of the nearest folder at or above this one that exists; links do not count. None if it cannot be told."""
        names = folder.split(b"/") if folder else []
        exists, device = self._found[b""]
        for depth in range(1, len(names) + 1):
            path = b"/".join(names[:depth])
            if path not in self._found:
                folder_at = self._library / os.fsdecode(path)
                self._found[path] = self._look_at(folder_at, above=device) if exists else (False, device)
            exists, device = self._found[path]
        return device

    @staticmethod
    def _look_at(folder: Path, *, above: int | None) -> tuple[bool, int | None]:
        try:
            found = folder.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False, above
        except OSError:
            return False, None
        return (True, found.st_dev) if stat.S_ISDIR(found.st_mode) else (False, above)
