"""Embedding by the real MiniLM model."""

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from stemma.embedding.models import EmbeddingModelUnavailable, embedding_spec, model_folder, open_embedder
from stemma.embedding.sentence_transformers_embedder import SentenceTransformerEmbedder, UnsoundVector

SENTENCES = [
    "The vault code is seven.",
    "The ferry leaves at noon.",
    "short",
    "Ein deutscher Satz über Bäume, und dann noch einer.",
    "word " * 200,
    "東京都の図書館は毎日開いています。",
    "",
]
LONG = "signal copper anchor harbour lantern valley " * 400


@pytest.fixture(scope="module")
def embedder() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(model_folder("minilm"), embedding_spec("minilm"), batch_size=4)


@pytest.fixture(scope="module")
def reference(embedder: SentenceTransformerEmbedder):
    embedder.load()
    assert embedder._loaded is not None
    return embedder._loaded.model


@pytest.fixture
def prefixed(tmp_path: Path) -> Path:
    """MiniLM as a model that wants prefixes, in a folder of its own."""
    folder = tmp_path / "prefixed"
    shutil.copytree(model_folder("minilm"), folder)
    config = json.loads((folder / "config_sentence_transformers.json").read_text())
    prompts = {"query": "query: ", "document": "passage: "}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config | {"prompts": prompts}))
    return folder


def test_vectors_are_those_of_sentence_transformers_for_texts_that_fit(embedder: SentenceTransformerEmbedder, reference):
    expected = reference.encode(SENTENCES, normalize_embeddings=True)
    np.testing.assert_allclose(embedder.embed_passages(SENTENCES), expected, atol=1e-5)


def test_vectors_are_float32_of_length_one_in_the_order_of_the_texts(embedder: SentenceTransformerEmbedder):
    vectors = embedder.embed_passages([*SENTENCES, LONG])
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(SENTENCES) + 1, 384))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for position in (0, 2, 4):
        np.testing.assert_allclose(vectors[position], embedder.embed_query(SENTENCES[position]), atol=1e-5)


def test_a_text_has_the_same_vector_alone_and_in_a_batch(embedder: SentenceTransformerEmbedder):
    texts = [LONG, *SENTENCES, LONG + "tail"]
    alone = np.stack([embedder.embed_passages([text])[0] for text in texts])
    np.testing.assert_allclose(embedder.embed_passages(texts), alone, atol=1e-5)


def test_tails_beyond_the_window_make_vectors_differ(embedder: SentenceTransformerEmbedder, shared: Path):
    folder = shared / "cases" / "05-embedder-cuts-silently"
    first, second = embedder.embed_passages([(folder / name).read_text("utf-8") for name in ("tail_a.txt", "tail_b.txt")])
    assert first @ second < 0.9999
    assert first @ embedder.embed_query("vault code") > second @ embedder.embed_query("vault code")


def test_every_window_counts_by_its_tokens(embedder: SentenceTransformerEmbedder, reference):
    half = "harbour " * 254  # one token each: fills the window beside the two special tokens
    other = "lantern " * 254
    expected = reference.encode([half, other], normalize_embeddings=True).sum(axis=0)
    np.testing.assert_allclose(embedder.embed_passages([half + other])[0], expected / np.linalg.norm(expected), atol=1e-5)


@pytest.mark.parametrize("n_words", [253, 254, 255, 508, 509, 1_000])
def test_no_window_is_longer_than_the_model_reads(embedder: SentenceTransformerEmbedder, reference, monkeypatch, n_words: int):
    lengths: list[int] = []
    forward = reference.forward
    monkeypatch.setattr(
        reference, "forward", lambda features: lengths.append(features["attention_mask"].sum(dim=1).max().item()) or forward(features)
    )
    embedder.embed_passages(["harbour " * n_words])
    assert max(lengths) <= 256


def test_a_megabyte_without_a_space_has_one_vector(embedder: SentenceTransformerEmbedder):
    vectors = embedder.embed_passages(["ACGT" * 250_000])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_no_texts_give_no_vectors(embedder: SentenceTransformerEmbedder):
    assert embedder.embed_passages([]).shape == (0, 384)


def test_a_lone_surrogate_and_a_nul_are_read_as_something(embedder: SentenceTransformerEmbedder):
    np.testing.assert_allclose(np.linalg.norm(embedder.embed_query("a\ud800b\0c")), 1, atol=1e-5)


def test_prefixes_stand_before_queries_and_before_every_window_of_a_passage(prefixed: Path):
    embedder = open_embedder(str(prefixed), batch_size=8)
    plain = open_embedder("minilm", batch_size=8)
    assert isinstance(embedder, SentenceTransformerEmbedder)
    np.testing.assert_allclose(embedder.embed_query("where is it"), plain.embed_query("query: where is it"), atol=1e-5)
    np.testing.assert_allclose(embedder.embed_passages(["it is here"]), plain.embed_passages(["passage: it is here"]), atol=1e-5)
    half, other = "harbour " * 252, "lantern " * 252  # beside two special tokens and two of the prefix
    windows = plain.embed_passages([f"passage: {half}", f"passage: {other}"]).sum(axis=0)
    np.testing.assert_allclose(embedder.embed_passages([half + other])[0], windows / np.linalg.norm(windows), atol=1e-5)


def test_threads_that_need_the_model_at_once_load_it_once(monkeypatch):
    from stemma.embedding import sentence_transformers_embedder as module

    loads: list[Path] = []
    load = module._load
    monkeypatch.setattr(module, "_load", lambda folder, spec: loads.append(folder) or load(folder, spec))
    embedder = open_embedder("minilm", batch_size=4)
    vectors: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: vectors.append(embedder.embed_query("harbour"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    np.testing.assert_allclose(np.stack(vectors), np.stack([vectors[0]] * 6), atol=1e-5)


def test_a_vector_that_is_none_is_reported_with_its_position(embedder: SentenceTransformerEmbedder, reference, monkeypatch):
    import torch

    forward = reference.forward

    def spoiled(features):
        output = forward(features)
        vectors = output["sentence_embedding"].clone()
        lengths = features["attention_mask"].sum(dim=1)
        vectors[lengths == lengths.max()] = torch.nan
        vectors[lengths == lengths.min()] = 0
        return {"sentence_embedding": vectors}

    monkeypatch.setattr(reference, "forward", spoiled)
    with pytest.raises(UnsoundVector) as caught:
        embedder.embed_passages(["one two three four", "one", "one two"])
    assert caught.value.positions == (0, 1)


def test_damaged_weights_are_a_clear_error(tmp_path: Path):
    folder = tmp_path / "damaged"
    shutil.copytree(model_folder("minilm"), folder)
    with (folder / "model.safetensors").open("r+b") as weights:
        weights.truncate(1_000)
    embedder = open_embedder(str(folder), batch_size=4)
    with pytest.raises(EmbeddingModelUnavailable, match="damaged cannot be loaded"):
        embedder.embed_query("harbour")


def test_a_configuration_that_contradicts_the_weights_is_a_clear_error(tmp_path: Path):
    folder = tmp_path / "contradiction"
    shutil.copytree(model_folder("minilm"), folder)
    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text(pooling.read_text().replace("384", "512"))
    with pytest.raises(EmbeddingModelUnavailable, match="contradiction"):
        open_embedder(str(folder), batch_size=4).embed_query("harbour")


def test_loading_writes_nothing_and_reaches_no_network():
    script = """
import socket
def refused(*args, **kwargs):
    raise AssertionError("network")
socket.socket.connect = refused
from stemma.embedding.models import open_embedder
open_embedder("minilm", batch_size=2).embed_passages(["harbour", "word " * 600])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={"PATH": "/usr/bin"}, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
