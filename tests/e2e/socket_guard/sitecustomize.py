"""Loaded by every Python process of the product under test: connections beyond loopback are refused and written down."""

import os
import socket

_LOG = os.environ.get("SOCKET_GUARD_LOG")
_LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0", "")


def _is_local(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host or "")
    return name.startswith("127.") or name in _LOOPBACK


def _refuse(what: str) -> None:
    with open(_LOG, "a", encoding="utf-8") as log:  # noqa: PTH123 -- as few imports as possible
        log.write(f"{os.getpid()} {what}\n")
    raise ConnectionRefusedError(f"{what} is not loopback")


if _LOG:
    _connect, _getaddrinfo = socket.socket.connect, socket.getaddrinfo

    def connect(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_local(address[0]):
            _refuse(f"connect {address}")
        return _connect(self, address)

    def getaddrinfo(host, *arguments, **options):
        if not _is_local(host) and host != socket.gethostname():
            _refuse(f"look up {host}")
        return _getaddrinfo(host, *arguments, **options)

    socket.socket.connect = connect
    socket.getaddrinfo = getaddrinfo
