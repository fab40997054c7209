"""What is filled in and written upon the pages of a PDF: values of form fields, free text and comments."""

import ctypes
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from stemma.parsing.cleaning import clean_line, is_visible

pdfium: Any = import_module("pypdfium2.raw")  # ships no types

MAX_VALUE_BYTES = 2_000_000  # of one value; pdfium states the length before it copies
_COMMENTS = frozenset({
    pdfium.FPDF_ANNOT_TEXT, pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_HIGHLIGHT, pdfium.FPDF_ANNOT_UNDERLINE,
    pdfium.FPDF_ANNOT_SQUIGGLY, pdfium.FPDF_ANNOT_STRIKEOUT, pdfium.FPDF_ANNOT_STAMP, pdfium.FPDF_ANNOT_CARET, pdfium.FPDF_ANNOT_SQUARE,
    pdfium.FPDF_ANNOT_CIRCLE, pdfium.FPDF_ANNOT_LINE, pdfium.FPDF_ANNOT_POLYGON, pdfium.FPDF_ANNOT_INK,
})  # fmt: skip
_HIDDEN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_SWITCHES = frozenset({pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON})
_WITHOUT_VALUE = frozenset({pdfium.FPDF_FORMFIELD_PUSHBUTTON, pdfium.FPDF_FORMFIELD_SIGNATURE, pdfium.FPDF_FORMFIELD_UNKNOWN})
_Characters: Any = ctypes.POINTER(ctypes.c_ushort)
_PASSWORD_FIELD = 1 << 13  # ISO 32000-1, table 228


def page_annotations(page: Any, form: Any | None) -> list[str]:
    """A text with a line `name: value` per filled field, and one with a line per comment; those that are blank are left out.

    Hidden annotations, boxes that are not ticked, passwords and signatures are left out.

    Args:
        page: of pypdfium2.
        form: the document's form environment, or None when it has no form.
    """
    fields: dict[str, None] = {}  # the widgets of one field show one value
    comments: list[str] = []
    for annotation in _annotations(page):
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        if pdfium.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
            continue
        if kind == pdfium.FPDF_ANNOT_WIDGET and form is not None:
            if line := _field(form.raw, annotation):
                fields[line] = None
        elif kind in _COMMENTS and is_visible(comment := _string(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")):
            comments.append(clean_line(comment))
    return [f"{title}:\n" + "\n".join(lines) for title, lines in (("Form fields", list(fields)), ("Annotations", comments)) if lines]


def _annotations(page: Any) -> Iterator[Any]:
    for index in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
        if annotation := pdfium.FPDFPage_GetAnnot(page.raw, index):
            try:
                yield annotation
            finally:
                pdfium.FPDFPage_CloseAnnot(annotation)


def _field(form: Any, annotation: Any) -> str:
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in _WITHOUT_VALUE or (
        pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD_FIELD and kind == pdfium.FPDF_FORMFIELD_TEXTFIELD
    ):
        return ""
    if kind in _SWITCHES and not pdfium.FPDFAnnot_IsChecked(form, annotation):
        return ""
    value = clean_line(_string(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation))
    name = clean_line(
        _string(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
        or _string(pdfium.FPDFAnnot_GetFormFieldName, form, annotation)
    )
    return (f"{name}: {value}" if name else value) if is_visible(value) else ""


def _string(function: Callable[..., int], *arguments: Any) -> str:
    """What one of pdfium's functions writes into a buffer of UTF-16, whose length it states when it is given none."""
    n_bytes = function(*arguments, None, 0)
    if not 2 < n_bytes <= MAX_VALUE_BYTES:
        return ""
    buffer = ctypes.create_string_buffer(n_bytes)
    function(*arguments, ctypes.cast(buffer, _Characters), n_bytes)
    return buffer.raw[:n_bytes].decode("utf-16-le", "ignore").rstrip("\0")
