"""The conditions Stemma can explain: one closed list of codes, stored in attempts, sent over HTTP and listed in docs/errors.md.

StemmaError
 ├─ DocumentError          one file could not pass one stage; the batch goes on
 │   ├─ EncryptedDocument, CorruptDocument, UnsupportedFormat, DocumentTooLarge
  │   ├─ UnpacksTooLarge, NestedTooDeeply, TooManyContained, ContainerChanged
  │   ├─ UnreadableFile, MovedWhileReading, PathTooLong, FileNotRemoved
 │   ├─ ParseTimeout, ParseMemoryExceeded, WorkerDied, LayoutModelsUnavailable
 │   └─ EmbeddingMissing, InvalidChunks
 ├─ RequestError           what was asked for cannot be done; ask differently
 ├─ Unavailable            a store or server is away; the same request may succeed later
 └─ ConfigurationError     a setting, migration or installation must be mended first
"""

from typing import ClassVar, Self


def as_sentence(text: str) -> str:
    """The text with a full stop, unless it ends as a sentence does."""
    text = text.rstrip()
    return text if not text or text.endswith((".", "?", "!", "…")) else f"{text}."


class StemmaError(Exception):
    """A condition the user can understand and act on; whatever else escapes is a bug and keeps its traceback."""

    code: ClassVar[str]
    """Stable, lower snake case; one class per code."""
    remedy: ClassVar[str] = ""
    """What to do next, a full sentence."""
    retryable: bool = False
    """Whether the same work may succeed later without a change of bytes, settings or code."""

    def __str__(self) -> str:
        return f"{as_sentence(' '.join(str(arg) for arg in self.args))} {self.remedy}".strip()


class DocumentError(StemmaError):
    """One file could not pass one stage; the batch goes on."""

    def __init__(self, source_path: str, detail: str) -> None:
        super().__init__(source_path, detail)  # pickle rebuilds from args: parsers run in child processes
        self.source_path, self.detail = source_path, detail

    def of(self, source_path: str) -> Self:
        """The same verdict on another file of equal bytes."""
        error = type(self)(source_path, self.detail)
        error.retryable = self.retryable
        return error

    def __str__(self) -> str:
        return f"{self.source_path}: {self.message}"

    @property
    def message(self) -> str:
        """What a person is shown beside the file's name; at most 500 characters, without host paths."""
        return f"{as_sentence(self.detail)} {self.remedy}"[:500]


class EncryptedDocument(DocumentError):
    """The file needs a password to be read."""

    code, remedy = "encrypted", "Save a copy without a password."


class CorruptDocument(DocumentError):
    """The bytes are not a sound file of the format they claim."""

    code, remedy = "corrupt", "Open it in its own program, save it again, and check that the copy is complete."


class UnsupportedFormat(DocumentError):
    """No parser reads this format."""

    code, remedy = "unsupported", "Convert it to a supported format (docs/formats.md), or move it out of the library."


class DocumentTooLarge(DocumentError):
    """The file or its text is above a limit."""

    code, remedy = "too_large", "Split the file, or raise MAX_FILE_BYTES or MAX_DOCUMENT_CHARS."


class UnpacksTooLarge(DocumentError):
    """A member of an archive is above a limit once unpacked, as those of decompression bombs are."""

    code, remedy = "unpacks_too_large", "If you trust it, unpack the archive and put the file itself into the library."


class NestedTooDeeply(DocumentError):
    """A document lies in a mail or archive in another, and so on, deeper than is followed."""

    code, remedy = "nested_too_deeply", "Take the inner mail or archive out and put it into the library."


class TooManyContained(DocumentError):
    """A file holds more documents, all that they hold included, than are taken from one file."""

    code, remedy = "too_many_contained", "Divide the mailbox or archive, or unpack it into the library."


class ContainerChanged(DocumentError):
    """The mail or archive no longer holds the document as it was listed."""

    code, remedy, retryable = "container_changed", "Nothing to do: it is taken again when the file that holds it was read again.", True


class UnreadableFile(DocumentError):
    """The operating system refused to open or read the file."""

    code, remedy, retryable = "unreadable", "Check the file's permissions and its disk.", True


class MovedWhileReading(DocumentError):
    """The file changed or vanished between the walk and the read; the next walk decides."""

    code, remedy, retryable = "moved_while_reading", "Nothing to do: it is read again at the next walk.", True


class PathTooLong(DocumentError):
    """The path is over 2,000 bytes, more than an index key can hold."""

    code, remedy = "path_too_long", "Shorten the names of the file or of its folders."


class FileNotRemoved(DocumentError):
    """The document is out of the corpus, but its file could not be removed."""

    code, retryable = "file_not_removed", True
    remedy = "It is tried again; let Stemma's user write in the file's folder, or delete the document once more with its file kept."


class ParseTimeout(DocumentError):
    """Parsing took longer than the limit; its process was ended."""

    code, remedy = "parse_timeout", "Split the file, or raise PARSE_TIMEOUT_S."


class ParseMemoryExceeded(DocumentError):
    """Parsing needed more memory than the limit; its process was ended."""

    code, remedy = "parse_memory", "Split the file, or raise PARSE_MEMORY_BYTES."


class WorkerDied(DocumentError):
    """The parser's process ended without an answer."""

    code, remedy = "worker_died", "Convert the file to another format; report it if it opens elsewhere."


class LayoutModelsUnavailable(DocumentError):
    """PDF_PIPELINE is `docling_layout`, and the folder of its models is not there or lacks one."""

    code = "layout_models_unavailable"
    remedy = "Set STEMMA_DOCLING_ARTIFACTS to a folder that `docling-tools models download` has filled, or PDF_PIPELINE to `pdfium`."


class EmbeddingMissing(DocumentError):
    """A chunk has no vector after this run embedded it."""

    code, remedy, retryable = "embedding_missing", "It is tried again; run `stemma doctor` if it persists.", True


class InvalidChunks(DocumentError):
    """Chunks broke a promise (exact offsets, order, no blank chunk) and were not published."""

    code, remedy = "invalid_chunks", "This is a fault in a chunking strategy: please report it with the file."


class RequestError(StemmaError):
    """What was asked for cannot be done; ask differently."""


class Unavailable(StemmaError):
    """A store or server is away; the same request may succeed later."""

    retryable = True


class ConfigurationError(StemmaError):
    """A setting, migration or installation must be mended first."""


WARNINGS = {
    "empty": "The file holds no bytes, or nothing but a byte-order mark or blanks.",
    "no_text": "The file was read but no text was found in it.",
    "partly_no_text": "Some pages hold no text; they are listed in the metadata.",
    "partly_unreadable": "Some pages, chapters or parts are damaged or protected and were left out; they are listed in the metadata.",
    "garbled_text": "The file gives some of its glyphs no or wrong characters; the pages are listed in the metadata.",
    "invalid_syntax": "The file breaks the rules of its format; its source is the text, as it stands.",
    "encoding_guessed": "The text is not UTF-8; its encoding was detected and is recorded in the metadata.",
}
"""Codes that accompany a ready document; `empty` and `no_text` documents have no chunks."""


def error_codes() -> dict[str, type[StemmaError]]:
    """Every code that an imported part defines, with its class. Raises AssertionError when two classes share one."""
    found: dict[str, type[StemmaError]] = {}
    pending: list[type[StemmaError]] = [StemmaError]
    while pending:
        error = pending.pop()
        pending += error.__subclasses__()
        if "code" in vars(error):
            assert error.code not in found, f"{error.code} belongs to {found[error.code].__name__} and {error.__name__}"
            found[error.code] = error
    return dict(sorted(found.items()))
