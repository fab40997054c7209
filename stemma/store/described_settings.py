"""Every setting with its value and where the value comes from, as the shell, the page and the API show it."""

import re
from dataclasses import dataclass
from typing import Any

from stemma.settings import SETTINGS, Settings, with_overrides
from stemma.store.app_settings import read_overrides, valid_overrides
from stemma.store.postgres import Connection


@dataclass(frozen=True)
class DescribedSetting:
    """A setting as it is now."""

    name: str
    value: Any
    source: str
    """default, env or override."""
    stage: str
    description: str
    allowed: str
    overridable: bool


def describe_settings(base: Settings, connection: Connection | None) -> list[DescribedSetting]:
    """Every setting, in the order of the class. Without a connection no override is known."""
    overrides = valid_overrides(base, read_overrides(connection)) if connection is not None else {}
    values = with_overrides(base, overrides).model_dump(mode="json")
    return [
        DescribedSetting(
            name=name,
            value=_without_password(values[name.lower()]),
            source="override" if name in overrides else "env" if name.lower() in base.model_fields_set else "default",
            stage=info.stage,
            description=info.description,
            allowed=info.allowed,
            overridable=info.overridable,
        )
        for name, info in SETTINGS.items()
    ]


def _without_password(value: Any) -> Any:
    return re.sub(r"(://[^/@:]*):[^/@]+@", r"\1:***@", value) if isinstance(value, str) else value
