"""Rich text as Outlook compresses it. Source: [MS-OXRTFCP], LZFu over a window that begins with the words of most headers."""

import struct

_HEADER = struct.Struct("<IIII")  # compressed size without its own field, raw size, kind, checksum
_COMPRESSED, _UNCOMPRESSED = 0x75465A4C, 0x414C454D
_WINDOW_BYTES = 4_096
_WINDOW = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbolArial"
    rb"Times New RomanCourier{\colortbl\red0\green0\blue0" + b"\r\n" + rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)


def rich_text(data: bytes) -> bytes:
    """The RTF in a property of compressed rich text. Raises ValueError when it is cut off or of another kind."""
    if len(data) < _HEADER.size:
        raise ValueError("the header is cut off")
    n_compressed, n_raw, kind, _ = _HEADER.unpack_from(data)
    if kind == _UNCOMPRESSED:
        return data[_HEADER.size : _HEADER.size + n_raw]
    if kind != _COMPRESSED:
        raise ValueError("it is compressed in an unknown way")
    try:
        return bytes(_unpacked(data[_HEADER.size : n_compressed + 4]))
    except IndexError as error:
        raise ValueError("it is cut off") from error


def _unpacked(data: bytes) -> bytearray:
    window = bytearray(_WINDOW.ljust(_WINDOW_BYTES, b"\0"))
    at, position = len(_WINDOW), 0
    unpacked = bytearray()
    while True:
        controls = data[position]
        position += 1
        for bit in range(8):
            if controls >> bit & 1:
                reference = data[position] << 8 | data[position + 1]
                position += 2
                start, end = reference >> 4, (reference >> 4) + (reference & 15) + 2
                if start == at:
                    return unpacked
            else:
                window[at] = data[position]
                position += 1
                start, end = at, at + 1
            for copied in range(start, end):  # it may reach into what it writes
                byte = window[at] = window[copied % _WINDOW_BYTES]
                unpacked.append(byte)
                at = (at + 1) % _WINDOW_BYTES
