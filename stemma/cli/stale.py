"""`stemma stale`: what is not what its file and the wanted settings give, from which stage on, and why."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stemma.cli.console import command, print_json, table
from stemma.cli.options import StageOption, WorkspaceOption

if TYPE_CHECKING:
    import polars as pl

    from stemma.library.layers import Layer
    from stemma.library.restriction import Restriction
    from stemma.settings import Fingerprints, Settings
    from stemma.store.postgres import Connection
    from stemma.store.rows import AssetStage

PAGE_SIZE = 1_000


@command
def stale(
    *,
    why: Annotated[bool, typer.Option("--why", help="List the documents, each with its reason and what it waits for.")] = False,
    stage: StageOption = None,
    workspace: WorkspaceOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what is stale, from which stage on, and why.

    A document is stale when its file, a setting, the code of a stage or a model changed since it was made. Only the stages that it
    concerns are done again, and the version that is live stays searchable until then. --stage lists those that are stale from it on.

    \b
    Examples:
      stemma stale
      stemma stale --why --workspace handbook
      stemma stale --json | jq '.layers[] | [.asset, .stale] | @tsv'
    """
    from stemma.library.restriction import Restriction
    from stemma.library.staleness import WAITS
    from stemma.settings import load_settings

    restriction = Restriction(workspace=workspace)
    with opened(load_settings()) as library:
        if as_json:
            found = report(library, restriction, stage)
            print_json(found | ({"documents": list(library.documents(restriction, stage))} if why else {}))
        elif why:
            with table("document", "stale from", "because", "") as add:
                for row in library.documents(restriction, stage):
                    add(row["source_path"], row["stage"], row["reason"], WAITS.get(row["waits_for"] or "", ""))
        elif workspace is None and stage is None:
            for layer in library.layers():
                print(f"{layer.asset:<22} {layer.sentence}")
        else:
            with table("stale from", "because", "documents", "") as add:
                for row in library.kinds(restriction, stage):
                    add(row["stage"], row["reason"], row["documents"], WAITS.get(row["waits_for"] or "", ""))


@dataclass(frozen=True)
class Library:
    """The library as this process sees it now."""

    connection: "Connection"
    settings: "Settings"
    wanted: "Fingerprints"

    def counts(self, restriction: "Restriction | None" = None) -> "pl.DataFrame":
        """COUNT_SCHEMA."""
        from stemma.library.restriction import EVERYTHING
        from stemma.library.staleness import stale_counts

        return stale_counts(self.connection, self.settings, self.wanted, restriction=restriction or EVERYTHING, now=datetime.now(UTC))

    def kinds(self, restriction: "Restriction", stage: "AssetStage | None") -> list[dict[str, Any]]:
        """stage, reason, waits_for and how many documents, most first."""
        from stemma.library.staleness import kinds_of

        return kinds_of(self.counts(restriction), stage)

    def layers(self) -> "list[Layer]":
        """Every asset of the chain."""
        from stemma.library.layers import layers_of

        return layers_of(self.connection, self.settings, self.wanted, self.counts())

    def documents(self, restriction: "Restriction", stage: "AssetStage | None") -> Iterator[dict[str, Any]]:
        """Every stale document, by path, a page at a time."""
        from stemma.library.staleness import LISTED, stale_sources

        after = None
        while True:
            page = stale_sources(
                self.connection, self.settings, self.wanted, restriction=restriction, stage=stage, after=after, limit=PAGE_SIZE, now=datetime.now(UTC)
            )  # fmt: skip
            yield from page.select(LISTED).iter_rows(named=True)
            if page.height < PAGE_SIZE:
                return
            after = page["source_path"][-1]


@contextmanager
def opened(settings: "Settings") -> Generator[Library]:
    """The library of this home, with the settings and recipes that are wanted now."""
    from stemma.cli.postgres import corpus_database
    from stemma.stages.installation import wanted_fingerprints
    from stemma.store.app_settings import current_settings
    from stemma.store.postgres import connect

    with corpus_database(settings) as url, connect(url) as connection:
        connection.autocommit = True
        current = current_settings(connection, settings)
        yield Library(connection, current, wanted_fingerprints(current))


def report(library: Library, restriction: "Restriction", stage: "AssetStage | None") -> dict[str, Any]:
    """What `--json` prints without `--why`."""
    kinds = library.kinds(restriction, stage)
    layers = [asdict(layer) | {"sentence": layer.sentence} for layer in library.layers()]
    return {"stale": sum(kind["documents"] for kind in kinds), "kinds": kinds, "layers": layers}
