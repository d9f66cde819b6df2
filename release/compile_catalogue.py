"""Rule files -> `compiled.msgpack`, the catalogue decoded, before hatchling makes a wheel or an editable install."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileCatalogue(BuildHookInterface[Any]):
    """Writes the catalogue beside the code that reads it, and adds it to the wheel, although git ignores it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file of this checkout."""
        sys.path.insert(0, self.root)
        try:
            from torchdet_lint.catalogue import compiled, loading, texts
        finally:
            sys.path.remove(self.root)
        shipped = texts.read(texts.shipped())
        path = Path(self.root, "torchdet_lint/catalogue", compiled.PATH.name)
        compiled.write(path, loading.parse(shipped), texts.fingerprint_of(shipped))
        build_data["artifacts"].append(str(path.relative_to(self.root)))
