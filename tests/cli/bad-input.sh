# Tests that bad inputs and options are refused with one line and exit status 2, and leave nothing behind.
: "${scratch:?run by tests/run-cli.sh}"
# FILE DESCR SHAPE FORMAT VALUES: struct format of one value, values as a Python expression
npy() {
  python3 - "$@" <<'P'
import struct, sys
name, descr, shape, code, values = sys.argv[1:]
v = list(eval(values, {"nan": float("nan"), "inf": float("inf")}))
h = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
h += " " * (-(len(h) + 11) % 64) + "\n"
open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode() + struct.pack("<%d%s" % (len(v), code), *v))
P
}
npy a.npy '<f4' '(2, 32)' f 'range(64)'
npy n.npy '<f4' '(2, 32)' f '[nan if i == 35 else i for i in range(64)]'
npy i.npy '<i4' '(4,)' i 'range(4)'
npy d.npy '<f8' '(4,)' d 'range(4)'
npy u.npy '<u2' '(4,)' H 'range(4)'
npy b.npy '<u4' '(64,)' I 'range(64)'
npy c.npy '|u1' '(17,)' B 'range(17)'

no() { refuses "mxgold: $1" "$mxgold" "${@:2}"; }
q() { no "$1" quantize "${@:2}" -o o.safetensors; }
e() { no "$1" encode "${@:2}" -o o.npy; }

# Presets, keys and values, with the nearest names.
q "quantize: --preset 'te-nvpf4' is unknown, nearest: te-nvfp4" a.npy --preset te-nvpf4
q "--set: unknown key 'scale.rul'; nearest: scale.rule" a.npy --set scale.rul=even
q "--set: unknown key 'recip'; NVIDIA's rcp.approx as of sm_90 is in chain=flashinfer_fast_sm90 (preset flashinfer-fast-sm90)" a.npy --set recip=approx_sm90
q "--set: scale.rule=evn: expected one of floor, ceil, even, value, quest, hif4" a.npy --set scale.rule=evn
q "--set: 'scale.rule': expected key=value" a.npy --set scale.rule
q "--set: sr.bits=25: expected an integer 0..24" a.npy --set sr.bits=25
q "none.json: cannot be opened, expected a spec in JSON" a.npy --spec none.json
echo '{"scale.rule": "evn"}' >s.json
q "s.json: scale.rule=evn: expected one of floor, ceil, even, value, quest, hif4" a.npy --spec s.json
rm s.json

# Keys that exclude each other, both named.
q "chain excludes scale.rule: a chain computes the value of scale.rule=value" a.npy --set chain=te
q "tensor.norm=nv excludes scale.form=encode: nv normalises the decode form" a.npy --set tensor.norm=nv,scale.form=encode,scale.rule=value,chain=exact
q "elem.arith=mul32 excludes scale.form=decode: the decode form divides" a.npy --set elem.arith=mul32
q "tensor.given excludes tensor.norm=none: there is no tensor scale to give" a.npy --tensor-scale 3
q "nibble=half_block excludes block: it needs an even number of columns in a block" a.npy --set nibble=half_block --set block=row

q "elem=none, bf16 excludes tensor.norm: values that are stored themselves have no tensor scale" a.npy --preset te-nvfp4 --set elem=none
q "elem=bf16 excludes elem.round: its values are rounded to nearest even" a.npy --set elem=bf16,elem.round=sr

# Data that a spec refuses, and data of another kind.
q "n.npy: row 1, column 3: NaN or Inf, which elem.nan=error refuses" n.npy --set elem=none --set elem.nan=error
q "n.npy: row 1, column 3: NaN or Inf, which scale.nan=error refuses" n.npy --set scale.nan=error
q "n.npy: row 1, column 3: NaN or Inf, which scale.nan=error or scale.inf=error refuses" n.npy --set scale.nan=error --set scale.inf=error
q "quantize: --tensor-scale 1e39: beyond the largest binary32, 3.4e38" a.npy --preset te-nvfp4 --tensor-scale 1e39
q "quantize: --tensor-scale -1: expected a finite number above 0" a.npy --preset te-nvfp4 --tensor-scale -1
q "--set: tensor.given=1e39: expected none, a number, nan or inf" a.npy --preset te-nvfp4 --set tensor.given=1e39
q "n.npy: row 1, column 3: NaN or Inf, which elem.nan=error refuses" n.npy --set elem.nan=error --set scale.nan=finite
q "n.npy: row 3, column 1: NaN or Inf, which scale.nan=error refuses" n.npy --set scale.nan=error --transpose
q "d.npy: dtype is f64, expected f32, f16 or bf16: round it to float32 first, in numpy x.astype('float32')" d.npy
q "u.npy: dtype is u16, expected f32, f16 or bf16 (uint16 with --dtype bf16)" u.npy
q "a.npy: dtype is f32, not the bf16 of --dtype" a.npy --dtype bf16
q "--shape 4by16: expected RxC, such as 64x256, at most 8 extents" a.npy --shape 4by16
q "--shape 99999999999999999999x1: expected RxC, such as 64x256, at most 8 extents" a.npy --shape 99999999999999999999x1
q "a.npy: the shape overflows, expected a product of dimensions below 2^63 bytes" a.npy --shape 4294967296x4294967296
q "a.npy: byte 256: the file holds $(stat -c %s a.npy) bytes, expected 256 of the stated shape of f32" a.npy --shape 4x16
q "quantize: --dtype 'f8' is unknown, nearest: f32, f16, bf16" a.npy --shape 4x16 --dtype f8
q "i.npy: i32, 4 values, expected u32 and one for each of the 64 elements" a.npy --bits i.npy
q "a.npy: sr.source=given needs random bits, but none are given" a.npy --set elem.round=sr --set sr.source=given
q "a.npy: no tensor 'x'" a.npy:x
no "quantize: no output, expected -o OUT.safetensors" quantize a.npy
no "o.npy: a .npy file holds one tensor, expected a name that ends in .safetensors" quantize a.npy -o o.npy

# Single values.
e "n.npy: value 35 is NaN, refused by elem.nan=error" n.npy --format e2m1 --preset gfloat
e "encode: --format 'e2m11' is unknown, nearest: e2m1, e2m3" a.npy --format e2m11
e "encode: --preset 'torhc' is unknown, nearest: torch" a.npy --format e2m1 --preset torhc
e "encode: --nbits excludes --round rne: only sr uses random integers" a.npy --format e2m1 --nbits 8
q "quantize: --tensor-scale 1e400: beyond the largest binary32, 3.4e38" a.npy --preset te-nvfp4 --tensor-scale 1e400
e "encode: no format, expected --format FMT" a.npy
e "encode: --nan: elem.nan=sgnmax: expected one of signmax, posmax, satmax, zero, zero_flip, code=N, error" a.npy --format e2m1 --nan sgnmax
e "encode: --scale-exp 1.5: expected nan or an integer from -700 to 700" a.npy --format e2m1 --scale-exp 1.5
e "encode: --bits without --nbits, expected how many bits its integers have" a.npy --format e2m1 --round sr --bits b.npy
e "encode: --nbits 33: expected 1 to 32" a.npy --format e2m1 --round sr --bits b.npy --nbits 33
e "encode: --bits excludes --round rne: only sr uses random integers" a.npy --format e2m1 --bits b.npy --nbits 6
e "encode: --nbits 6: expected 22 or more, the random bits that the rounding uses" a.npy --format e2m1 --round sr --preset amd-host --bits b.npy --nbits 6
e "b.npy: integer 8 is 0x8, expected 3 bits" a.npy --format e2m1 --round sr --bits b.npy --nbits 3
e "i.npy: 4 integers, expected one for each of the 64 values" a.npy --format e2m1 --round sr --bits i.npy --nbits 6
e "a.npy: dtype is f32, expected integers" a.npy --format e2m1 --round sr --bits a.npy --nbits 6
no "/dev/full: byte 0: cannot write: No space left on device" encode a.npy --format e2m1 -o /dev/full
no "c.npy: code 16 is 0x10, expected 4 bits for e2m1" decode c.npy --format e2m1 -o o.npy
no "a.npy: dtype is f32, expected codes: u8, u16 or u32" decode a.npy --format e2m1 -o o.npy
no "hadamard: --size 24: expected a power of two from 2 to 1024" hadamard a.npy --size 24 -o o.npy
no "hadamard: --signs 0121: expected 4 digits 0 or 1" hadamard a.npy --size 4 --sign fixed --signs 0121 -o o.npy
q "had.sign=fixed without had.signs, expected 16 digits 0 or 1, 1 negates" a.npy --set had.size=16 --set had.sign=fixed
q "--set: had.signs=012: expected up to 128 digits 0 or 1" a.npy --set had.signs=012
q "--preset nvfp4 and --spec s.json exclude each other: each is a whole spec; --set changes keys of either" a.npy --preset nvfp4 --spec s.json
no "a.npy: metadata has no 'spec', expected a file that mxgold quantize wrote" dequantize a.npy -o o.npy
no "a.npy: metadata has no 'spec', expected a file that mxgold quantize wrote" convert a.npy --layout row -o o.safetensors
leaves_only a.npy b.npy c.npy d.npy i.npy n.npy u.npy

# What reads a quantised file.
accepts "$mxgold" quantize a.npy -o q.safetensors --preset ocp-mxfp8-e4m3
no "q.safetensors: no tensor 'scale', nearest: scales" quantize q.safetensors:scale -o o.safetensors
no "q.safetensors: 2 tensors, expected the name of one after a colon, such as :codes" quantize q.safetensors -o o.safetensors
no "q.safetensors: --nibble high_first excludes elem=e4m3, expected elements of 4 bits" convert q.safetensors --nibble high_first -o o.safetensors
no "convert: --layout 'nv128' is unknown, nearest: nv128x4, nv8x4" convert q.safetensors --layout nv128 -o o.safetensors
no "convert: --pad 256: expected a byte, 0 to 255" convert q.safetensors --layout nv8x4 --pad 256 -o o.safetensors
no "convert: nothing to do, expected --layout NAME or --nibble ORDER" convert q.safetensors -o o.safetensors
no "o.npy: a .npy file holds one tensor, expected a name that ends in .safetensors" convert q.safetensors --layout nv8x4 -o o.npy
no "none/o.npy: cannot create a file beside it: No such file or directory" dequantize q.safetensors -o none/o.npy
no "u.npy: another shape than what was quantised, expected 2 x 32" inspect q.safetensors --input u.npy --dtype bf16
no "a.npy: --input: not a quantised file, expected what mxgold quantize wrote" inspect a.npy --input a.npy
accepts "$mxgold" quantize a.npy -o w.safetensors --set scale=fp32 --set scale.rule=value
no "scale=fp32 excludes layout nv8x4: it holds scales of one byte" convert w.safetensors --layout nv8x4 -o o.safetensors
leaves_only a.npy b.npy c.npy d.npy i.npy n.npy q.safetensors u.npy w.safetensors
