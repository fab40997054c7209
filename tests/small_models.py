"""Embedding models for tests, as local sentence-transformers folders: made here, nothing downloaded."""

import json
import shutil
from pathlib import Path

from stemma.embedding.models import MINILM, model_folder


def random_model(folder: Path, *, dimension: int = 32, seed: int = 0) -> str:
    """A one-layer BERT with random weights and MiniLM's tokenizer; returns the value of EMBEDDING_MODEL."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import AutoTokenizer, BertConfig, BertModel

    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(str(model_folder(MINILM)))
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=dimension, num_hidden_layers=1, num_attention_heads=2, intermediate_size=dimension * 2,
        max_position_embeddings=256,
    )  # fmt: skip
    bare = folder.with_name(f"{folder.name}-bare")
    BertModel(config).save_pretrained(str(bare))
    tokenizer.save_pretrained(str(bare))
    transformer = Transformer(str(bare), max_seq_length=128)
    SentenceTransformer(modules=[transformer, Pooling(dimension, "mean"), Normalize()], device="cpu").save(str(folder))
    shutil.rmtree(bare)
    return str(folder)


def prefixed_minilm(folder: Path) -> str:
    """MiniLM that reads `query: ` and `passage: ` before its texts: the same weights and dimension, other vectors."""
    shutil.copytree(model_folder(MINILM), folder, copy_function=lambda source, target: Path(target).symlink_to(source))
    config = folder / "config_sentence_transformers.json"
    fields = json.loads(config.read_text("utf-8")) if config.exists() else {}
    config.unlink(missing_ok=True)
    config.write_text(json.dumps(fields | {"prompts": {"query": "query: ", "passage": "passage: "}}), "utf-8")
    return str(folder)


def random_cross_encoder(folder: Path, *, n_scores: int = 1) -> str:
    """A one-layer cross-encoder with random weights and MiniLM's tokenizer; returns the value of RERANK_MODEL."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(str(model_folder(MINILM)))
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=256, num_labels=n_scores, initializer_range=0.5,
    )  # fmt: skip
    bare = folder.with_name(f"{folder.name}-bare")
    BertForSequenceClassification(config).save_pretrained(str(bare))
    tokenizer.save_pretrained(str(bare))
    CrossEncoder(str(bare), device="cpu", local_files_only=True).save_pretrained(str(folder))
    shutil.rmtree(bare)
    return str(folder)
