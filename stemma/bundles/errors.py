"""What can be wrong with a bundle, or with the place that it lies in.

BundleInvalid, BundleIncompatible, BundleLocked   this bundle cannot be restored: damaged, of another kind, or without its passphrase
UnknownBundle, InvalidBundleName, CorpusNotEmpty  what was asked for cannot be done
CorpusIncomplete, BundlesUnavailable, BundlesBusy it cannot be done now
"""

from stemma.errors import RequestError, Unavailable


class BundleInvalid(RequestError):
    """A bundle is damaged, or was made by hand: nothing of it was restored."""

    code, remedy = "bundle_invalid", "Nothing was changed; restore another bundle, or fetch this one again from where it was copied."

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field, self.reason = field, reason

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}. {self.remedy}"


class BundleIncompatible(RequestError):
    """A bundle is sound, but of another format, corpus or embedding model than this installation's."""

    code, remedy = "bundle_incompatible", "Nothing was changed, and bundles are never converted; set up what the bundle was made with."

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field, self.reason = field, reason

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}. {self.remedy}"


class BundleLocked(RequestError):
    """A bundle is encrypted, and the passphrase is missing or wrong."""

    code, remedy = "bundle_locked", "Give the passphrase that it was exported with; without it nobody can read it."


class UnknownBundle(RequestError):
    """No bundle of this name lies among the bundles."""

    code, remedy = "unknown_bundle", "`stemma bundles` lists them."


class InvalidBundleName(RequestError):
    """A name cannot be part of a bundle's file name."""

    code, remedy = "invalid_bundle_name", "Use up to 40 lower-case letters, digits and hyphens."


class CorpusNotEmpty(RequestError):
    """A restore was to go into an empty corpus, and documents are published."""

    code, remedy = "corpus_not_empty", "Leave --into-empty out to replace them: a restore merges nothing."


class CorpusIncomplete(Unavailable):
    """A published chunk has no vector, so a bundle would not hold the whole corpus."""

    code, remedy = "corpus_incomplete", "`stemma audit --repair` mends it; then export again."


class BundlesUnavailable(Unavailable):
    """The place of the bundles cannot be listed, read or written, or has too little room."""

    code, remedy = "bundles_unavailable", "Check the disk or bucket: space, permissions, connection."


class BundlesBusy(Unavailable):
    """Another process is exporting to the same place, or is restoring."""

    code, remedy = "bundles_busy", "Wait until it is done, then repeat the command."
