"""JSON and JSON Lines as readable text: `name: value` lines, indented, with every character as itself."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from stemma.parsing.cleaning import clean_text
from stemma.parsing.code import parse_code
from stemma.parsing.document import Block
from stemma.parsing.draft import Draft, Source
from stemma.parsing.encoding import Decoded
from stemma.parsing.plain import encoding_metadata, read_text

MIN_BLOCK_CHARS = 300  # shorter members are one block with what follows them
MAX_INDENT = 20  # levels; what lies deeper is indented as far


class _Number(str):
    """A number as it is written: no digit is lost, none is added."""


class _Members(list[tuple[str, Any]]):
    """The members of an object in their order; a name may occur twice."""


def parse_json(source: Source) -> Draft:
    """Every name and value of a JSON file, in its order; blocks end only between members of the outermost object or array.

    A file that breaks the rules of JSON (comments, a lost bracket) is read as it stands, with the warning `invalid_syntax`.
    """
    decoded = read_text(source)
    return _draft(source, decoded, [decoded.text])


def parse_jsonl(source: Source) -> Draft:
    """As `parse_json`, with a value per line; blank lines are left out."""
    decoded = read_text(source)
    return _draft(source, decoded, [line for line in decoded.text.split("\n") if line.strip()])


def _draft(source: Source, decoded: Decoded, values: list[str]) -> Draft:
    if not decoded.text.strip():
        return Draft("", empty=True)
    pieces: list[str] = []
    blocks: list[Block] = []
    start = length = 0
    try:
        for value in values:
            for piece in _top_level(_loads(value)):
                pieces.append(piece)
                length += len(piece)
                source.check_length(length)
                if length - start >= MIN_BLOCK_CHARS:
                    blocks.append(Block("code", start, length - 1))
                    start = length
    except ValueError:
        return replace(parse_code(source), invalid_syntax=True)
    if start < length:
        blocks.append(Block("code", start, length - 1))
    text = "".join(pieces).removesuffix("\n")
    return Draft(text, tuple(blocks), guessed_encoding=decoded.guessed, metadata=encoding_metadata(decoded))


def _loads(text: str) -> Any:
    return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number, object_pairs_hook=_Members)


def _top_level(value: Any) -> Iterator[str]:
    """The lines of each member of a value; each ends with a line end."""
    if isinstance(value, _Members):
        for name, member in value:
            yield _member(name, member, 0)
    elif isinstance(value, list):
        for member in cast(list[Any], value):
            yield _entry(member, 0)
    else:
        yield _scalar(value, 0).lstrip() + "\n"


def _member(name: str, value: Any, depth: int) -> str:
    return _indent(depth) + _one_line(name) + ":" + _value(value, depth + 1)


def _entry(value: Any, depth: int) -> str:
    """An entry of an array: `- ` takes the place of its first line's indent."""
    if isinstance(value, _Members) and value:
        lines = "".join(_member(name, member, depth + 1) for name, member in value)
        return _indent(depth) + "- " + lines[len(_indent(depth + 1)) :]
    return _indent(depth) + "-" + _value(value, depth + 1)


def _value(value: Any, depth: int) -> str:
    if isinstance(value, _Members) and value:
        return "\n" + "".join(_member(name, member, depth) for name, member in value)
    if isinstance(value, list) and value:
        return "\n" + "".join(_entry(member, depth) for member in cast(list[Any], value))
    return _scalar(value, depth) + "\n"


def _scalar(value: Any, depth: int) -> str:
    """A blank and the value; a text of several lines stands below its name, indented."""
    if isinstance(value, str):
        text = clean_text(value)
        if not text.strip():
            return ' ""'
        return " " + text if "\n" not in text else "".join(f"\n{_indent(depth)}{line}" for line in text.strip("\n").split("\n"))
    return " " + ("{}" if isinstance(value, _Members) else "[]" if value == [] else json.dumps(value))


def _indent(depth: int) -> str:
    return "  " * min(depth, MAX_INDENT)


def _one_line(name: str) -> str:
    return " ".join(clean_text(name).split()) or '""'
