"""Findings and edits -> the data of the language server protocol, in the client's own count of columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from lsprotocol import types
from pygls.uris import from_fs_path

from torchdet_lint import __version__
from torchdet_lint.catalogue.explain import brief
from torchdet_lint.engine.filtering import UNUSED
from torchdet_lint.engine.linter import SYNTAX
from torchdet_lint.fixes.suppression import Comments
from torchdet_lint.source.decoding import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pygls.workspace import PositionCodec

    from torchdet_lint.catalogue.loading import Catalogue
    from torchdet_lint.finding import Edit, Finding, Fix, Location

SOURCE = "torchdet-lint"

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}


class Sheet(NamedTuple):
    """The documents of one file: itself, or the code cells of a notebook in order. `uris` and `lines` go together;
    `versions` are those that the client gave."""

    path: str
    uris: tuple[str, ...]
    lines: tuple[list[str], ...]
    versions: tuple[int | None, ...]
    is_notebook: bool = False

    def number(self, cell: int | None) -> int:
        """The number of the document that holds the code cell `cell` (from 1); `None` is the file itself."""
        return 0 if cell is None else cell - 1

    def data(self) -> bytes:
        """The text as the linter reads it: for a notebook JSON with its code cells."""
        texts = ["".join(lines) for lines in self.lines]
        if not self.is_notebook:
            return texts[0].encode("utf-8", "surrogatepass")
        cells: list[dict[str, Any]] = [
            {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text}
            for text in texts
        ]
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


class Translator:
    """Places of findings to ranges in the documents of a client; `codec` counts columns as the client does, and
    `catalogue` gives the rules that a file is judged by."""

    def __init__(self, codec: PositionCodec, catalogue: Callable[[str], Catalogue]) -> None:
        self.codec = codec
        self.catalogue = catalogue

    def range(self, sheet: Sheet, cell: int | None, start: Location, end: Location) -> types.Range:
        """The range from `start` up to `end`, rows and columns from 1 in characters, of a document of `sheet`."""
        lines = sheet.lines[sheet.number(cell)]
        inner = types.Range(
            types.Position(start.row - 1, start.column - 1), types.Position(end.row - 1, end.column - 1)
        )
        return self.codec.range_to_client_units(lines, inner)

    def diagnostics(
        self, sheet: Sheet, findings: Sequence[Finding], sheets: Mapping[str, Sheet]
    ) -> dict[str, list[types.Diagnostic]]:
        """The diagnostics of every document of `sheet`, by URI: an empty list where there is nothing to say."""
        told: dict[str, list[types.Diagnostic]] = {uri: [] for uri in sheet.uris}
        for finding in findings:
            index = sheet.number(finding.cell)
            if index >= len(sheet.uris):
                continue
            told[sheet.uris[index]].append(self._diagnostic(sheet, finding, sheets))
        return told

    def _diagnostic(self, sheet: Sheet, finding: Finding, sheets: Mapping[str, Sheet]) -> types.Diagnostic:
        help_ = f"\n{finding.help}" if finding.help else ""
        return types.Diagnostic(
            range=self.range(sheet, finding.cell, finding.location, finding.end_location),
            message=f"{finding.message}{help_}",
            severity=_SEVERITIES[finding.severity],
            code=finding.code,
            code_description=types.CodeDescription(finding.page) if finding.page else None,
            source=SOURCE,
            tags=[types.DiagnosticTag.Unnecessary] if finding.code == UNUSED else None,
            related_information=list(self._related(finding, sheets)) or None,
        )

    def _related(self, finding: Finding, sheets: Mapping[str, Sheet]) -> Iterator[types.DiagnosticRelatedInformation]:
        for other in finding.related:
            sheet = sheets.get(other.filename)
            if sheet is not None and not sheet.is_notebook:
                place = self.range(sheet, None, other.location, other.location)
                uri = sheet.uris[0]
            else:
                at = types.Position(other.location.row - 1, other.location.column - 1)
                place, uri = types.Range(at, at), from_fs_path(other.filename) or other.filename
            yield types.DiagnosticRelatedInformation(types.Location(uri, place), other.message)

    # ------------------------------------------------------------------ actions

    def actions(
        self, sheet: Sheet, uri: str, findings: Sequence[Finding], wanted: types.Range
    ) -> Iterator[types.CodeAction]:
        """What can be done about the findings of the document `uri` that touch `wanted`."""
        for finding in findings:
            index = sheet.number(finding.cell)
            place = self.range(sheet, finding.cell, finding.location, finding.end_location)
            if sheet.uris[index] != uri or place.end < wanted.start or wanted.end < place.start:
                continue
            told = [self._diagnostic(sheet, finding, {})]
            if finding.fix is not None:
                yield self._fix(sheet, finding, finding.fix, told)
            if finding.code not in (SYNTAX, UNUSED):
                yield self._suppression(sheet, finding, told)

    def _fix(self, sheet: Sheet, finding: Finding, fix: Fix, told: list[types.Diagnostic]) -> types.CodeAction:
        safe = fix.applicability == "safe"
        return types.CodeAction(
            title=f"{finding.code}: {fix.message}{'' if safe else ' (unsafe)'}",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=told,
            is_preferred=safe,
            edit=self.edit(sheet, fix.edits),
        )

    def _suppression(self, sheet: Sheet, finding: Finding, told: list[types.Diagnostic]) -> types.CodeAction:
        names = {rule.name: code for code, rule in self.catalogue(sheet.path).rules.items()}
        comments = Comments(decode(sheet.path, sheet.data()), names)
        fix = comments.fix((finding.cell, finding.noqa_row), [finding.code])
        return types.CodeAction(
            title=f"{finding.code}: Suppress on this line",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=told,
            edit=self.edit(sheet, fix.edits),
        )

    def edit(self, sheet: Sheet, edits: Sequence[Edit]) -> types.WorkspaceEdit:
        """The edits of a fix, each in its document."""
        changes: dict[int, list[types.TextEdit]] = {}
        for one in edits:
            place = self.range(sheet, one.cell, one.location, one.end_location)
            changes.setdefault(sheet.number(one.cell), []).append(types.TextEdit(place, one.content))
        return self._changes(changes, sheet)

    def replacement(self, sheet: Sheet, texts: Sequence[str]) -> types.WorkspaceEdit:
        """An edit that gives the documents of `sheet` the texts `texts`, where they differ."""
        changes: dict[int, list[types.TextEdit]] = {}
        for index, (lines, text) in enumerate(zip(sheet.lines, texts, strict=True)):
            if "".join(lines) != text:
                end = types.Position(len(lines), 0)
                changes[index] = [types.TextEdit(types.Range(types.Position(0, 0), end), text)]
        return self._changes(changes, sheet)

    @staticmethod
    def _changes(changes: Mapping[int, list[types.TextEdit]], sheet: Sheet) -> types.WorkspaceEdit:
        return types.WorkspaceEdit(
            document_changes=[
                types.TextDocumentEdit(
                    types.OptionalVersionedTextDocumentIdentifier(sheet.uris[index], sheet.versions[index]), edits
                )
                for index, edits in sorted(changes.items())
            ]
        )

    # ------------------------------------------------------------------ rules

    def hover(self, sheet: Sheet, uri: str, findings: Sequence[Finding], at: types.Position) -> types.Hover | None:
        """The rules of the findings at a position, as Markdown."""
        told = []
        for finding in findings:
            place = self.range(sheet, finding.cell, finding.location, finding.end_location)
            if sheet.uris[sheet.number(finding.cell)] == uri and place.start <= at <= place.end:
                rule = self.catalogue(sheet.path).rules.get(finding.code)
                if rule is not None:
                    told.append(brief(rule))
        if not told:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(dict.fromkeys(told))))


def about() -> types.ServerInfo:
    """What the server calls itself."""
    return types.ServerInfo(SOURCE, __version__)
