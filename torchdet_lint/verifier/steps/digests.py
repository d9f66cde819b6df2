"""The objects of a training step -> digests by group and name; those of tensors on a device are read one step later,
so that nothing waits for the device.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _python_dispatch

from torchdet_lint.verifier.recording import hashing
from torchdet_lint.verifier.recording.generators import generator_digests, state_digest
from torchdet_lint.verifier.recording.values import leaves, plain_digest
from torchdet_lint.verifier.steps.format import GENERATORS, GROUPS, LOSS, MEMORY, UNREADABLE, Definition, Part

if TYPE_CHECKING:
    from collections.abc import Iterable

_digest = hashing.hasher()


class Digests:
    """The digests of one step, by group and name. What is put under one name twice counts together, in order."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, list[int | _Place]]] = {}
        self._kinds: dict[tuple[str, str], str] = {}
        self._replicas: dict[tuple[str, str], str] = {}
        self._losses: dict[str, float | _Place] = {}
        self._queues: dict[torch.device, list[tuple[torch.Tensor, _Place]]] = {}
        self._arriving: list[tuple[Any, torch.Tensor, list[_Place]]] = []

    def __contains__(self, group: str) -> bool:
        return group in self._groups

    def put(self, group: str, name: str, values: Iterable[Any], replica: str = "") -> None:
        """Digest the leaves of `values` under a name; the tensors must not change before `launch` if they are on a
        device. `replica` says which ranks hold the same.
        """
        if replica:
            self._replicas[group, name] = replica
        parts = self._groups.setdefault(group, {}).setdefault(name, [])
        for value in values:
            if not isinstance(value, torch.Tensor):
                parts.append(plain_digest(value))
            elif hashing.on_other_device(value):
                place = _Place()
                self._queues.setdefault(value.device, []).append((value, place))
                self._kinds[group, name] = value.device.type
                parts.append(place)
            else:
                parts.append(digest := _digest(value))
                if digest == hashing.UNHASHABLE:
                    self._kinds[group, name] = UNREADABLE

    def loss(self, name: str, value: Any) -> None:
        """Digest a loss, and keep its value where it is one number."""
        self.put(LOSS, name, leaves(value))
        if isinstance(value, torch.Tensor):
            if value.numel() != 1 or value.is_complex():
                return
            if value.device.type == "cuda":
                place = self._losses[name] = _Place()
                self._arrive(value.detach().double().reshape(1).view(torch.int64), [place])
                return
            value = value.detach().item()
        if isinstance(value, (int, float)):
            self._losses[name] = float(value)

    def take(self, other: Digests) -> None:
        """Put what another one of the same step has, once it is launched."""
        for group, named in other._groups.items():
            for name, parts in named.items():
                self._groups.setdefault(group, {}).setdefault(name, []).extend(parts)
        self._kinds.update(other._kinds)
        self._arriving += other._arriving

    def generators(self, starts: Mapping[str, int], own: Mapping[str, Any]) -> None:
        """Digest the states of the global generators, 0 for one that stands at its `starts` still, and of `own` ones:
        how a generator that nothing uses was seeded is no difference.
        """
        found = self._groups.setdefault(GENERATORS, {})
        for name, digest in global_generators().items():
            found[name] = [digest if digest != starts.get(name) else 0]
        for name, generator in own.items():
            found[name] = [generator_digest(generator)]

    def launch(self) -> None:
        """Begin to work out what lies on devices: what was put so far may change afterwards."""
        for device, queue in self._queues.items():
            with _python_dispatch._disable_current_modes(), torch.no_grad():
                vector = hashing.many_on_device([tensor for tensor, _ in queue])
            assert device == vector.device
            self._arrive(vector, [place for _, place in queue])
        self._queues.clear()

    def _arrive(self, vector: torch.Tensor, places: list[_Place]) -> None:
        """Fetch `vector` to the host without waiting, where the device can."""
        event = None
        with _python_dispatch._disable_current_modes():
            fetched = vector.to("cpu", non_blocking=vector.device.type == "cuda")
            if vector.device.type == "cuda":
                event = torch.cuda.Event()  # type: ignore[no-untyped-call]
                event.record(torch.cuda.current_stream(vector.device))
        self._arriving.append((event, fetched, places))

    def finished(self) -> tuple[Definition, list[int], list[float], list[int]]:
        """The definition of the step, the digests of its groups, its losses, and the digests of its parts. Waits for
        the devices.
        """
        self.launch()
        for event, vector, places in self._arriving:
            if event is not None:
                event.synchronize()
            for place, value in zip(places, vector.tolist(), strict=True):
                place.value = value
        self._arriving.clear()
        names = [group for group in GROUPS if group in self._groups]
        groups, totals, parts = [], [], []
        for group in names:
            own = [_together(found) for found in self._groups[group].values()]
            groups.append((group, tuple(self._part(group, name) for name in self._groups[group])))
            totals.append(_together(own))
            parts += own
        losses = [_float(value) for value in self._losses.values()]
        return Definition(tuple(groups), tuple(self._losses)), totals, losses, parts

    def _part(self, group: str, name: str) -> Part:
        key = (group, name)
        return Part(name, self._kinds.get(key, MEMORY), self._replicas.get(key, ""))


class _Place:
    """A number that a device still works out."""

    value = 0


def _together(parts: Iterable[int | _Place]) -> int:
    """One digest of several, in order; of one, itself."""
    numbers = [(part.value if isinstance(part, _Place) else part) & hashing.MASK for part in parts]
    if len(numbers) == 1:
        return numbers[0]
    return hashing.digest_bytes(struct.pack(f"<{len(numbers)}Q", *numbers), len(numbers))


def _float(value: float | _Place) -> float:
    if isinstance(value, _Place):
        return float(struct.unpack("<d", struct.pack("<q", value.value))[0])
    return value


def global_generators() -> dict[str, int]:
    """The digests of the states of the global generators, of CUDA's where they are in use."""
    found = dict(zip(("python", "numpy", "torch"), generator_digests(), strict=True))
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        for number in range(torch.cuda.device_count()):
            found[f"cuda:{number}"] = hashing.general(torch.cuda.get_rng_state(number))
    return found


def is_generator(value: Any) -> bool:
    """Whether it is a generator of torch's, NumPy's or `random`'s."""
    return any(hasattr(value, name) for name in ("bit_generator", "getstate", "initial_seed"))


def generator_digest(generator: Any) -> int:
    """The digest of the state of a generator of torch's, NumPy's or `random`'s."""
    if hasattr(generator, "initial_seed"):
        return hashing.general(generator.get_state())
    if hasattr(generator, "bit_generator"):
        return _together(map(plain_digest, leaves(generator.bit_generator.state)))
    if hasattr(generator, "getstate"):
        return hash(generator.getstate()[1]) & hashing.MASK
    return state_digest(generator.get_state(legacy=False))


def batch_parts(batch: Any) -> dict[str, Any]:
    """A batch by the names of what it holds: its keys, or the places in a tuple; one name for anything else."""
    if isinstance(batch, Mapping):
        return {str(key): batch[key] for key in batch}
    if isinstance(batch, (list, tuple)) and len(batch) <= 16:
        return {str(number): item for number, item in enumerate(batch)}
    return {"batch": batch}
