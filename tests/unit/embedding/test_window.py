"""Sizes of chunks that pass the model's window are warned of, in the unit of the strategy."""

import pytest

from stemma.embedding.window import window_warning
from stemma.settings import Settings, load_settings


def settings(tmp_path, **given) -> Settings:
    return load_settings(home=tmp_path, chunk_overlap=0, **given)


@pytest.mark.parametrize(
    ("strategy", "contextualizer", "fits", "exceeds"),
    [
        ("markdown_aware", "structural", 896, 897),
        ("markdown_aware", "none", 1_024, 1_025),
        ("token_based", "structural", 224, 225),
        ("docling_hybrid", "none", 256, 257),
        ("semantic", "structural", 200, 800),
    ],
)
def test_a_chunk_and_its_context_must_fit_the_window_together(tmp_path, strategy, contextualizer, fits, exceeds):
    chosen = {"chunking_strategy": strategy, "contextualizer": contextualizer}
    assert window_warning(settings(tmp_path, chunk_size=fits, **chosen)) is None
    warning = window_warning(settings(tmp_path, chunk_size=exceeds, **chosen))
    assert warning is not None and f"CHUNK_SIZE {exceeds}" in warning and "256 tokens that minilm reads" in warning


def test_the_default_size_fits(tmp_path):
    assert window_warning(load_settings(home=tmp_path)) is None
