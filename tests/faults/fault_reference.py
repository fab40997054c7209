"""The undisturbed run: what a library, as it lies there at the end, gives when nothing ever happened to it."""

import shutil
from pathlib import Path

from fault_child import CHILD_LIMIT_S, Nursery
from fault_library import Library
from fault_state import State, read_state

from stemma.settings import Settings
from stemma.store.app_settings import set_overrides
from stemma.store.postgres import connect

AT_ONCE = {"retire_after_s": 0.02, "query_timeout_s": 0.01}
"""Settings with which entries are retired while nobody reads."""


def undisturbed(nursery: Nursery, library: Library, reference: Settings, *, model: str, found: State, log: Path) -> State:
    """The state of a corpus of the same files and settings that was made in one go.

    Args:
        reference: of an empty installation with the settings of the other.
        model: the value of EMBEDDING_MODEL that the other ended with.
        found: the state of the other: what was deleted there while its file stays is left out here.
    """
    kept_out = {path for path, (status, *_) in found.sources.items() if status == "cancelled"}
    for path in library.paths:
        if path not in kept_out:
            target = reference.library / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library.root / path, target)
    with connect(reference.postgres_url or "") as connection:
        set_overrides(connection, reference, {"EMBEDDING_MODEL": model})
    child = nursery.start("ingest", reference.model_copy(update=AT_ONCE), None, 1, log=log)
    child.join(CHILD_LIMIT_S)
    assert child.exitcode == 0, log.read_text()[-3_000:]
    with connect(reference.postgres_url or "") as connection:
        wanted = read_state(connection, reference.home)
    wanted.sources |= {path: found.sources[path] for path in kept_out}
    return wanted
