"""Bundles that others made or that were damaged: refused by name, whatever is wrong, with bounded memory and nothing written."""

import io
import json
import random
import struct
import tracemalloc
import zipfile
from hashlib import sha256

import numpy as np
import pytest
from small_bundle import packed, rezipped, small_rows

from stemma.bundles.archive import Archive
from stemma.bundles.contents import Contents, verify_contents
from stemma.bundles.errors import BundleIncompatible, BundleInvalid


@pytest.fixture(scope="module")
def good() -> bytes:
    return packed(*small_rows())


def verified(bundle: bytes):
    return verify_contents(Contents(Archive(io.BytesIO(bundle))))


def members_of(bundle: bytes) -> list[tuple[str, str]]:
    return [(member.name, member.sha256) for member in Archive(io.BytesIO(bundle)).manifest.members]


def test_a_good_bundle_is_sound(good):
    assert (verified(good).n_documents, verified(good).n_chunks) == (3, 6)


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("format", "other-backup", "bundle_incompatible"), ("version", 2, "bundle_incompatible"), ("corpus", "graph", "bundle_incompatible"),
        ("version", "1", "bundle_invalid"), ("counts", {"documents": 3}, "bundle_invalid"), ("embedding_dim", 9, "bundle_invalid"),
        ("embedding_dim", 10**30, "bundle_invalid"), ("members", [], "bundle_invalid"), ("created_at", "yesterday", "bundle_invalid"),
    ],
)  # fmt: skip
def test_a_manifest_that_says_something_else_is_refused_with_its_field(field, value, code):
    with pytest.raises((BundleInvalid, BundleIncompatible)) as refused:
        verified(packed(*small_rows(), edit=lambda manifest: manifest.update({field: value})))
    assert refused.value.code == code and (field in refused.value.field or refused.value.field == "embeddings.f32")


def edited(kind: str, at: int, **columns):
    rows, matrix = small_rows()
    rows[kind][at] |= columns
    return packed(rows, matrix)


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "/etc/passwd", "a/../../b", "a//b", "a/./b", "a/", "Stemma-Exports/x.zip", "nul\0", "x" * 2_001],
)  # fmt: skip
def test_a_path_that_leads_out_of_the_library_is_refused_in_the_rows_too(path):
    with pytest.raises(BundleInvalid, match="source_path"):
        verified(edited("sources", 1, source_path=path))


@pytest.mark.parametrize("disk_path", [b"../x", b"/etc/passwd", b"a/../../b", b"stemma-exports/a", b"a\0b", b"plans/deeper/pier 1.md"])
def test_a_path_on_disk_is_confined_as_well(disk_path):
    with pytest.raises(BundleInvalid):
        verified(edited("sources", 1, disk_path=disk_path.hex()))


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("documents", {"doc_id": "0" * 16}), ("documents", {"text": "Another text."}), ("documents", {"n_chunks": 3}), ("documents", {"n_chunks": 1}),
        ("documents", {"source_id": "00000000-0000-0000-0000-000000000009"}), ("documents", {"surprise": 1}), ("documents", {"title": "a\0b"}),
        ("documents", {"blocks": [{"kind": "heading", "char_start": 5, "char_end": 9_999, "level": 1}]}),
        ("chunks", {"content": "Another content."}), ("chunks", {"chunk_index": 1}), ("chunks", {"original_index": 0}), ("chunks", {"char_start": 1}),
        ("chunks", {"text_hash": "0" * 64}), ("chunks", {"contextualized_content": "x"}), ("chunks", {"n_tokens": 8}), ("chunks", {"metadata": {}}),
        ("chunks", {"doc_id": "f" * 16}), ("sources", {"source_id": "00000000-0000-0000-0000-000000000001"}), ("sources", {"container_id": "00000000-0000-0000-0000-000000000003"}),
    ],
)  # fmt: skip
def test_a_row_that_contradicts_the_others_is_refused(kind, columns):
    at = 2 if kind == "chunks" else 1
    with pytest.raises(BundleInvalid):
        verified(edited(kind, at, **columns))


@pytest.mark.parametrize("number", [np.nan, np.inf, 3.0])
def test_a_vector_that_no_model_made_is_refused(number):
    rows, matrix = small_rows()
    matrix[4, 2] = number
    with pytest.raises(BundleInvalid, match=r"embeddings\.f32"):
        verified(packed(rows, matrix))


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a\\b", "C:evil", "extra.jsonl", "documents.jsonl/", "pictures/nothash"])
def test_a_member_that_is_none_of_the_format_is_refused(good, name):
    with pytest.raises(BundleInvalid):
        verified(rezipped(good, lambda members: members | {name: b"harmless"}))


def test_a_link_a_second_member_of_one_name_and_a_packed_bomb_are_refused(good):
    target = io.BytesIO(good)
    with zipfile.ZipFile(target, "a") as archive:
        link = zipfile.ZipInfo("runs.jsonl-link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(BundleInvalid, match="link"):
        verified(target.getvalue())
    target = io.BytesIO(good)
    with zipfile.ZipFile(target, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("runs.jsonl", b"")
    with pytest.raises(BundleInvalid, match="two members"):
        verified(target.getvalue())
    zeros = b"\0" * 40_000_000
    with pytest.raises(BundleInvalid, match="unpacks"):
        verified(rezipped(good, lambda members: members | {"runs.jsonl": zeros}))


@pytest.mark.parametrize(
    "line", [b"[" * 1_000_000, b'{"settings": ' + b'{"a":' * 500_000, b"\xff\xfe", b'{"run_id": "\\ud800"}', b"1e999999999"]
)
def test_json_that_was_made_to_hurt_is_refused_with_little_memory(line):
    bundle = rezipped(
        packed(*small_rows(), edit=lambda manifest: manifest["members"][2].update(size_bytes=len(line), sha256=sha256(line).hexdigest())),
        lambda members: members | {"runs.jsonl": line},
    )
    tracemalloc.start()
    with pytest.raises(BundleInvalid, match=r"runs\.jsonl"):
        verified(bundle)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000_000


def test_a_directory_that_claims_more_than_the_file_holds_is_not_read(good):
    end = good.rfind(b"PK\x05\x06")
    bundle = good[: end + 12] + struct.pack("<L", 4_000_000_000) + good[end + 16 :]
    with pytest.raises(BundleInvalid, match="directory"):
        verified(bundle)


def test_a_bundle_that_ends_too_early_is_refused_wherever_it_ends():
    rows, matrix = small_rows(300)
    bundle = packed(rows, matrix)
    for size in [*range(0, len(bundle), 4_096), len(bundle) - 1]:
        with pytest.raises(BundleInvalid):
            verified(bundle[:size])


def mutation(bundle: bytes, seed: int) -> bytes:
    """A bit flipped, bytes cut out, two members exchanged, or the manifest edited."""
    chance = random.Random(seed)
    data = bytearray(bundle)
    match seed % 4:
        case 0:
            at = chance.randrange(len(data))
            data[at] ^= 1 << chance.randrange(8)
        case 1:
            at = chance.randrange(len(data))
            del data[at : at + chance.randint(1, 64)]
        case 2:

            def exchange(members):
                one, other = chance.sample(sorted(members.keys() - {"bundle.json"}), 2)
                members[one], members[other] = members[other], members[one]

            return rezipped(bundle, exchange)
        case _:

            def edit(members):
                manifest = json.loads(members["bundle.json"])
                holder, key = chance.choice(
                    [(manifest, key) for key in manifest] + [(member, key) for member in manifest["members"] for key in member]
                )
                holder[key] = chance.choice([None, 0, -1, 10**12, "", "x", [], {}, True, "0" * 64])
                members["bundle.json"] = json.dumps(manifest).encode()

            return rezipped(bundle, edit)
    return bytes(data)


def refused_or_equal(good: bytes, seed: int) -> None:
    """Every mutation is refused, or leaves every row and byte as it was."""
    changed = mutation(good, seed)
    try:
        verified(changed)
    except (BundleInvalid, BundleIncompatible):
        return
    assert members_of(changed) == members_of(good), seed


@pytest.mark.parametrize("seed", range(40))
def test_a_mutated_bundle_is_refused_or_provably_the_same(good, seed):
    refused_or_equal(good, seed)


@pytest.mark.slow
def test_five_hundred_mutated_bundles_are_refused_or_provably_the_same(good):
    for seed in range(40, 540):
        refused_or_equal(good, seed)
