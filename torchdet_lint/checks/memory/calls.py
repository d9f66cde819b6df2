"""A call and the memory that it is given -> what it does with that: the transfer functions of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.memory.domain import NO_REFS, Buffer, Refs, State, some_part
from torchdet_lint.checks.memory.store import Store
from torchdet_lint.dataflow.syntax import bare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.module.module import Module


class Calls(Store):
    """Reads, writes and escapes of the arguments and the receiver of a call."""

    def __init__(self, module: Module, rule: Rule, buffers: Mapping[cst.CSTNode, Buffer]) -> None:
        super().__init__(buffers)
        self.module = module
        self.words = {role: frozenset(words) for role, words in rule.words.items()}

    def value(self, node: cst.CSTNode, state: State) -> Refs:
        """Evaluate `node`: what it shares memory with."""
        raise NotImplementedError

    def call(self, node: cst.Call, state: State) -> Refs:
        """What a call does to the memory that it is given."""
        receiver: Refs = NO_REFS
        word = ""
        if isinstance(node.func, cst.Attribute):
            receiver, word = self.value(node.func.value, state), node.func.attr.value
        elif isinstance(node.func, cst.Name):
            self.escape(state.env.get(node.func.value, NO_REFS), state)
        else:
            self.escape(self.value(node.func, state), state)
        if node in self.created:
            if self.created[node].word.endswith("_like"):
                self._arguments(node, state)
            else:
                self.pass_on(node, receiver, state, reads=False)
            made = self.allocate(node, state)
            if word == "resize_" and isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Name):
                state.name(node.func.value.value, made)
            return made
        if receiver:
            return self.method(node, receiver, word, state)
        names = self.module.resolve(node.func)
        return self.function(node, names, word, state)

    def pass_on(self, node: cst.Call, skipped: Refs, state: State, *, reads: bool) -> Refs:
        """Evaluate the arguments of `node`; those that are memory are read or escape; `out=` is written."""
        everything: Refs = NO_REFS
        for arg in node.args:
            if arg.keyword is not None and arg.keyword.value == "out":
                self.write(self.outputs(arg.value, state), state)
                continue
            for part in self._joined(node, arg.value) if reads else (arg.value,):
                refs = self.value(part, state)
                everything |= refs
                if reads:
                    self.read(refs - skipped, part, state)
                else:
                    self.escape(refs - skipped, state)
        return everything

    def _joined(self, call: cst.Call, node: cst.BaseExpression) -> Sequence[cst.BaseExpression]:
        """The parts of the display `node`, which `call` reads one by one; the display where what they make takes the
        place of one of them: `x = cat([x, empty(n)])` makes room, to be written."""
        if not isinstance(node, (cst.List, cst.Tuple)):
            return (node,)
        parts = [element.value for element in node.elements]
        around = self.module.parent(call)
        targets = {bare(one.target) for one in around.targets} if isinstance(around, cst.Assign) else set()
        unpacks = any(isinstance(one, cst.StarredElement) for one in node.elements)
        return (node,) if unpacks or not targets.isdisjoint(map(bare, parts)) else parts

    def outputs(self, node: cst.BaseExpression, state: State) -> Refs:
        """What `out=node` writes."""
        if isinstance(node, (cst.Tuple, cst.List)):
            refs = NO_REFS
            for element in node.elements:
                refs |= self.value(element.value, state)
                self.write(self.value(element.value, state), state)
            return NO_REFS
        return self.value(node, state)

    def method(self, node: cst.Call, refs: Refs, word: str, state: State) -> Refs:
        """`x.word(…)` where `x` is tracked memory."""
        words = self.words
        if word == "resize_":
            self.pass_on(node, NO_REFS, state, reads=False)
            self.enlarge(node, refs, state)
            return refs
        if word in words["fills"]:
            self.pass_on(node, NO_REFS, state, reads=True)
            self.write(refs, state)
            return refs
        if word in words["writes-parts"] or (word in words["accumulates"] and self._excludes_self(node)):
            self.pass_on(node, NO_REFS, state, reads=True)
            self.write(some_part(refs), state)
            return refs
        if word in words["metadata"]:
            self.pass_on(node, NO_REFS, state, reads=False)
            return NO_REFS
        if word in words["views"]:
            self.pass_on(node, NO_REFS, state, reads=False)
            return refs
        if word in words["part-views"]:
            self.pass_on(node, NO_REFS, state, reads=False)
            return some_part(refs)
        if word in words["reads"] or word in words["accumulates"] or word.rstrip("_") in words["reads"]:
            if self._ignores_input(node):
                self.pass_on(node, NO_REFS, state, reads=False)
                self.write(refs, state)
                return refs
            assert isinstance(node.func, cst.Attribute)
            self.read(some_part(refs) if word in words["picks"] else refs, node.func.value, state)
            self.pass_on(node, NO_REFS, state, reads=True)
            return NO_REFS if not word.endswith("_") else refs
        self.escape(refs, state)
        self.pass_on(node, NO_REFS, state, reads=False)
        return NO_REFS

    def _ignores_input(self, node: cst.Call) -> bool:
        """`beta=0` of `addmm` and its like: the input is not read, whatever stands in it."""
        for arg in node.args:
            if arg.keyword is not None and arg.keyword.value == "beta":
                value = self.module.value(arg.value)
                return not value.known or value.constant == 0
        return False

    def _excludes_self(self, node: cst.Call) -> bool:
        return any(
            arg.keyword is not None and arg.keyword.value == "include_self" and bare(arg.value) == "False"
            for arg in node.args
        )

    def function(self, node: cst.Call, names: Sequence[str], word: str, state: State) -> Refs:
        """A call whose receiver, if it has one, is not tracked memory."""
        for name in names:
            module, _, last = name.rpartition(".")
            if module == "torch.nn.init":
                return self._initialise(node, state)
            if module in self.words["modules"]:
                return self._torch(node, last, state)
            if module == "numpy":
                return self._numpy(node, last, state)
            if name in self.words["wrappers"]:
                return self._arguments(node, state)
            if name in self.words["looks"]:
                self._arguments(node, state)
                return NO_REFS
            if name in self.words["prints"] or _is_layer(name):
                self.pass_on(node, NO_REFS, state, reads=True)
                return NO_REFS
        if word.endswith("_") and (word[:-1] in self.words["reads"] or word in self.words["fills"]):
            self.pass_on(node, NO_REFS, state, reads=True)
            return NO_REFS
        self.pass_on(node, NO_REFS, state, reads=False)
        return NO_REFS

    def _torch(self, node: cst.Call, last: str, state: State) -> Refs:
        words = self.words
        if last in words["metadata"] or last.endswith("_like"):
            self._arguments(node, state)
            return NO_REFS
        if last in words["views"]:
            return self._arguments(node, state)
        if last in words["part-views"]:
            return some_part(self._arguments(node, state))
        if last in words["picks"] and node.args:
            picked = NO_REFS
            for arg in node.args[1:3] if last == "where" else node.args[:1]:
                picked |= (own := self.value(arg.value, state))
                self.read(some_part(own), arg.value, state)
            self.pass_on(node, picked, state, reads=True)
            return NO_REFS
        reads = last in words["reads"] and not self._excludes_self(node)
        if reads and self._ignores_input(node):
            reads = False
        self.pass_on(node, NO_REFS, state, reads=reads)
        return NO_REFS

    def _numpy(self, node: cst.Call, last: str, state: State) -> Refs:
        """NumPy's functions take the array to write as a further positional argument too."""
        if last in self.words["views"]:
            return self._arguments(node, state)
        if last in self.words["metadata"] or last.endswith("_like"):
            self._arguments(node, state)
        elif last in self.words["reads"] and node.args and not node.args[0].star:
            self.read(self.value(node.args[0].value, state), node.args[0].value, state)
            self.pass_on(node, NO_REFS, state, reads=False)
        else:
            self.pass_on(node, NO_REFS, state, reads=False)
        return NO_REFS

    def _arguments(self, node: cst.Call, state: State) -> Refs:
        refs = NO_REFS
        for arg in node.args:
            refs |= self.value(arg.value, state)
        return refs

    def _initialise(self, node: cst.Call, state: State) -> Refs:
        refs = self._arguments(node, state)
        self.write(refs, state)
        return refs


def _is_layer(name: str) -> bool:
    """Whether `name` is that of a layer of torch's, which reads its input."""
    return name.startswith("torch.nn.") and name.endswith("()")
