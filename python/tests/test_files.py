"""Tests reading and writing the project's files."""

from __future__ import annotations

import numpy as np
import pytest

import mxgold
from mxgold import FileFormatError


def test_there_and_back(x, tmp_path):
    for preset in ("te-nvfp4", "ocp-mxfp8-e4m3", "hif4"):
        q = mxgold.quantize(x.reshape(4, 16, 256), preset)
        path = tmp_path / f"{preset}.safetensors"
        q.save(path)
        back = mxgold.load(path)
        assert back == q and back.shape == (4, 16, 256) and back.preset == preset and str(back.spec) == preset
        q.save(path, dequantized=True)
        assert mxgold.load(path) == q


def test_layout(x, tmp_path):
    q = mxgold.quantize(x, "ocp-mxfp4")
    q.save(tmp_path / "q.safetensors", layout="nv128x4", pad=127)
    assert mxgold.load(tmp_path / "q.safetensors") == q
    from mxgold import _program

    q.save(tmp_path / "row.safetensors")
    _program.run(["convert", tmp_path / "row.safetensors", "--layout", "nv128x4", "--pad", "127", "-o", tmp_path / "theirs.safetensors"])
    assert (tmp_path / "theirs.safetensors").read_bytes() == (tmp_path / "q.safetensors").read_bytes()


def test_tensors(tmp_path):
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(3, dtype=np.int64), "c": np.uint8([1, 2]), "d": np.float16([0.5])}
    mxgold.save(tmp_path / "t.safetensors", arrays, {"note": "five"})
    back = mxgold.load(tmp_path / "t.safetensors")
    assert list(back) == list(arrays) and back.meta["note"] == "five"
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype and np.array_equal(back[name], array)
    mxgold.save(tmp_path / "t.npy", arrays["a"])
    assert np.array_equal(np.load(tmp_path / "t.npy"), arrays["a"]) and np.array_equal(mxgold.load(tmp_path / "t.npy")[""], arrays["a"])


def test_bfloat16(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.float32([1, -2.5]).astype(ml_dtypes.bfloat16)
    mxgold.save(tmp_path / "t.safetensors", {"w": values})
    back = mxgold.load(tmp_path / "t.safetensors")["w"]
    assert back.dtype == ml_dtypes.bfloat16 and np.array_equal(back, values)


def test_other_readers(x, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    q = mxgold.quantize(x, "te-nvfp4")
    q.save(tmp_path / "q.safetensors")
    theirs = safetensors.load_file(tmp_path / "q.safetensors")
    assert np.array_equal(theirs["codes"], q.codes) and np.array_equal(theirs["scales"], q.scales) and theirs["tensor_scale"][0] == q.tensor_scale


def test_bad_files(x, tmp_path):
    with pytest.raises(FileNotFoundError):
        mxgold.load(tmp_path / "none.npy")
    (tmp_path / "bad.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(FileFormatError):
        mxgold.load(tmp_path / "bad.safetensors")
    q = mxgold.quantize(x, "te-nvfp4")
    q.save(tmp_path / "q.safetensors")
    data = bytearray((tmp_path / "q.safetensors").read_bytes())
    data[-5] ^= 1  # a code or scale: the digest tells
    (tmp_path / "q.safetensors").write_bytes(data)
    with pytest.raises(FileFormatError):
        mxgold.load(tmp_path / "q.safetensors")
    with pytest.raises(ValueError):
        q.save(tmp_path / "q.npy")
    with pytest.raises(ValueError):
        mxgold.save(tmp_path / "q.txt", {"a": x})
    with pytest.raises(OSError):
        q.save(tmp_path / "no" / "folder.safetensors")
    assert not list(tmp_path.glob("*.tmp"))


def test_vectors(tmp_path):
    cases = mxgold.gen("ties", "te-nvfp4", shape=(4, 64))
    assert len(cases) == 1 and cases[0].x.shape == (4, 64)
    cases.save(tmp_path / "v.mxv")
    tensors = mxgold.load(tmp_path / "v.mxv")
    assert np.array_equal(tensors["x"].reshape(4, 64).view(np.float32), cases[0].x)
    assert np.array_equal(tensors["codes"], cases[0].expected.unpack())
    minimal = mxgold.gen("minimal", "te-nvfp4")
    assert len(minimal) > 1 and all(c.expected.codes.size for c in minimal)
