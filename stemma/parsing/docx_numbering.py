"""The automatic numbers of lists and headings in Word documents, counted as Word counts them."""

from dataclasses import dataclass

from stemma.parsing.elements import Element, attribute, child, local_name

LEVELS = 9
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Level:
    kind: str = "bullet"
    """`decimal`, `lowerLetter`, ..., `bullet`, `none`."""
    pattern: str = ""
    """What is shown, such as `%1.%2.`."""
    start: int = 1
    restarts: bool = True
    """Whether it begins anew after a number of a level above."""


class Numbering:
    """The lists of a document and how far each has counted. Lists of one definition count together, as in Word."""

    def __init__(self, tree: Element | None) -> None:
        self._levels: dict[str, tuple[_Level, ...]] = {}  # by num id
        self._counted_with: dict[str, str] = {}  # num id -> id of the definition whose counters it shares
        self._counters: dict[str, list[int | None]] = {}
        if tree is not None:
            self._read(tree)

    def mark(self, num_id: str, level: int) -> str:
        """The number or bullet of the next paragraph at a level (from 0); `-` for bullets, blank where Word shows none."""
        levels = self._levels.get(num_id)
        if levels is None or not 0 <= level < LEVELS:
            return "-"
        defined = levels[level]
        counters = self._counters.setdefault(self._counted_with[num_id], [None] * LEVELS)
        current = counters[level]
        counters[level] = defined.start if current is None else current + 1
        for below in range(level + 1, LEVELS):
            if levels[below].restarts:
                counters[below] = None
        if defined.kind == "bullet":
            return "-"
        shown = defined.pattern if defined.kind != "none" else ""
        for above in range(LEVELS):
            if (place := f"%{above + 1}") in shown:
                count = counters[above]
                shown = shown.replace(place, _counted(count if count is not None else levels[above].start, levels[above].kind))
        return " ".join(shown.split())

    def _read(self, tree: Element) -> None:
        definitions = {attribute(element, "abstractNumId") or "": element for element in tree if local_name(element) == "abstractNum"}
        for number in (element for element in tree if local_name(element) == "num"):
            num_id, named = attribute(number, "numId") or "", child(number, "abstractNumId")
            definition = attribute(named, "val") or "" if named is not None else ""
            levels = [_Level()] * LEVELS
            overridden = False
            for element in definitions.get(definition, ()):
                _define(levels, element)
            for override in (element for element in number if local_name(element) == "lvlOverride"):
                for element in override:
                    _define(levels, element)
                start = child(override, "startOverride")
                if start is not None:
                    overridden = True
                    index = _index(override)
                    levels[index] = _Level(
                        levels[index].kind, levels[index].pattern, _integer(attribute(start, "val"), 1), levels[index].restarts
                    )
            self._levels[num_id] = tuple(levels)
            self._counted_with[num_id] = f"{definition}/{num_id}" if overridden else definition


def _define(levels: list[_Level], element: Element) -> None:
    if local_name(element) != "lvl":
        return
    values = {local_name(inner): attribute(inner, "val") for inner in element}
    levels[_index(element)] = _Level(
        values.get("numFmt") or "decimal", values.get("lvlText") or "", _integer(values.get("start"), 1), values.get("lvlRestart") != "0"
    )


def _index(element: Element) -> int:
    return min(max(_integer(attribute(element, "ilvl"), 0), 0), LEVELS - 1)


def _integer(value: str | None, otherwise: int) -> int:
    return int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 7 else otherwise


def _counted(count: int, kind: str) -> str:
    if kind in ("lowerLetter", "upperLetter") and count > 0:
        letters = chr(ord("a") + (count - 1) % 26) * min((count - 1) // 26 + 1, 10)
        return letters.upper() if kind == "upperLetter" else letters
    if kind in ("lowerRoman", "upperRoman") and 0 < count < 4_000:
        roman = ""
        for value, digits in _ROMAN:
            roman += digits * (count // value)
            count %= value
        return roman.upper() if kind == "upperRoman" else roman
    return f"{count:02}" if kind == "decimalZero" else str(count)
