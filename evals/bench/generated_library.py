"""Libraries for benchmarks: folders of a hundred text files, every one with words of its own."""

import os
from collections.abc import Iterable
from pathlib import Path

PER_FOLDER = 100
AN_HOUR_AGO = 3_600
"""Seconds; a file modified a moment ago would not be taken before its stat can vouch for it."""


def document_path(number: int) -> str:
    """The path of a document, relative to its library; in the order of numbers up to 99,999."""
    return f"folder-{number // PER_FOLDER:03}/document-{number:05}.txt"


def write_documents(library: Path, numbers: Iterable[int], *, n_paragraphs: int = 1, says: str = "stands") -> list[str]:
    """Write these documents and return their paths. A paragraph has about 600 characters; `says` changes all of them."""
    paths: list[str] = []
    for number in numbers:
        paths.append(document_path(number))
        write_document(library / paths[-1], _text(number, n_paragraphs, says), age_s=AN_HOUR_AGO)
    return paths


def write_document(path: Path, text: str, *, age_s: float) -> None:
    """Write one file whose modification lies this far back."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    modified = path.stat().st_mtime - age_s
    os.utime(path, (modified, modified))


def _text(number: int, n_paragraphs: int, says: str) -> str:
    return "\n\n".join(
        " ".join(
            f"In observation {number}-{paragraph}-{sentence} the heron {says} at weir {number * 7 + sentence} and waits for the water to clear."
            for sentence in range(6)
        )
        for paragraph in range(n_paragraphs)
    )
