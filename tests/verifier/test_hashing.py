from __future__ import annotations

import ctypes
import warnings

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

from torchdet_lint.verifier.recording import hashing  # noqa: E402

of = hashing.hasher()


def values(**more: object) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(6, 7, generator=generator, **more)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.flatten()[torch.randperm(42)].view(6, 7),
        lambda t: t.flip(0),
        lambda t: t.T.contiguous(),
        lambda t: t.reshape(7, 6),
        lambda t: torch.cat([-t[:1], t[1:]]),
        lambda t: t + torch.finfo(t.dtype).eps * t,
    ],
)
def test_another_tensor_has_another_digest(change):
    assert of(values()) != of(change(values()))


def test_bits_count_not_values():
    plus, minus = torch.tensor([0.0]), torch.tensor([-0.0])
    nan = torch.tensor([float("nan")])
    assert of(plus) != of(minus)
    assert of(nan) == of(nan.clone())


@pytest.mark.parametrize(
    "view", [lambda t: t, lambda t: t[::2], lambda t: t[:, 1:3], lambda t: t[1], lambda t: t[:, :1]]
)
def test_gaps_in_memory_do_not_count(view):
    seen = view(values())
    assert of(seen) == of(seen.clone(memory_format=torch.contiguous_format))


def test_strides_of_dimensions_of_size_one_do_not_count():
    plain = torch.arange(6.0).view(6, 1, 1)
    assert of(plain) == of(plain.as_strided((6, 1, 1), (1, 99, 7)))
    image = torch.arange(24.0).view(2, 3, 4, 1).to(memory_format=torch.channels_last)
    assert of(image) == of(image.as_strided(image.shape, (12, 1, 3, 555)))


def permuted() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    image = torch.randn(3, 3, 4, 5, generator=generator)
    return {
        "transposed": values().T,
        "channels last": image.to(memory_format=torch.channels_last),
        "part of a storage": image.to(memory_format=torch.channels_last)[1:],
        "complex": torch.complex(values(), values() + 1).T,
        "conjugate": torch.complex(values(), values() + 1).T.conj(),
        "negated": torch._neg_view(values().T),
    }


@pytest.mark.parametrize("name", sorted(permuted()))
def test_dense_memory_in_another_order_is_digested_without_a_copy_and_notices_every_change(name, monkeypatch):
    seen = permuted()[name]
    before = of(seen)
    assert before == of(permuted()[name].clone(memory_format=torch.preserve_format).resolve_conj().resolve_neg())
    assert before not in (of(seen.flip(0)), of(seen.flip(1)), of(seen.transpose(0, 1)), of(seen.contiguous() + 1))
    if not (seen.is_neg() or seen.is_conj()):
        monkeypatch.setattr(torch.Tensor, "contiguous", lambda *_: pytest.fail("copied"))
        assert of(seen) == before


def test_a_conjugate_has_another_digest():
    number = torch.complex(values(), values() + 1)
    assert of(number) != of(number.conj()) == of(number.conj().resolve_conj())


def special() -> dict[str, torch.Tensor]:
    dense = values()
    return {
        "sparse coo": (dense * (dense > 0.5)).to_sparse(),
        "sparse csr": (dense * (dense > 0.5)).to_sparse_csr(),
        "jagged": torch.nested.nested_tensor([dense[:2, :3], dense[:4, :3]], layout=torch.jagged),
        "nested": torch.nested.nested_tensor([dense[:2, :3], dense[:4, :5]]),
        "quantized": torch.quantize_per_tensor(dense, 0.1, 3, torch.quint8),
        "per channel": torch.quantize_per_channel(dense, torch.full((6,), 0.1), torch.zeros(6), 0, torch.qint8),
        "complex": torch.complex(dense, dense + 1),
        "conjugate": torch.complex(dense, dense + 1).conj(),
        "bfloat16": dense.bfloat16(),
        "float8": dense.to(torch.float8_e4m3fn),
        "bool": dense > 0,
        "scalar": dense.sum(),
        "expanded": dense[:1].expand(6, 7),
        "subclass": torch.nn.Parameter(dense),
    }


def test_a_tensor_without_memory_is_digested_by_what_it_stands_for():
    assert of(torch._efficientzerotensor((6, 7))) == of(torch.zeros(6, 7))
    with torch._subclasses.fake_tensor.FakeTensorMode(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert of(torch.zeros(6, 7)) == hashing.UNHASHABLE


@pytest.mark.parametrize("name", sorted(special()))
def test_every_kind_of_tensor_has_a_digest_that_repeats(name):
    one = of(special()[name])
    assert one == of(special()[name])
    assert one != hashing.UNHASHABLE


@pytest.mark.parametrize("name", ["sparse coo", "jagged", "nested", "quantized", "complex", "float8"])
def test_every_kind_of_tensor_notices_a_change(name, monkeypatch):
    before = of(special()[name])
    shifted = values() + 1
    monkeypatch.setitem(globals(), "values", lambda: shifted)
    assert of(special()[name]) != before


def test_empty_tensors_differ_by_shape():
    assert of(torch.empty(0, 3)) != of(torch.empty(3, 0))


def test_tensors_without_data_have_no_digest():
    assert of(torch.empty(3, device="meta")) == hashing.UNHASHABLE


def test_the_fallback_is_as_sensitive():
    stdlib = hashing.hasher(hashing._stdlib)
    base = values()
    assert stdlib(base) == stdlib(base.clone())
    assert stdlib(base) != stdlib(base.flip(0))
    big = torch.randn(5000, generator=torch.Generator().manual_seed(1))
    assert stdlib(big) != stdlib(big.flip(0))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.uint8, torch.bool, torch.complex64]
)
def test_the_device_digest_is_order_sensitive(dtype):
    flat = (torch.randn(3_000, generator=torch.Generator().manual_seed(2)).clamp(0) * 9).to(dtype)
    swapped = flat.clone()
    other = next(i for i in range(1, 3_000) if flat[i] != flat[0])
    swapped[0], swapped[other] = flat[other].clone(), flat[0].clone()
    assert hashing.multilinear(flat) == hashing.multilinear(flat.clone())
    assert hashing.multilinear(flat) != hashing.multilinear(swapped)


def test_the_device_digest_spans_chunks(monkeypatch):
    flat = torch.arange(100, dtype=torch.int32)
    monkeypatch.setattr(hashing, "CHUNK", 16)
    hashing._weights.cache_clear()
    moved = torch.cat([flat[16:32], flat[:16], flat[32:]])
    assert hashing.multilinear(flat) != hashing.multilinear(moved)
    hashing._weights.cache_clear()


def test_the_memory_of_every_type_of_numbers_is_read_whole():
    for dtype, table in hashing.blocks().items():
        tensor = torch.zeros(2, 3, dtype=dtype)
        _, at = table[tensor.shape]
        assert ctypes.sizeof(at(tensor.data_ptr())) == tensor.nbytes
        assert table[torch.Size([0, 3])][1] is None
