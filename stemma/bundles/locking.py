"""Bundles under a passphrase, in the way of age (https://age-encryption.org): a key of their own, itself under the passphrase.

`<name>.locked.zip` holds `key.age`, an identity file under the passphrase (scrypt), `bundle.age`, the bundle for that identity (X25519,
ChaCha20-Poly1305 in a stream), and `note.json`. Whoever lost Stemma opens it with the tool: `age -d -i key.age bundle.age > bundle.zip`.
"""

import json
import tempfile
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any, cast

from stemma.bundles.archive import unsound
from stemma.bundles.errors import BundleInvalid, BundleLocked, BundlesUnavailable

KEY, SEALED, NOTE = "key.age", "bundle.age", "note.json"
MAX_KEY_BYTES = 65_536


@contextmanager
def locked_with(passphrase: str | None, file: IO[bytes], home: Path, *, data_version: str) -> Generator[IO[bytes]]:
    """A stream whose bytes reach `file` encrypted; with None, `file` itself.

    The bundle lies unencrypted in a nameless file of the home until it is sealed: age reads what it encrypts.
    """
    if passphrase is None:
        yield file
        return
    pyrage = _age()
    with _nameless(home) as plain:
        yield plain
        plain.seek(0)
        identity = pyrage.x25519.Identity.generate()
        key = pyrage.passphrase.encrypt(f"{identity}\n".encode(), passphrase)
        with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
            archive.writestr(KEY, key)
            archive.writestr(NOTE, json.dumps({"data_version": data_version}))
            with archive.open(zipfile.ZipInfo(SEALED), "w", force_zip64=True) as sealed:
                pyrage.encrypt_io(plain, sealed, [identity.to_public()])


@contextmanager
def unlocked(file: IO[bytes], passphrase: str | None, home: Path) -> Generator[IO[bytes]]:
    """The bundle itself, decrypted into a nameless file of the home that ends with the block. Raises BundleLocked or BundleInvalid."""
    if passphrase is None:
        raise BundleLocked("the bundle is encrypted")
    pyrage = _age()
    with _nameless(home) as plain:
        with unsound("the archive"), zipfile.ZipFile(file) as archive:
            names = {info.filename: info for info in archive.infolist()}
            if names.keys() != {KEY, SEALED, NOTE} or names[KEY].file_size > MAX_KEY_BYTES:
                raise BundleInvalid("the archive", f"it holds other things than {KEY}, {SEALED} and {NOTE}")
            try:
                key = pyrage.passphrase.decrypt(archive.read(KEY), passphrase).decode().strip()
                identity = pyrage.x25519.Identity.from_str(key)
            except (pyrage.DecryptError, pyrage.IdentityError, UnicodeDecodeError) as error:
                raise BundleLocked("the passphrase does not open it") from error
            try:
                with archive.open(SEALED) as sealed:
                    pyrage.decrypt_io(sealed, plain, [identity])
            except OSError as error:
                if error.errno:  # of the disk that it is written to
                    raise BundlesUnavailable(f"{home}: {error.strerror}") from error
                raise BundleInvalid(SEALED, f"it cannot be decrypted ({error})") from error
            except pyrage.DecryptError as error:
                raise BundleInvalid(SEALED, f"it cannot be decrypted ({error})") from error
        plain.seek(0)
        yield plain


def note_of(file: IO[bytes]) -> dict[str, Any]:
    """What an encrypted bundle says in the clear. Raises BundleInvalid."""
    with unsound("the archive"), zipfile.ZipFile(file) as archive:
        if {info.filename for info in archive.infolist()} != {KEY, SEALED, NOTE} or archive.getinfo(NOTE).file_size > MAX_KEY_BYTES:
            raise BundleInvalid("the archive", f"it holds other things than {KEY}, {SEALED} and {NOTE}")
        note = json.loads(archive.read(NOTE))
        if not isinstance(note, dict):
            raise BundleInvalid(NOTE, "it is no JSON object")
        return cast("dict[str, Any]", note)


def _age() -> Any:
    """The library, which has no types."""
    return import_module("pyrage")


@contextmanager
def _nameless(home: Path) -> Generator[IO[bytes]]:
    folder = home / "spool"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BundlesUnavailable(f"{folder}: {error.strerror or error}") from error
    with tempfile.TemporaryFile(dir=folder) as file:
        yield cast("IO[bytes]", file)
