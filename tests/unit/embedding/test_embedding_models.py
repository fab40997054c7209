"""What a model folder says of itself; no model is loaded."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stemma.embedding.models import EmbeddingModelUnavailable, embedding_spec, model_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of MiniLM's folder whose weights are a few bytes."""
    copy = tmp_path / "my-model"
    shutil.copytree(model_folder("minilm"), copy, ignore=shutil.ignore_patterns("*.safetensors"))
    (copy / "model.safetensors").write_bytes(b"weights")
    return copy


def rewrite(file: Path, **changes: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_minilm_is_described_without_loading_it():
    spec = embedding_spec("minilm")
    assert (spec.model, spec.dimension, spec.max_tokens, spec.pooling) == ("minilm", 384, 256, "mean")
    assert (spec.query_prefix, spec.passage_prefix) == ("", "")


def test_a_spec_needs_no_heavy_import():
    check = (
        "import sys; from stemma.embedding.models import embedding_spec; embedding_spec('minilm');"
        "sys.exit(bool({'torch', 'transformers', 'sentence_transformers', 'tokenizers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_the_spec_names_no_path_of_this_machine(folder: Path):
    spec = embedding_spec(str(folder))
    assert spec.model == "my-model"
    assert str(folder.parent) not in repr(spec)


def test_the_revision_is_the_same_wherever_the_folder_lies(folder: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere" / "my-model"
    shutil.copytree(folder, elsewhere)
    assert embedding_spec(str(elsewhere)) == embedding_spec(str(folder))


@pytest.mark.parametrize(
    "name",
    [
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "vocab.txt",
        "modules.json",
        "1_Pooling/config.json",
        "sentence_bert_config.json",
    ],
)
def test_a_changed_byte_in_a_deciding_file_changes_the_revision(folder: Path, name: str):
    before = embedding_spec(str(folder)).revision
    file = folder / name
    file.write_bytes(file.read_bytes() + b" ")
    assert embedding_spec(str(folder)).revision != before


@pytest.mark.parametrize("name", ["README.md", "data_config.json", ".gitattributes", "pytorch_model.bin"])
def test_a_file_that_decides_nothing_leaves_the_revision(folder: Path, name: str):
    before = embedding_spec(str(folder)).revision
    (folder / name).write_text("changed")
    assert embedding_spec(str(folder)).revision == before


@pytest.mark.parametrize("passage_name", ["document", "passage"])
def test_prefixes_come_from_the_models_prompts(folder: Path, passage_name: str):
    rewrite(folder / "config_sentence_transformers.json", prompts={"query": "query: ", passage_name: "passage: "})
    spec = embedding_spec(str(folder))
    assert (spec.query_prefix, spec.passage_prefix) == ("query: ", "passage: ")
    assert spec.spec_hash != embedding_spec("minilm").spec_hash


def test_the_newer_form_of_the_configuration_is_read_too(folder: Path):
    (folder / "1_Pooling" / "config.json").write_text(
        '{"embedding_dimension": 384, "pooling_mode": ["cls", "mean"], "include_prompt": true}'
    )
    (folder / "sentence_bert_config.json").write_text('{"transformer_task": "feature-extraction"}')
    rewrite(folder / "tokenizer_config.json", model_max_length=200)
    spec = embedding_spec(str(folder))
    assert (spec.dimension, spec.pooling, spec.max_tokens) == (768, "cls+mean", 200)


def test_a_dense_module_decides_the_dimension(folder: Path):
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(
        json.dumps([*modules, {"idx": 3, "name": "3", "path": "3_Dense", "type": "x.modules.dense.Dense"}])
    )
    (folder / "3_Dense").mkdir()
    (folder / "3_Dense" / "config.json").write_text('{"in_features": 384, "out_features": 64}')
    assert embedding_spec(str(folder)).dimension == 64


@pytest.mark.parametrize("missing", ["modules.json", "config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json"])
def test_an_incomplete_folder_is_refused_by_name(folder: Path, missing: str):
    (folder / missing).unlink()
    if missing == "config.json":
        (folder / "sentence_bert_config.json").unlink()  # else nothing needs it before the model is loaded
    with pytest.raises(EmbeddingModelUnavailable, match="my-model") as caught:
        embedding_spec(str(folder))
    assert caught.value.code == "embedding_model_unavailable"
    assert str(folder.parent) not in str(caught.value)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"a": 1}', '[{"type": "Transformer"}]', '[{"idx": 0, "path": "", "type": "x.Router"}]']
)
def test_an_unsound_list_of_modules_is_refused(folder: Path, content: str):
    (folder / "modules.json").write_text(content)
    with pytest.raises(EmbeddingModelUnavailable):
        embedding_spec(str(folder))


@pytest.mark.parametrize("model", ["/no/such/folder", "sentence-transformers/all-MiniLM-L6-v2", "", "\0"])
def test_a_model_that_is_not_here_is_refused(model: str):
    with pytest.raises(EmbeddingModelUnavailable, match="EMBEDDING_MODEL"):
        embedding_spec(model)
