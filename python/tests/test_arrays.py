"""Tests that arrays of other libraries and with any strides give the same bytes as the same numbers in a plain NumPy array."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import mxgold


def test_strides(x):
    want = mxgold.quantize(x, "te-nvfp4")
    wide = np.full((64, 300), np.nan, np.float32)
    wide[:, 7:263] = x
    assert mxgold.quantize(wide[:, 7:263], "te-nvfp4") == want  # rows apart
    assert mxgold.quantize(np.asfortranarray(x), "te-nvfp4") == want
    assert mxgold.quantize(x[::-1, ::-1][::-1, ::-1], "te-nvfp4") == want
    assert np.array_equal(mxgold.quantize(x[::-1, ::-1]).codes, mxgold.quantize(np.ascontiguousarray(x[::-1, ::-1])).codes)
    assert np.array_equal(mxgold.quantize(x[::2, ::2]).codes, mxgold.quantize(x[::2, ::2].copy()).codes)
    broadcast = np.broadcast_to(x[:1], (8, 256))
    assert np.array_equal(mxgold.quantize(broadcast).codes, mxgold.quantize(broadcast.copy()).codes)


def test_misaligned(x):
    raw = bytearray(x.nbytes + 1)
    raw[1:] = x.tobytes()
    odd = np.ndarray(x.shape, np.float32, raw, 1)
    assert mxgold.quantize(odd, "te-nvfp4") == mxgold.quantize(x, "te-nvfp4")


def test_shapes(x):
    for shape in ((64 * 256,), (4, 16, 256), (2, 2, 16, 256), (1, 64, 1, 256)):
        q = mxgold.quantize(x.reshape(shape), "ocp-mxfp4")
        assert q.shape == shape and q.dequantize().shape == shape
        if shape[-1] == 256:
            assert np.array_equal(q.codes, mxgold.quantize(x, "ocp-mxfp4").codes)
    assert mxgold.quantize(np.float32(3)).shape == ()
    assert mxgold.quantize(x[:, :37]).codes.shape == (64, 32)  # 37 numbers make two blocks of 32, with two codes to a byte


@pytest.mark.parametrize("shape", [(0,), (0, 32), (5, 0), (3, 0, 32)])
def test_empty(shape):
    q = mxgold.quantize(np.zeros(shape, np.float32), "te-nvfp4")
    assert q.codes.size == 0 and q.dequantize().shape == shape
    assert mxgold.encode(np.zeros(shape, np.float32), "e2m1").shape == shape


def test_read_only_and_unchanged(x):
    before = x.copy()
    x.setflags(write=False)
    mxgold.quantize(x, "te-nvfp4")
    assert np.array_equal(x, before)


def test_float16(x):
    half = x.astype(np.float16)
    a, b = mxgold.quantize(half, "te-nvfp4"), mxgold.quantize(half.astype(np.float32), "te-nvfp4")
    assert np.array_equal(a.codes, b.codes) and np.array_equal(a.scales, b.scales) and a.tensor_scale == b.tensor_scale and a.dtype == "float16"
    assert np.array_equal(mxgold.encode(half, "e4m3"), mxgold.encode(half.astype(np.float32), "e4m3"))


def test_buffers_without_numpy(x):
    assert mxgold.quantize(memoryview(x), "te-nvfp4") == mxgold.quantize(x, "te-nvfp4")
    assert mxgold.decode(b"\x00\x02\x0f", "e2m1").tolist() == [0, 1, -6]


def test_array_interface_alone(x):
    class Holder:
        __array_interface__ = x.__array_interface__

    assert mxgold.quantize(Holder(), "te-nvfp4") == mxgold.quantize(x, "te-nvfp4")


def test_ml_dtypes(x):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    narrow = x.astype(ml_dtypes.bfloat16)
    a, b = mxgold.quantize(narrow, "te-nvfp4"), mxgold.quantize(narrow.astype(np.float32), "te-nvfp4")
    assert np.array_equal(a.codes, b.codes) and a.dtype == "bfloat16"
    assert a.dequantize("bfloat16").dtype == ml_dtypes.bfloat16
    codes = mxgold.encode(x, "e4m3").view(ml_dtypes.float8_e4m3fn)
    assert np.array_equal(mxgold.decode(codes, "e4m3"), codes.astype(np.float32))
    assert mxgold.formats()["e2m1"].dtype == np.dtype(ml_dtypes.float4_e2m1fn)
    fours = mxgold.encode(x, "e2m1").astype(np.uint8).view(ml_dtypes.float4_e2m1fn)
    assert np.array_equal(mxgold.decode(fours, "e2m1"), fours.astype(np.float32))


def test_torch(x):
    torch = pytest.importorskip("torch")
    want = mxgold.quantize(x, "te-nvfp4")
    tensor = torch.from_numpy(x)
    assert mxgold.quantize(tensor, "te-nvfp4") == want
    assert mxgold.quantize(tensor.clone().requires_grad_(), "te-nvfp4") == want
    assert mxgold.quantize(torch.nn.Parameter(tensor.clone()), "te-nvfp4") == want
    assert np.array_equal(mxgold.quantize(tensor.T, "te-nvfp4").codes, mxgold.quantize(np.ascontiguousarray(x.T), "te-nvfp4").codes)
    for dtype in (torch.bfloat16, torch.float16):
        narrow = tensor.to(dtype)
        a, b = mxgold.quantize(narrow, "te-nvfp4"), mxgold.quantize(narrow.float(), "te-nvfp4")
        assert np.array_equal(a.codes, b.codes) and np.array_equal(a.scales, b.scales)
    q = mxgold.quantize(tensor, "te-nvfp4", like=tensor)
    assert isinstance(q.codes, torch.Tensor) and q.codes.dtype == torch.uint8 and np.array_equal(q.codes.numpy(), want.codes)
    assert isinstance(q.dequantize(), torch.Tensor) and isinstance(mxgold.dequantize(q), torch.Tensor)
    assert np.array_equal(q.dequantize(), want.dequantize()) and isinstance(q.dequantize(like="numpy"), np.ndarray)
    values = want.dequantize("bfloat16", like=tensor)
    assert values.dtype == torch.bfloat16
    eights = tensor.clamp(-400, 400).to(torch.float8_e4m3fn)
    assert np.array_equal(mxgold.decode(eights, "e4m3"), eights.float().numpy())
    assert np.array_equal(mxgold.encode(tensor, "e2m1", like="torch").numpy(), mxgold.encode(x, "e2m1"))


def test_torch_negated():
    """A tensor with the negative bit, of which DLPack says nothing, gives the bytes of the numbers that it stands for, wherever an array is taken."""
    torch = pytest.importorskip("torch")

    class Own(torch.Tensor):
        pass

    t = torch.arange(1.0, 129.0).reshape(2, 64)
    negated = torch.complex(t, t + 1).conj().imag
    plain = np.ascontiguousarray(-(t + 1).numpy())
    want = mxgold.quantize(plain, "te-nvfp4")
    for given in (negated, negated.as_subclass(Own)):
        assert given.is_neg() and mxgold.quantize(given, "te-nvfp4") == want
    assert np.array_equal(mxgold.encode(negated, "e5m2"), mxgold.encode(plain, "e5m2"))
    assert np.array_equal(mxgold.hadamard(negated), mxgold.hadamard(plain))
    for how in (dict(x=negated, w=plain, dy=None), dict(x=plain, w=negated, dy=None), dict(x=plain, w=plain, bias=negated[:, 0])):
        numbers = {k: v.resolve_neg().numpy().copy() if isinstance(v, torch.Tensor) else v for k, v in how.items()}
        assert mxgold.linear(**how, recipe="recipe-nvfp4").y.tobytes() == mxgold.linear(**numbers, recipe="recipe-nvfp4").y.tobytes()
    mxgold.testing.assert_matches(negated, want.codes, want.scales, "te-nvfp4", want.tensor_scale)
    with pytest.raises(AssertionError):
        mxgold.testing.assert_matches(t + 1, want.codes, want.scales, "te-nvfp4", want.tensor_scale)
    with pytest.raises(mxgold.DtypeError, match="complex"):
        mxgold.quantize(torch.complex(t, t).conj(), "te-nvfp4")


def test_torch_packed_codes(x):
    torch = pytest.importorskip("torch")
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch has no float4_e2m1fn_x2")
    q = mxgold.quantize(x, "te-nvfp4")
    codes = torch.from_numpy(q.codes).view(torch.float4_e2m1fn_x2)
    scales = torch.from_numpy(q.scales).view(torch.float8_e4m3fn)
    assert mxgold.diff(q, codes=codes, scales=scales, tensor_scale=torch.tensor(q.tensor_scale)).equal
    assert np.array_equal(mxgold.dequantize(codes, scales, preset="te-nvfp4", tensor_scale=q.tensor_scale, shape=x.shape), q.dequantize())


def test_torch_flush_denormal(x):
    """The bytes are the same in a process that flushes subnormals."""
    torch = pytest.importorskip("torch")
    tiny = (x * np.float32(2.0**-140)).astype(np.float32)
    want = mxgold.quantize(tiny, "te-nvfp4")
    assert want.codes.any()
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush")
    try:
        assert mxgold.quantize(tiny, "te-nvfp4") == want
    finally:
        torch.set_flush_denormal(False)


def test_jax(x):
    jax = pytest.importorskip("jax")
    array = jax.numpy.asarray(x)
    want = mxgold.quantize(x, "te-nvfp4")
    assert mxgold.quantize(array, "te-nvfp4") == want
    narrow = array.astype(jax.numpy.bfloat16)
    assert np.array_equal(mxgold.quantize(narrow, "te-nvfp4").codes, mxgold.quantize(np.asarray(narrow.astype(np.float32)), "te-nvfp4").codes)
    assert "jax" in type(mxgold.decode(want.unpack(), "e2m1", like=array)).__module__


class OnDevice:
    """An array whose DLPack says that it is on a device, like torch tensors on a GPU, with a copy in memory for other protocols."""

    def __init__(self, array, copies):
        self.array = array
        if copies:
            self.__array_interface__ = array.__array_interface__

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **how):
        capsule = self.array.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        ctypes.c_int32.from_address(get(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)).value = 2
        return capsule


def test_on_a_device(x):
    for _ in range(3):
        assert mxgold.quantize(OnDevice(x, True), "te-nvfp4") == mxgold.quantize(x, "te-nvfp4")
        with pytest.raises(mxgold.Error, match=r"x: OnDevice on a device \(DLPack's type 2\), expected an array in memory"):
            mxgold.quantize(OnDevice(x, False), "te-nvfp4")


def test_like(x):
    """An array, a module or a name; whatever else is refused with one line, by every function that has like=."""
    q = mxgold.quantize(x, "te-nvfp4")
    calls = (
        lambda like: mxgold.quantize(x, "te-nvfp4", like=like).codes,
        lambda like: mxgold.quantize(x, "te-nvfp4", like=like).scales,
        lambda like: mxgold.quantize(x, "hif4", like=like).micro,
        lambda like: mxgold.gemm(q, q, like=like),
        lambda like: mxgold.encode(x, "e2m1", like=like),
        lambda like: mxgold.decode(q.unpack(), "e2m1", like=like),
        lambda like: mxgold.dequantize(q, like=like),
        lambda like: mxgold.linear(x, x, like=like).y,
        lambda like: mxgold.hadamard(x, like=like),
    )
    for call in calls:
        assert isinstance(call(None), np.ndarray)
        for like in (np, "numpy", x):
            assert type(call(like)) is np.ndarray and call(like).tobytes() == call(None).tobytes()
        for wrong in (5, "nympy", ctypes, [], object()):
            with pytest.raises(mxgold.DtypeError, match=r"^like: .*, expected an array of NumPy, .*, a module of these or its name$") as caught:
                call(wrong)
            assert caught.value.argument == "like"


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_like_of_modules(x, name):
    module = pytest.importorskip(name)
    array = module.zeros(1) if name == "torch" else module.numpy.zeros(1)
    q = mxgold.quantize(x, "te-nvfp4")
    for like in (module, name, array):
        for got, want in (
            (mxgold.quantize(x, "te-nvfp4", like=like).codes, q.codes),
            (mxgold.gemm(q, q, like=like), mxgold.gemm(q, q)),
            (mxgold.hadamard(x, like=like), mxgold.hadamard(x)),
        ):
            assert type(got) is type(array) and np.asarray(got).tobytes() == want.tobytes()


def test_complex_is_named():
    for dtype in ("complex64", "complex128"):
        with pytest.raises(mxgold.DtypeError, match=rf"^x: dtype {dtype}, expected float32, float16 or bfloat16$"):
            mxgold.quantize(np.zeros((2, 32), dtype))
