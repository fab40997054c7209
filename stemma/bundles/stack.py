"""This installation as a bundle meets it: the embedding model and the recipes that are wanted here."""

from dataclasses import asdict, dataclass

from stemma.bundles.errors import BundleIncompatible, BundleInvalid
from stemma.bundles.manifest import Manifest
from stemma.embedding.embedder import EmbeddingSpec
from stemma.embedding.models import embedding_spec
from stemma.settings import CORPUS_STAGES, Settings
from stemma.stages.installation import Installation, wanted_fingerprints

_SWITCHES = {"true": "structural", "false": "none"}


@dataclass(frozen=True)
class Stack:
    """What a bundle must agree with, and what it may differ in."""

    spec: EmbeddingSpec
    settings: dict[str, str]
    fingerprints: dict[str, str]
    """Stage -> fingerprint."""


@dataclass(frozen=True)
class Difference:
    """A setting, or a stage's code or model, that differs: what is restored will be stale from there on."""

    name: str
    bundle: str
    here: str


def stack_of(here: Installation) -> Stack:
    """The stack as it is now. Raises EmbeddingModelUnavailable."""
    settings = here.settings()
    return Stack(embedding_spec(settings.embedding_model), ingest_settings(settings), asdict(wanted_fingerprints(settings)))


def ingest_settings(settings: Settings) -> dict[str, str]:
    """The settings that the corpus is made with, each in the form that the environment would have."""
    values = {name: value for stage in CORPUS_STAGES for name, value in settings.of_stage(stage).items()}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}


def require_compatible(manifest: Manifest, stack: Stack) -> None:
    """Raises BundleIncompatible, naming the field, unless the vectors of the bundle are of the model that is wanted here."""
    names = {manifest.embedding_model, manifest.embedding_model.rsplit("/", 1)[-1]}
    if stack.spec.model not in names:
        raise BundleIncompatible(
            "embedding_model", f"the bundle's vectors are of {manifest.embedding_model}, EMBEDDING_MODEL is {stack.spec.model}"
        )
    if manifest.embedding_dim != stack.spec.dimension:
        raise BundleIncompatible(
            "embedding_dim", f"the bundle's vectors have {manifest.embedding_dim} dimensions, {stack.spec.model} has {stack.spec.dimension}"
        )
    if manifest.embedding_spec is None:
        return
    try:
        spec = EmbeddingSpec(**manifest.embedding_spec)
        same = spec.spec_hash == stack.spec.spec_hash
    except TypeError as error:
        raise BundleInvalid("embedding_spec", "it is not of the form of this format") from error
    if not same:
        raise BundleIncompatible(
            "embedding_spec", f"{spec.model} is of revision {str(spec.revision)[:12]} in the bundle, {stack.spec.revision[:12]} here"
        )


def drift(manifest: Manifest, stack: Stack) -> list[Difference]:
    """What the bundle's corpus was made with and is otherwise here, by name."""
    theirs = dict(manifest.ingest_settings)
    if (switch := theirs.pop("CONTEXTUALIZE", None)) is not None:
        theirs.setdefault("CONTEXTUALIZER", _SWITCHES.get(switch.lower(), switch))
    differing = [
        Difference(name, value, stack.settings[name]) for name, value in sorted(theirs.items()) if stack.settings.get(name, value) != value
    ]
    if differing:
        return differing
    return [
        Difference(f"recipe of {stage}", theirs[:12], stack.fingerprints[stage][:12])
        for stage, theirs in sorted(manifest.fingerprints.items())
        if stack.fingerprints.get(stage, theirs) != theirs
    ]
