"""What a person types while the library changes: commands of `stemma` that work on the corpus itself, and what their kill would leave."""

import os
import random
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fault_library import Library, text_hash

from stemma.failpoints import FailPoint
from stemma.settings import Settings
from stemma.store.postgres import connect

DELETION: tuple[FailPoint, ...] = (
    "deletion.marked", "deletion.entries_removed", "deletion.before_unlink", "deletion.file_removed", "deletion.before_commit",
    "deletion.committed",
)  # fmt: skip
SWITCH: tuple[FailPoint, ...] = (
    "embeddings.before_store", "embeddings.stored", "reembed.filled", "reembed.built", "switch.before_commit", "switch.committed",
)  # fmt: skip


@dataclass(frozen=True)
class Command:
    """A command line, and the fail points that it may pass."""

    words: Sequence[str]
    points: tuple[FailPoint, ...] = ()

    def __str__(self) -> str:
        return f"stemma {shlex.join(self.words)}"


def draw_command(library: Library, draw: random.Random, models: Sequence[str], settings: Settings) -> Command:
    """One command, drawn by weight; what it needs to have something to do is arranged."""
    kinds = list(_COMMANDS)
    return draw.choices(kinds, [_COMMANDS[kind] for kind in kinds])[0](library, draw, models, settings)


def _reembed(library: Library, draw: random.Random, models: Sequence[str], settings: Settings) -> Command:
    return Command(("reembed", "--model", draw.choice(models)), SWITCH)


def _roll_back(library: Library, draw: random.Random, models: Sequence[str], settings: Settings) -> Command:
    return Command(("reembed", "--rollback"), SWITCH)


def _end_indexes(library: Library, draw: random.Random, models: Sequence[str], settings: Settings) -> Command:
    return Command(("reembed", draw.choice(("--abandon", "--drop-retired"))), ("drop.before_commit",))


def _rebuild(library: Library, draw: random.Random, models: Sequence[str], settings: Settings) -> Command:
    points: tuple[FailPoint, ...] = (
        "keyword_rebuild.entries_added", "keyword_rebuild.covered", "keyword_switch.before_commit", "keywords.before_commit",
        "keywords.committed",
    )  # fmt: skip
    what = draw.choice(("keywords", "keywords", "vectors"))
    return Command(("db", "index", "--rebuild", what), points if what == "keywords" else ())


def _collect(library: Library, draw: random.Random, models: Sequence[str], settings: Settings) -> Command:
    """Everything is old, and the limits are passed."""
    with connect(settings.postgres_url or "") as connection:
        for table in ("stage_results", "embedding_cache"):
            connection.execute(f"UPDATE {table} SET last_used_at = last_used_at - interval '2 hours'")
    long_ago = (datetime.now(UTC) - timedelta(hours=2)).timestamp()
    lake = settings.home / "lake"
    for path in lake.glob("*/*"):
        os.utime(path, (long_ago, long_ago))
    if lake.is_dir():
        (lake / "chunks").mkdir(exist_ok=True)
        (lake / "chunks" / f"{draw.randrange(10**9)}.parquet").write_bytes(b"left by a write that was interrupted")
    return Command(("gc",), ("garbage.orphans_removed", "garbage.results_forgotten"))


def _repair(library: Library, draw: random.Random, models: Sequence[str], settings: Settings) -> Command:
    """Something that no reader sees is damaged: objects of the lake are lost, and a vector of the cache is another."""
    lost = sorted((settings.home / "lake").glob("*/*.parquet"))
    for path in draw.sample(lost, min(2, len(lost))):
        path.unlink(missing_ok=True)
    with connect(settings.postgres_url or "") as connection:
        connection.execute(
            "UPDATE embedding_cache SET embedding = (SELECT array_agg(3.0::real) FROM generate_series(1, vector_dims(embedding)))::vector "
            "WHERE input_hash = (SELECT input_hash FROM embedding_cache ORDER BY input_hash OFFSET %s LIMIT 1)",
            [draw.randrange(8)],
        )
    return Command(("audit", "--repair"), ("repair.vectors_taken", "repair.published_again", "repair.before_lake"))


def _prune(library: Library, draw: random.Random, models: Sequence[str], settings: Settings) -> Command:
    """A workspace without an anchor is emptied, which the valve holds back, or filled again."""
    library.done.append(f"attic: {library.clear_attic() or library.fill_attic()}")
    return Command(("prune", "--confirm"), ("prune.before_marking", *DELETION))


def _delete(library: Library, draw: random.Random, models: Sequence[str], settings: Settings) -> Command:
    folders = [] if draw.random() < 0.7 else library.folders
    if folders:
        folder = draw.choice(folders)
        chosen, named = [path for path in library.paths if path.startswith(f"{folder}/")], ["--folder", folder]
    else:
        chosen = [draw.choice(library.movable or [library.add()])]
        named = chosen
    keep = draw.random() < 0.5
    for path in chosen:
        library.disturbed.add(path)
        if keep:
            library.keep_out(path, text_hash((library.root / path).read_bytes()))
    return Command(("delete", *named, "--yes", *([] if keep else ["--remove-file"])), DELETION)


def _cancel(library: Library, draw: random.Random, models: Sequence[str], settings: Settings) -> Command:
    return Command(("cancel", draw.choice(library.paths)))


def _retry(library: Library, draw: random.Random, models: Sequence[str], settings: Settings) -> Command:
    return Command(("retry", "--failed", "--cancelled"))


_COMMANDS: dict[Callable[[Library, random.Random, Sequence[str], Settings], Command], int] = {
    _reembed: 5,
    _roll_back: 2,
    _end_indexes: 2,
    _rebuild: 3,
    _collect: 2,
    _repair: 3,
    _prune: 3,
    _delete: 5,
    _cancel: 1,
    _retry: 1,
}
