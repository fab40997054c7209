"""Subtitles and transcripts (WebVTT, SubRip): what is said, in paragraphs that begin with their time."""

import html
import re
from dataclasses import dataclass
from itertools import takewhile

from stemma.parsing.cleaning import clean_line
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.plain import encoding_metadata, read_text

PAUSE_S = 3.0  # of silence, after which another paragraph begins
PARAGRAPH_CHARS = 600  # after which one begins at the next end of a sentence
MAX_PARAGRAPH_CHARS = 3_000  # after which one begins in any case: recognised speech may have no sentences
MAX_CUE_LINES = 100

_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_TIMING = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}")
_VOICE = re.compile(r"<v(?:\.[^ >]{0,200})?\s{1,20}([^>]{1,200})>")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>|<\d[\d:.]{0,20}>|\{\\[^}]{0,100}\}")
_ENDS = (".", "!", "?", "…", "。", "！", "？", '."', ".”")


@dataclass(frozen=True, slots=True)
class _Cue:
    start_s: float
    end_s: float
    speaker: str
    lines: list[str]


def parse_subtitles(source: Source) -> Draft:
    """Paragraphs `[h:mm:ss] Speaker: words`, with the time of their first cue.

    Another paragraph begins with another speaker, after PAUSE_S of silence, and after PARAGRAPH_CHARS at the end of a sentence.
    A line that the cue before already showed (rolling captions) is left out, as are styles, notes and cue names.

    Raises:
        CorruptDocument: not one cue has a time.
    """
    decoded = read_text(source)
    cues = _cues(decoded.text)
    if not cues and decoded.text.strip() and not decoded.text.startswith("WEBVTT"):
        raise source.corrupt("it holds no cue with a time")
    builder = DraftBuilder(source)
    words: list[str] = []
    before: _Cue | None = None
    for cue in cues:
        lines = [line for line in cue.lines if before is None or line not in before.lines]
        if before is None or _begins_paragraph(words, before, cue):
            builder.add(" ".join(words))
            words = [_clock(cue.start_s), *([f"{cue.speaker}:"] if cue.speaker else [])] if lines else []
        elif not words and lines:
            words = [_clock(cue.start_s)]
        words += lines
        before = cue
    builder.add(" ".join(words))
    duration_s = max((cue.end_s for cue in cues), default=0.0)
    return builder.finish(
        empty=not decoded.text.strip(), guessed_encoding=decoded.guessed, metadata={"duration_s": duration_s, **encoding_metadata(decoded)}
    )


def _begins_paragraph(words: list[str], before: _Cue, cue: _Cue) -> bool:
    n_chars = sum(map(len, words))
    long = n_chars > MAX_PARAGRAPH_CHARS or (n_chars > PARAGRAPH_CHARS and words[-1].endswith(_ENDS))
    return cue.speaker != before.speaker or cue.start_s - before.end_s > PAUSE_S or long


def _cues(text: str) -> list[_Cue]:
    cues: list[_Cue] = []
    lines = text.split("\n")
    for i, line in enumerate(lines):
        timing = _TIMING.match(line)
        if timing is None:
            continue
        shown = list(takewhile(lambda below: below.strip() and not _TIMING.match(below), lines[i + 1 : i + 1 + MAX_CUE_LINES]))
        if i + 1 + len(shown) < len(lines) and _TIMING.match(lines[i + 1 + len(shown)]) and shown and shown[-1].strip().isdigit():
            shown.pop()  # the number of the next cue, where no blank line divides them
        voice = _VOICE.search(" ".join(shown))
        words = [clean_line(html.unescape(_TAG.sub("", _VOICE.sub("", below)))) for below in shown]
        cues.append(_Cue(_seconds(timing[1], timing[2], timing[3], timing[4]), _seconds(timing[5], timing[6], timing[7], timing[8]),
                         clean_line(voice[1]) if voice else "", [word for word in words if word]))  # fmt: skip
    return cues


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> float:
    return int(hours or 0) * 3_600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1_000


def _clock(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"[{hours}:{minute:02}:{second:02}]"
