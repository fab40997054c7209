"""One file -> one parsed document, in this process: judges what a parser returns and names what it raises."""

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from stemma.errors import CorruptDocument, DocumentError, ParseMemoryExceeded, UnreadableFile
from stemma.parsing.cleaning import clean_metadata, is_visible
from stemma.parsing.document import Page, ParsedDocument
from stemma.parsing.draft import Draft, ParsingOptions, Source
from stemma.parsing.formats import Format
from stemma.parsing.members import take_out
from stemma.parsing.work_folder import WorkFolder


def parse_file(
    path: Path,
    *,
    source_path: str,
    format: Format,
    options: ParsingOptions,
    work_folder: Path | None = None,
    pictures: tuple[str, ...] = (),
) -> ParsedDocument:
    """Parse a private copy of a file.

    Args:
        path: where the bytes lie; nothing of it enters the result.
        source_path: names the document in errors and logs.
        work_folder: where finished pages are kept for a parse that is ended, and found by the next; the caller removes it.
        pictures: what `Source.pictures` is.
    Raises:
        DocumentError: a subclass whose code says why; nothing else leaves here but interrupts.
    """
    source = Source(path, source_path, options, WorkFolder(work_folder), pictures)
    with _named_failures(source, format):
        draft = Draft("", empty=True) if path.stat().st_size == 0 else format.load()(source)
        source.check_length(len(draft.text))
    return judged(draft, format)


def take_out_members(
    path: Path, *, source_path: str, format: Format, options: ParsingOptions, targets: Mapping[str, Path]
) -> dict[str, DocumentError | None]:
    """Write members (path in the container -> file) out of a private copy of their container; path -> None, or why not.

    Raises:
        DocumentError: the container itself cannot be read.
    """
    source = Source(path, source_path, options)
    with _named_failures(source, format):
        return take_out(source, format.load_entries()(source), targets)


@contextmanager
def _named_failures(source: Source, format: Format) -> Generator[None]:
    """Give whatever a parser raises the code that says why."""
    started = time.monotonic()
    try:
        yield
    except DocumentError:
        raise
    except MemoryError as error:
        raise ParseMemoryExceeded(source.source_path, "the parser ran out of memory") from error
    except OSError as error:
        raise UnreadableFile(source.source_path, f"reading it failed ({error.strerror or type(error).__name__})") from error
    except RecursionError as error:
        raise source.corrupt("its content is nested too deeply") from error
    except Exception as error:
        # Parsers meet every kind of damage; their messages may name paths of this host, so only the log has them.
        import structlog  # at its first use, as in work_folder.py

        structlog.get_logger(__name__).warning(
            "Parser failed", source_path=source.source_path, format=format.id, elapsed_s=time.monotonic() - started, exc_info=True
        )
        raise CorruptDocument(source.source_path, f"the {format.parser} parser could not read it ({type(error).__name__})") from error


def judged(draft: Draft, format: Format) -> ParsedDocument:
    """The document with its parser's name, cleaned metadata and, where one is due, a warning. Invisible text counts as none."""
    visible = is_visible(draft.text)
    known = {"mime_type": format.mime_type, **draft.metadata}
    metadata = {name: value for name, value in known.items() if value not in (None, "", [])}
    return ParsedDocument(
        text=draft.text if visible else "",
        parser=format.parser,
        parser_version=format.parser_version,
        blocks=draft.blocks if visible else (),
        pages=draft.pages if visible else tuple(Page(page.number, 0, 0, page.label) for page in draft.pages),
        assets=draft.assets if visible else (),
        title=draft.title,
        extraction=draft.extraction,
        ocr_pages=draft.ocr_pages,
        warning=_warning(draft, visible=visible),
        metadata=clean_metadata(metadata),
    )


def _warning(draft: Draft, *, visible: bool) -> str | None:
    """The gravest of the warnings that apply."""
    if not visible:
        return "empty" if draft.empty else "no_text"
    applies = {
        "garbled_text": draft.metadata.get("garbled_pages"),
        "invalid_syntax": draft.invalid_syntax,
        "partly_unreadable": draft.metadata.get("unreadable_parts") or draft.metadata.get("unreadable_pages"),
        "partly_no_text": draft.metadata.get("pages_without_text"),
        "encoding_guessed": draft.guessed_encoding,
    }
    return next((warning for warning, applied in applies.items() if applied), None)
