"""`stemma export`, `bundles`, `bundle verify` and `restore`: the corpus as one file that survives the loss of every store."""

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stemma.cli.console import ExitCode, command, counting, note, print_json, table
from stemma.errors import RequestError

if TYPE_CHECKING:
    from stemma.bundles.restore import Restored
    from stemma.bundles.shelf import Shelf

SHOWN_PATHS = 5

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look into a bundle.")

Corpus = Annotated[
    Literal["rag"], typer.Option("--corpus", help="Of documents and chunks; the graph of messages has none in this release.")
]
Place = Annotated[
    str | None,
    typer.Option(
        "--at", help="Folder or universal path (s3://…) of the bundles. Default: `stemma-exports` in the library.", show_default=False
    ),
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option("--passphrase-file", help="File whose first line is the passphrase of an encrypted bundle.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class UnreadablePassphrase(RequestError):
    """The file of the passphrase cannot be read, or its first line is empty."""

    code, remedy = "passphrase_unreadable", "Give a file whose first line is the passphrase."


@command
def export(
    *,
    corpus: Corpus = "rag",
    name: Annotated[
        str | None,
        typer.Option(
            help="A part of the bundle's name; such a bundle is always made, and never removed by the retention.", show_default=False
        ),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read the new bundle back and prove every row and byte of it.")] = False,
    with_files: Annotated[bool, typer.Option("--with-files", help="Take along the files that the documents were made of.")] = False,
    with_conversations: Annotated[
        bool, typer.Option("--with-conversations", help="Take along the conversations, with evidence and quotes.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Also when nothing changed since the last bundle.")] = False,
    at: Place = None,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Write a bundle of the corpus: text, chunks, vectors and catalogue of one instant, in one file.

    Nobody waits for it, and whatever ends it, nothing half is left. While nothing changed, no new one is made. With --passphrase-file it is encrypted in the way of age, as docs/operations.md says.

    \b
    Examples:
      stemma export --verify
      stemma export --name before-upgrade
      stemma export --at s3://backups/stemma --passphrase-file ~/.stemma-passphrase
    """
    from stemma.bundles.export import export_corpus
    from stemma.bundles.restore import verify_bundle
    from stemma.cli.postgres import corpus_database
    from stemma.settings import load_settings
    from stemma.stages.installation import Installation

    settings = load_settings()
    passphrase = _passphrase(passphrase_file)
    with corpus_database(settings), closing(Installation(settings)) as here:
        with counting(f"Exporting {corpus}", show=not as_json) as draw:
            done = export_corpus(
                here,
                label=name,
                shelf=_shelf(at),
                passphrase=passphrase,
                with_files=with_files,
                with_conversations=with_conversations,
                force=force,
                progress=draw,
            )
        verified = verify_bundle(here, done.name, shelf=_shelf(at), passphrase=passphrase) if verify else None
    if as_json:
        print_json(asdict(done) | {"verified": verified is not None})
        return
    if not done.new:
        note(f"Nothing changed since {done.name}: no new bundle was made.")
    print(f"{done.place}/{done.name}: {done.n_documents} documents, {done.n_chunks} chunks, {done.size_bytes:,} bytes")
    if verified:
        note("Every row and byte of it was proved.")
    _say_paths("files left out, since they are not what was published", done.left_out)


@command
def bundles(*, corpus: Corpus = "rag", at: Place = None, as_json: Json = False) -> None:
    """List the bundles, and what speaks against restoring each.

    Only the directory and the manifest of each are read, whatever its size; `stemma bundle verify` reads it whole.

    \b
    Examples:
      stemma bundles
      stemma bundles --at /mnt/backups --json
    """
    from stemma.bundles.listing import list_bundles
    from stemma.bundles.shelf import exports_of
    from stemma.bundles.stack import stack_of
    from stemma.cli.postgres import corpus_database
    from stemma.settings import load_settings
    from stemma.stages.installation import Installation

    settings = load_settings()
    with corpus_database(settings), closing(Installation(settings)) as here:
        listed = [
            found for found in list_bundles(_shelf(at) or exports_of(here.settings()), stack_of(here)) if found.corpus in (None, corpus)
        ]
    if as_json:
        print_json([asdict(bundle) for bundle in listed])
        return
    with table("bundle", "created", "documents", "chunks", "size", "stale", "verdict", "why") as add:
        for bundle in listed:
            differing = "; ".join(f"{part.name} was {part.bundle}, is {part.here}" for part in bundle.drift)
            why = f"{bundle.field}: {bundle.reason}" if bundle.reason else differing
            stale = None if bundle.stale is None else "yes" if bundle.stale or bundle.drift else "no"
            created = (bundle.created_at or "")[:16].replace("T", " ")
            add(bundle.name, created, bundle.documents, bundle.chunks, f"{bundle.size_bytes / 1e6:.1f} MB", stale, bundle.verdict, why)
    if not listed:
        note("There is no bundle.")


@app.command("verify")
@command
def verify(
    name: Annotated[str, typer.Argument(help="Name of the bundle.")],
    *,
    at: Place = None,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Read a bundle whole and prove every row and byte of it, as a restore does; nothing is written.

    Exits with 2 for a bundle that would be refused, and says why.

    \b
    Example:
      stemma bundle verify stemma-rag-20261201-0400.zip
    """
    from stemma.bundles.restore import verify_bundle
    from stemma.cli.postgres import corpus_database
    from stemma.settings import load_settings
    from stemma.stages.installation import Installation

    settings = load_settings()
    with corpus_database(settings), closing(Installation(settings)) as here:
        verified = verify_bundle(here, name, shelf=_shelf(at), passphrase=_passphrase(passphrase_file))
    if as_json:
        print_json({"name": name, **asdict(verified)})
    else:
        print(f"{name}: {verified.n_documents} documents and {verified.n_chunks} chunks, all sound")


@command
def restore(
    name: Annotated[str, typer.Argument(help="Name of the bundle.")],
    *,
    into_empty: Annotated[bool, typer.Option("--into-empty", help="Only if no document is published.")] = False,
    with_conversations: Annotated[
        bool, typer.Option("--with-conversations", help="Bring back the bundle's conversations too; one that is here stays as it is.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Prove the bundle and say what would become of the corpus.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before published documents are replaced.")] = False,
    at: Place = None,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Replace the corpus by what a bundle holds.

    Everything is proved first, then one transaction exchanges the corpus: searches see the old one or the new one. No file is parsed and no model is asked. What the bundle does not hold is published no more, and taken again from its file. Conversations, settings and files stay as they are; with --with-conversations those of the bundle are added.

    Exits with 1 when the corpus was not replaced because the question was answered with no.

    \b
    Examples:
      stemma restore stemma-rag-20261201-0400.zip --dry-run
      stemma restore stemma-rag-20261201-0400.zip
      stemma restore stemma-rag-20261201-0400.zip --at s3://backups/stemma --into-empty
    """
    from stemma.bundles.restore import restore_bundle
    from stemma.cli.postgres import corpus_database
    from stemma.settings import load_settings
    from stemma.stages.installation import Installation

    settings = load_settings()
    passphrase = _passphrase(passphrase_file)
    with corpus_database(settings), closing(Installation(settings)) as here:
        if not (yes or dry_run or into_empty or as_json) and not typer.confirm(f"Replace the corpus by {name}?", err=True):
            raise typer.Exit(ExitCode.PROBLEMS)
        with counting("Restoring", show=not as_json) as draw:
            done = restore_bundle(
                here, name, shelf=_shelf(at), passphrase=passphrase, into_empty=into_empty, with_conversations=with_conversations, dry_run=dry_run,
                progress=lambda _what, at, whole: draw(at, whole),
            )  # fmt: skip
    if as_json:
        print_json(asdict(done))
    else:
        _say_restored(done)


def _say_restored(done: "Restored") -> None:
    print(f"{'Would restore' if done.dry_run else 'Restored'} {done.n_documents} documents, {done.n_chunks} chunks.")
    if done.n_superseded:
        note(f"{done.n_superseded} documents are not in the bundle: they are published no more, and taken again from their files.")
    for part in done.drift:
        note(f"{part.name} was {part.bundle}, is {part.here}: what depends on it is stale.")
    _say_paths("documents have no file in this library, and are kept as they are in the bundle", done.missing)
    _say_paths("files have other bytes than in the bundle, and are read by the next run", done.changed)
    if done.stale and not done.dry_run:
        note("Something is stale: `stemma stale` says what and why.")


def _say_paths(what: str, paths: tuple[str, ...]) -> None:
    if paths:
        note(f"{len(paths)} {what}: {', '.join(paths[:SHOWN_PATHS])}{' …' if len(paths) > SHOWN_PATHS else ''}")


def _shelf(at: str | None) -> "Shelf | None":
    if at is None:
        return None
    from stemma.bundles.shelf import Shelf

    return Shelf(at if "://" in at else str(Path(at).expanduser().absolute()))


def _passphrase(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        passphrase = file.expanduser().read_text("utf-8").partition("\n")[0].strip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadablePassphrase(f"{file}: {error}") from error
    if not passphrase:
        raise UnreadablePassphrase(f"the first line of {file} is empty")
    return passphrase
