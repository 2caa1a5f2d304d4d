#!/usr/bin/env python3
"""Writes golden/bad/: malformed .npy and .safetensors files, and beside each FILE.expect, the one line that `mxgold inspect FILE` must say.

    tools/make-bad.py [FOLDER]     default golden/bad under the current folder

The messages are typed here by hand; tests/run-cli.sh compares. Python's standard library is enough."""
import json
import os
import struct
import sys

CASES = []


def bad(name, data, message):
    CASES.append((name, data, message))


def npy(dictionary, data=b"", version=(1, 0), length=None):
    header = dictionary.encode("latin-1") if isinstance(dictionary, str) else dictionary
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    fmt = "<H" if version[0] == 1 else "<I"
    return b"\x93NUMPY" + bytes(version) + struct.pack(fmt, len(header) if length is None else length) + header + data


def npy_of(descr="'<f4'", order="False", shape="(2, 3)", data=bytes(24)):
    return npy(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}", data)


def st(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(begin, end, shape, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


# ---- .npy -----------------------------------------------------------------------------------------------------------------------------
GOOD = npy_of()
assert len(GOOD) == 128 + 24
bad("empty.npy", b"", "byte 0: no .npy magic, expected \\x93NUMPY and a version")
bad("magic-alone.npy", GOOD[:6], "byte 0: no .npy magic, expected \\x93NUMPY and a version")
bad("not-npy.npy", b"PK\x03\x04 this is a zip file", "byte 0: no .npy magic, expected \\x93NUMPY and a version")
bad("version-9.npy", b"\x93NUMPY\x09\x00" + GOOD[8:], "byte 6: .npy version 9.0, expected 1.0, 2.0 or 3.0")
bad("version-2-cut.npy", b"\x93NUMPY\x02\x00\x76\x00", "byte 8: the file ends within the header length, expected 4 bytes")
bad("header-longer-than-file.npy", npy_of(data=b"")[:8] + b"\xff\xff" + GOOD[10:],
    "byte 8: the header claims to take 65535 bytes, expected at most the 142 that follow")
bad("header-cut.npy", GOOD[:60], "byte 8: the header claims to take 118 bytes, expected at most the 50 that follow")
bad("header-4-gib.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", bytes(24), (2, 0), 0xFFFFFFFF),
    "byte 8: the header claims to take 4294967295 bytes, expected at most the 142 that follow")
bad("truncated.npy", GOOD[:-1], "byte 151: the file ends early, expected 24 bytes of data after the header, found 23")
bad("no-data.npy", GOOD[:128], "byte 128: the file ends early, expected 24 bytes of data after the header, found 0")
bad("oversized.npy", GOOD + b"\0", "byte 152: there is more after the data, expected 24 bytes of data after the header, found 25")
bad("lying-shape.npy", npy_of(shape="(2, 4)"), "byte 152: the file ends early, expected 32 bytes of data after the header, found 24")
bad("lying-dtype.npy", npy_of(descr="'<f8'"), "byte 152: the file ends early, expected 48 bytes of data after the header, found 24")
bad("big-endian.npy", npy_of(descr="'>f4'"), "byte 20: big-endian dtype '>f4', expected little-endian '<f4'")
bad("fortran.npy", npy_of(order="True"), "byte 44: Fortran order, expected C order: save numpy.ascontiguousarray(x)")
bad("complex.npy", npy_of(descr="'<c8'"), "byte 20: dtype '<c8', expected one of <f4 <f2 <f8 |u1 <u2 <u4 <u8 |i1 <i2 <i4 <i8 |b1")
bad("object.npy", npy_of(descr="'|O'"), "byte 20: dtype '|O', expected one of <f4 <f2 <f8 |u1 <u2 <u4 <u8 |i1 <i2 <i4 <i8 |b1")
bad("void-bf16.npy", npy_of(descr="'<V2'"), "byte 20: dtype '<V2' has no type, expected '<f4', '<f2' or an integer "
    "(save bfloat16 as uint16 and say --dtype bf16)")
bad("structured.npy", npy_of(descr="[('a', '<f4'), ('b', '<f4')]"), "byte 20: structured dtype, expected one of the plain dtypes such as '<f4', "
    "'<f2' or '|u1'")
bad("empty-dtype.npy", npy_of(descr="''"), "byte 20: dtype '', expected one of <f4 <f2 <f8 |u1 <u2 <u4 <u8 |i1 <i2 <i4 <i8 |b1")
bad("dimension-overflow.npy", npy_of(shape="(99999999999999999999,)"), "byte 61: a dimension overflows, expected less than 2^63")
bad("shape-overflow.npy", npy_of(shape="(4294967296, 4294967296)"), "byte 60: the shape overflows, expected a product of dimensions below 2^63 "
    "bytes")
bad("shape-overflow-empty.npy", npy_of(shape="(0, 4294967296, 4294967296)", data=b""), "byte 60: the shape overflows, expected a product of "
    "dimensions below 2^63 bytes")
bad("shape-overflow-bytes.npy", npy("{'shape': (1152921504606846976,), 'descr': '<f8', 'fortran_order': False}"),
    "byte 20: the shape overflows, expected a product of dimensions below 2^63 bytes")
bad("dimension-negative.npy", npy_of(shape="(-1, 3)"), "byte 61: byte 0x2d in the .npy header, expected a dimension or )")
bad("shape-number.npy", npy_of(shape="(6)"), "byte 62: byte 0x29 in the .npy header, expected a comma: (3,) is a shape, (3) a number")
bad("nine-dimensions.npy", npy_of(shape="(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "byte 60: too many dimensions, expected at most 8")
bad("no-dict.npy", npy("hello"), "byte 10: byte 0x68 in the .npy header, expected {")
bad("dict-open.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),"), "byte 128: the .npy header ends here, expected 'descr', "
    "'fortran_order' or 'shape'")
bad("string-open.npy", npy("{'descr: "), "byte 11: byte 0x27 in the .npy header, expected 'descr', 'fortran_order' or 'shape'")
bad("key-missing.npy", npy("{'descr': '<f4', 'shape': (2, 3)}", bytes(24)), "byte 10: a key is missing, expected 'descr', 'fortran_order' and "
    "'shape'")
bad("key-twice.npy", npy("{'descr': '<f4', 'descr': '<f2', 'fortran_order': False, 'shape': (2, 3)}", bytes(24)),
    "byte 27: key 'descr' is there twice, expected each key once")
bad("key-unknown.npy", npy("{'descr': '<f4', 'order': False, 'shape': (2, 3)}", bytes(24)),
    "byte 27: key 'order' in the .npy header, expected 'descr', 'fortran_order' or 'shape'")
bad("code-in-header.npy", npy("{'descr': __import__('os').system('true'), 'fortran_order': False, 'shape': (2, 3)}", bytes(24)),
    "byte 20: byte 0x5f in the .npy header, expected a dtype such as '<f4'")
bad("text-after-dict.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } + 1", bytes(24)),
    "byte 70: byte 0x2b in the .npy header, expected only spaces up to the end of the header")

# ---- .safetensors ---------------------------------------------------------------------------------------------------------------------
ONE = {"a": tensor(0, 24, [2, 3])}
N = len(json.dumps(ONE, separators=(",", ":")))
bad("empty.safetensors", b"", "byte 0: the file ends, expected 8 bytes of header length")
bad("length-cut.safetensors", st(ONE)[:5], "byte 5: the file ends, expected 8 bytes of header length")
bad("not-safetensors.safetensors", b"PK\x03\x04 this is a zip file", "byte 0: the header claims to take 7595448452415441744 bytes, expected at "
    "most 100000000")
bad("header-above-100-mb.safetensors", st(ONE, bytes(24), 100000001), "byte 0: the header claims to take 100000001 bytes, expected at most "
    "100000000")
bad("header-longer-than-file.safetensors", st(ONE, bytes(24), 1000), f"byte 0: the header claims to take 1000 bytes, expected at most the {N + 24} "
    "that follow")
bad("header-empty.safetensors", st(b""), "byte 8: no JSON object, expected {")
bad("header-array.safetensors", st(b'["a"]'), "byte 8: no JSON object, expected {")
bad("bad-json.safetensors", st(b'{"a":}'), "byte 14: bad JSON: unexpected token near '}', expected a header of tensors")
bad("json-cut.safetensors", st(ONE, bytes(24), N - 1), f"byte {8 + N - 1}: bad JSON: '}}' expected near end of file, expected a header of tensors")
bad("text-after-json.safetensors", st(b'{} x'), "byte 12: bad JSON: end of file expected near 'x', expected a header of tensors")
bad("deep.safetensors", st(b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"), "byte 15: JSON nested 4 deep, expected at most 3 levels")
bad("not-utf8.safetensors", st(b'{"a\xff":{}}'), "byte 11: bad JSON: unable to decode byte 0xff near '\"a', expected a header of tensors")
bad("integer-overflow.safetensors", st(b'{"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,24]}}', bytes(24)),
    "byte 57: bad JSON: too big integer near '99999999999999999999', expected a header of tensors")
bad("duplicate-name.safetensors", st(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', b"ab"),
    "byte 64: bad JSON: duplicate object key near '\"a\"', expected a header of tensors")
bad("entry-number.safetensors", st({"a": 1}), "byte 9: tensor 'a' is not an object, expected dtype, shape and data_offsets")
bad("dtype-missing.safetensors", st({"a": {"shape": [1], "data_offsets": [0, 1]}}, b"a"), "byte 9: tensor 'a' has no dtype, expected \"dtype\": "
    "\"F32\" or another")
KNOWN = "F32 F16 BF16 F64 U8 U16 U32 U64 I8 I16 I32 I64 BOOL F8_E4M3 F8_E5M2 F8_E8M0"
bad("dtype-unknown.safetensors", st({"a": tensor(0, 24, [2, 3], "F33")}, bytes(24)), f"byte 9: tensor 'a' has dtype 'F33', expected one of {KNOWN}")
bad("dtype-f4.safetensors", st({"a": tensor(0, 3, [2, 3], "F4")}, bytes(3)), "byte 9: the rows of tensor 'a' are not whole bytes of 4-bit codes")
bad("shape-missing.safetensors", st({"a": {"dtype": "U8", "data_offsets": [0, 1]}}, b"a"), "byte 9: tensor 'a' has no shape, expected \"shape\": [..]")
bad("shape-negative.safetensors", st({"a": tensor(0, 24, [-2, -3])}, bytes(24)), "byte 9: dimension 0 of tensor 'a' is not a count, expected an "
    "integer from 0")
bad("shape-fraction.safetensors", st({"a": tensor(0, 24, [2, 3.0])}, bytes(24)), "byte 9: dimension 1 of tensor 'a' is not a count, expected an "
    "integer from 0")
bad("shape-overflow.safetensors", st({"a": tensor(0, 24, [1 << 32, 1 << 32])}, bytes(24)), "byte 9: the shape of tensor 'a' overflows, expected a "
    "product of dimensions below 2^63 bytes")
bad("shape-overflow-bytes.safetensors", st({"a": tensor(0, 0, [1 << 62])}), "byte 9: the shape of tensor 'a' overflows, expected a product of "
    "dimensions below 2^63 bytes")
bad("shape-overflow-empty.safetensors", st({"a": tensor(0, 0, [1 << 40, 1 << 40, 0])}), "byte 9: the shape of tensor 'a' overflows, expected a "
    "product of dimensions below 2^63 bytes")
bad("nine-dimensions.safetensors", st({"a": tensor(0, 4, [1] * 9)}, bytes(4)), "byte 9: tensor 'a' has 9 dimensions, expected at most 8")
bad("offsets-missing.safetensors", st({"a": {"dtype": "U8", "shape": [1]}}, b"a"), "byte 9: tensor 'a' has no place, expected \"data_offsets\": "
    "[begin, end]")
bad("offsets-negative.safetensors", st({"a": tensor(-1, 0, [1], "U8")}, b"a"), "byte 9: tensor 'a' has no place, expected \"data_offsets\": [begin, "
    "end]")
bad("offsets-three.safetensors", st({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]}}, b"a"),
    "byte 9: tensor 'a' has no place, expected \"data_offsets\": [begin, end]")
bad("offsets-reversed.safetensors", st({"a": tensor(24, 0, [2, 3])}, bytes(24)), "byte 9: tensor 'a' ends at 0 before it begins at 24, expected begin "
    "<= end")
bad("lying-shape.safetensors", st({"a": tensor(0, 24, [2, 4])}, bytes(24)), "byte 9: tensor 'a' takes 24 bytes by its offsets, expected 32 by its "
    "dtype and shape")
bad("lying-dtype.safetensors", st({"a": tensor(0, 24, [2, 3], "F16")}, bytes(24)), "byte 9: tensor 'a' takes 24 bytes by its offsets, expected 12 by "
    "its dtype and shape")
bad("truncated.safetensors", st(ONE, bytes(23)), "byte 9: tensor 'a' ends at data byte 24, expected at most the 23 that the file holds")
bad("oversized.safetensors", st(ONE, bytes(25)), f"byte {8 + N + 24}: 1 bytes after the last tensor, expected the end of the file")
bad("data-without-tensor.safetensors", st({}, b"abc"), "byte 10: 3 bytes after the last tensor, expected the end of the file")
bad("overlap.safetensors", st({"a": tensor(0, 4, [1]), "b": tensor(2, 6, [1])}, bytes(6)), "byte 62: tensor 'b' begins at data byte 2 inside tensor "
    "'a', expected 4")
bad("same-place.safetensors", st({"a": tensor(0, 4, [1]), "b": tensor(0, 4, [1])}, bytes(4)), "byte 62: tensor 'b' begins at data byte 0 inside "
    "tensor 'a', expected 4")
bad("hole.safetensors", st({"a": tensor(0, 4, [1]), "b": tensor(6, 10, [1])}, bytes(10)), "byte 62: a hole of 2 bytes before tensor 'b', expected it "
    "to begin at data byte 4")
bad("hole-at-start.safetensors", st({"a": tensor(4, 8, [1])}, bytes(8)), "byte 9: a hole of 4 bytes before tensor 'a', expected it to begin at data "
    "byte 0")
bad("metadata-array.safetensors", st({"__metadata__": ["x"]}), "byte 9: __metadata__ is not an object, expected strings by name")
bad("metadata-number.safetensors", st({"__metadata__": {"x": 1}}), "byte 25: metadata 'x' is not a string, expected a string")
bad("control-in-name.safetensors", st(b'{"a\\u001b[31m\\n":{"dtype":"F9"}}'), f"byte 8: tensor 'a?[31m?' has dtype 'F9', expected one of {KNOWN}")

# ---- neither --------------------------------------------------------------------------------------------------------------------------
bad("neither.bin", b"some text that is no tensor file\n", "byte 0: unknown kind of file, expected the magic of .npy or the header of .safetensors or .mxv")


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "golden/bad"
    os.makedirs(folder, exist_ok=True)
    for name, data, message in CASES:
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
        with open(os.path.join(folder, name + ".expect"), "w") as f:
            f.write(f"mxgold: {name}: {message}\n")


if __name__ == "__main__":
    main()
