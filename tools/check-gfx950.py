#!/usr/bin/env python3
"""Checks that the compiler made of the native kernels what was meant, by reading the disassembly and not the source.

check-gfx950.py [--library LIBRARY] [--only KERNEL] OBJDUMP READELF FILE.hsaco...

With LIBRARY (gfx950_runs.py) each kernel's machine code is run as well, and its memory held to what the kernel's source gives.

For each row and select of formats/gfx950.def the kernel must hold its instruction once, and:
  - every operand is a vector register that was loaded from the argument meant, word by word: source, seed, scale; followed through copies;
  - the destination of an instruction that keeps a part of it was loaded from `out` (the tied operand), and is what is stored;
  - op_sel, op_sel_hi, cbsz, blgp, ABID as encoded, or the SDWA select as printed, are those of the kernel's name;
  - the destination of an instruction of several passes (MULTI_PASS) lies on none of its sources: undefined on the device;
  - MODE is set before it; a wait state follows a partial write before it is read;
  - no scratch, no spills, no packed binary32 arithmetic; vector registers within the occupancy table.
Words of others' tests (hip_backend/tests/encodings.s) must read as those tests say.
Complete kernels (FUSED below) must hold their instructions in the number and with the selects stated. Exit 1 and a line for each that does not."""
import re
import subprocess
import sys
import zlib

import gfx950_runs
from gfx950_machine import Instruction, Wrong, product_fields, registers

# Waves a SIMD should hold, by what a kernel does; gfx950 has 512 registers a lane for all waves of a SIMD, given out in eights.
WAVES = {"pair": 8, "six": 8, "wide": 6, "mfma16": 8, "mfma32": 8}
OPERANDS = {  # sources in the order of the assembler: (argument, first word, words); w stands for the words of x
    "PK4_F32": ["x0", "x1", "scale"], "PK4_V2": ["x", "scale"], "SRPK4": ["x", "seed", "scale"], "PK8_F32": ["x0", "x1", "scale"],
    "PK8_V2": ["x", "scale"], "SR8": ["x", "seed", "scale"], "P16X2": ["xlow", "xhigh", "scale"], "P32": ["x", "scale"],
    "SRP32": ["x", "seed", "scale"], "UP4": ["x", "scale"], "UP8": ["x", "scale"], "UP8_F32": ["x", "scale"], "UP8_F16": ["x", "scale"],
    "UP32": ["x", "scale"], "N8_PK": ["x0", "x1"], "N8_SR": ["x", "seed"], "N8_UP": ["x"], "N8_UP2": ["x"], "N16_SR": ["x", "seed"],
    "STEP": ["x"]}
# Forms that write their result while they still read their sources: llvm/llvm-project pull requests 117822 and 188809.
MULTI_PASS = {"SRPK4", "P16X2", "P32", "SRP32", "UP32"}
KEEPS = {"PK4_F32", "PK4_V2", "SRPK4", "PK8_F32", "PK8_V2", "SR8", "UP8_F16", "N8_PK", "N8_SR", "N16_SR"}
ARGS = {0: "out", 8: "x", 16: "scale", 24: "seed"}
ARGS_MFMA = {0: "out", 8: "a", 16: "b", 24: "c", 32: "scale_a", 40: "scale_b"}
BITS = {"F32": 32, "F16": 16, "BF16": 16}
MFMA_WORDS = [8, 8, 6, 6, 4]  # by format code

# Kernels that are more than one instruction: mnemonic -> how many (a number, or "some"), registers, and what else.
NARROW, SR = "v_cvt_scalef32_pk_fp4_f32", "v_cvt_scalef32_sr_pk_fp4_f32"
FUSED = {
    "gfx950_probe_sgpr": dict(waves=8, lds=0, has={NARROW: 1}, scale="s"),
    "gfx950_probe_inline": dict(waves=8, lds=0, has={NARROW: 1}, scale="4.0"),
    "native_mxfp4": dict(waves=6, lds=0, has={NARROW: 16, SR: 0}),
    "native_mxfp4_hadamard": dict(waves=6, lds=0, has={NARROW: 16, SR: 0}),
    "native_mxfp4_sr": dict(waves=5, lds=0, has={NARROW: 0, SR: 16}),
    "native_mxfp4_hadamard_sr": dict(waves=5, lds=0, has={NARROW: 0, SR: 16}),
    "native_gemm_mxfp4": dict(waves=8, lds=16384, has={"v_mfma_scale_f32_16x16x128_f8f6f4": 8, "s_barrier": 2, "ds_read_b128": "some", "ds_write_b128": "some"},
                              selects={(0, 0): 1, (0, 1): 1, (1, 0): 1, (1, 1): 1, (2, 2): 1, (2, 3): 1, (3, 2): 1, (3, 3): 1}),
}

wrong = []
checks = 0


def expect(kernel, ok, what):
    global checks
    checks += 1
    if not ok:
        wrong.append(f"{kernel}: {what}")


def rows():
    text = open("formats/gfx950.def").read()
    for m in re.finditer(r'^GFX950\((\w+), "(\w+)", (\w+), (\w+), (\w+), (\w+), (\d+), (\d+)\)', text, re.M):
        name, mnemonic, kind, form, wide, elem, lanes, selects = m.groups()
        yield dict(name=name, mnemonic=mnemonic, kind=kind, form=form, wide=wide, elem=elem, lanes=int(lanes), selects=int(selects))


class Trace:
    """What each register holds, as (argument, word) of memory or ('pointer', argument); straight-line code is all that these kernels are."""

    def __init__(self, args):
        self.args = args
        self.of = {}

    def set(self, operand, values):
        r = registers(operand)
        if not r:
            return
        for i, n in enumerate(r[1:]):
            self.of[(r[0], n)] = values[i] if i < len(values) else None

    def get(self, operand):
        r = registers(operand)
        return [self.of.get((r[0], n)) for n in r[1:]] if r else [None]

    def step(self, i):
        o = i.operands
        if i.op.startswith("s_load_dword") and o[1] == "s[0:1]":
            first = int(o[2], 16)
            n = len(registers(o[0])) - 1
            self.set(o[0], [("pointer", self.args.get(first + 4 * k - (first + 4 * k) % 8)) for k in range(n)])
        elif i.op.startswith("global_load_dword"):
            base = self.get(o[1])[0] if len(o) < 3 or not o[2].startswith("s") else self.get(o[2])[0]
            m = re.search(r"offset:(\d+)", i.rest)
            word = int(m.group(1)) // 4 if m else 0
            n = len(registers(o[0])) - 1
            self.set(o[0], [(base[1], word + k) if base and base[0] == "pointer" else None for k in range(n)])
        elif i.op in ("v_lshl_add_u64", "v_mad_u64_u32"):  # base + index: the base is the one that is a pointer
            self.set(o[0], [w for operand in o[1:] for w in self.get(operand) if w and w[0] == "pointer"][:2])
        elif i.base in ("v_mov_b32", "v_accvgpr_write_b32"):
            self.set(o[0], self.get(o[1]))
        elif i.op == "v_mov_b64" or i.base == "v_mov_b64":
            self.set(o[0], self.get(o[1]))
        elif i.op.startswith(("v_", "s_")) and o and registers(o[0]):
            self.set(o[0], [])


def op_sel_bits(form, select):
    """Bits 14:11 of the first word."""
    if form in ("PK4_F32", "PK4_V2", "SRPK4", "SR8", "N8_SR"):
        return (select & 1) << 2 | (select >> 1) << 3
    if form in ("PK8_F32", "PK8_V2", "N8_PK", "N16_SR"):
        return select << 3
    if form in ("UP4", "UP8_F32"):
        return select
    if form == "UP8":
        return select
    if form == "UP8_F16":
        return select % 4 | (select // 4) << 3
    return 0


def words_of(argument, words):
    return {"x0": [("x", 0)], "x1": [("x", 1)], "xlow": [("x", k) for k in range(16)], "xhigh": [("x", 16 + k) for k in range(16)],
            "x": [("x", k) for k in range(words)]}.get(argument, [(argument, 0)])


def multi_pass():
    """Mnemonics of MULTI_PASS."""
    return {row["mnemonic"] for row in rows() if row["form"] in MULTI_PASS}


def common(kernel, code, note, waves):
    for i in code:
        if i.base in MULTIS:
            on = set(registers(i.operands[0])[1:]) & {n for o in i.operands[1:] for n in (registers(o) or ["", None])[1:] if o[0] == "v"}
            expect(kernel, not on, f"{i.op}: destination {i.operands[0]} is on its own source, v{min(on, default=0)}")
        expect(kernel, not i.op.startswith(("scratch_", "buffer_")), f"{i.op}: memory that is not the arguments'")
        expect(kernel, not re.match(r"v_pk_\w+_f32", i.op), f"{i.op}: packed binary32")
    expect(kernel, note["private_segment_fixed_size"] == 0, "scratch")
    expect(kernel, note["vgpr_spill_count"] == 0 and note["sgpr_spill_count"] == 0, "spills")
    most = 512 // waves // 8 * 8
    expect(kernel, note["vgpr_count"] + note["agpr_count"] <= most, f"{note['vgpr_count'] + note['agpr_count']} registers, {most} let {waves} waves run")


def at_instruction(kernel, code, mnemonic, args):
    """The one instruction, the trace before it, and what comes after."""
    found = [n for n, i in enumerate(code) if i.base == mnemonic]
    expect(kernel, len(found) == 1, f"{mnemonic} {len(found)} times, expected once")
    if len(found) != 1:
        return None, None, None
    trace = Trace(args)
    mode = 0
    for i in code[:found[0]]:
        trace.step(i)
        mode += i.op == "s_setreg_b32" and "HW_REG_MODE" in i.rest
    expect(kernel, mode == 2, "MODE is not set before it")
    return code[found[0]], trace, code[found[0] + 1:]


def stored(kernel, i, after, waits):
    """The destination goes to memory as it is; waits: not by the very next instruction."""
    destination = set(registers(i.operands[0])[1:])
    stores = [s for s in after if s.op.startswith("global_store")]
    data = set()
    for s in stores:
        r = registers(s.operands[1])
        data |= set(r[1:])
    expect(kernel, destination == data, f"stores registers {sorted(data)}, the result is in {sorted(destination)}")
    for s in after[:after.index(stores[0])] if stores else []:
        if s.op.startswith("v_") and registers(s.operands[0]) and registers(s.operands[0])[0] == "v":
            expect(kernel, not set(registers(s.operands[0])[1:]) & destination, f"{s.op} overwrites the result")
    if waits and after and after[0].op.startswith("v_"):  # LLVM: only a VALU reader needs it
        read = {n for operand in after[0].operands for n in (registers(operand) or ["", None])[1:] if operand[0] == "v"}
        expect(kernel, not read & destination, "a partial write is read with no wait state between")


def conversion(kernel, row, select, code, note):
    form = row["form"]
    words = 6 if row["lanes"] == 32 and row["kind"] == "WIDEN" else 1 if row["kind"] in ("WIDEN", "PRNG") else (row["lanes"] * BITS[row["wide"]] + 31) // 32
    wide = row["lanes"] == 32 and row["wide"] == "F32"
    common(kernel, code, note, WAVES["wide" if wide else "six" if row["lanes"] == 32 else "pair"])
    i, trace, after = at_instruction(kernel, code, row["mnemonic"], ARGS)
    if not i:
        return
    sources = i.operands[1:]
    if form in ("N8_UP", "N8_UP2"):
        unit = "BYTE" if form == "N8_UP" else "WORD"
        said = re.search(r"src0_sel:(\w+)", i.rest)
        expect(kernel, (said.group(1) if said else f"{unit}_0") == f"{unit}_{select}", f"source select {said and said.group(1)}")
    elif form != "STEP":
        expect(kernel, i.words[0] >> 11 & 15 == op_sel_bits(form, select), f"op_sel {i.words[0] >> 11 & 15:04b}, meant {op_sel_bits(form, select):04b}")
    meant = OPERANDS[form]
    expect(kernel, len(sources) == len(meant), f"{len(sources)} sources, meant {len(meant)}")
    for operand, argument in zip(sources, meant):
        r = registers(operand)
        expect(kernel, bool(r) and r[0] == "v", f"{argument} in {operand}, not in a vector register")
        expect(kernel, trace.get(operand) == words_of(argument, words), f"{operand} holds {trace.get(operand)}, meant {argument}")
    if form in KEEPS:
        expect(kernel, trace.get(i.operands[0]) == [("out", 0)], f"destination {i.operands[0]} is not tied to the old value: {trace.get(i.operands[0])}")
    stored(kernel, i, after, form in KEEPS and select != 0)


def product(kernel, edge, mnemonic, a, b, select, code, note):
    common(kernel, code, note, WAVES[f"mfma{edge}"])
    i, trace, after = at_instruction(kernel, code, mnemonic, ARGS_MFMA)
    if not i:
        return
    regs = 4 if edge == 16 else 16
    f = product_fields(i)
    expect(kernel, f is not None, "not the four words of the scaled form")
    if not f:
        return
    expect(kernel, (f["byte_a"], f["byte_b"]) == (select % 4, select // 4), f"scale bytes {f['byte_a']} and {f['byte_b']} by op_sel and op_sel_hi")
    expect(kernel, f["abid"] == 1, "ABID[0] is 0: the unscaled form")
    expect(kernel, f["cbsz"] == a, f"cbsz {f['cbsz']}")
    expect(kernel, f["blgp"] == b, f"blgp {f['blgp']}")
    meant = [[("a", k) for k in range(MFMA_WORDS[a])], [("b", k) for k in range(MFMA_WORDS[b])], [("c", k) for k in range(regs)],
             [("scale_a", 0)], [("scale_b", 0)]]
    for operand, words in zip(i.operands[1:6], meant):
        r = registers(operand)
        expect(kernel, bool(r) and r[0] == "v", f"{operand} is not in vector registers")
        expect(kernel, trace.get(operand) == words, f"{operand} holds {trace.get(operand)}, meant {words[0][0]}")
    d, c = registers(i.operands[0]), registers(i.operands[3])
    expect(kernel, edge == 16 or d == c or not set(d[1:]) & set(c[1:]), "destination and C overlap in part")
    stored(kernel, i, after, True)


def fused(kernel, meant, code, note):
    common(kernel, code, note, meant["waves"])
    for mnemonic, number in meant["has"].items():
        n = sum(i.base == mnemonic for i in code)
        expect(kernel, n == number if isinstance(number, int) else n > 0, f"{mnemonic} {n} times, meant {number}")
    for i in code:
        if i.base.startswith("v_cvt_scalef32") and "scale" in meant:
            expect(kernel, i.operands[3].startswith(meant["scale"]), f"scale in {i.operands[3]}, meant {meant['scale']}")
        elif i.base.startswith("v_cvt_scalef32"):
            for operand in i.operands[1:]:
                r = registers(operand)
                expect(kernel, bool(r) and r[0] == "v", f"{i.op}: {operand} is not a vector register")
    if "selects" in meant:
        seen = {}
        for i in code:
            if i.base.startswith("v_mfma_scale"):
                f = product_fields(i)
                key = (f["byte_a"], f["byte_b"])
                seen[key] = seen.get(key, 0) + 1
                expect(kernel, f["cbsz"] == 4 and f["blgp"] == 4, "operands are not FP4")
        expect(kernel, seen == meant["selects"], f"scale bytes {seen}, meant {meant['selects']}")
    if "lds" in meant:
        expect(kernel, note["group_segment_fixed_size"] == meant["lds"], f"{note['group_segment_fixed_size']} bytes of LDS, meant {meant['lds']}")


def encodings(code):
    """The words of hip_backend/tests/encodings.s, which others' tests say the meaning of."""
    fp4 = dict(byte_a=0, byte_b=0, abid=1, cbsz=4, blgp=4)
    for name, op, operands, fields in (
            ("encoding_rocjitsu_scaled", "v_mfma_scale_f32_16x16x128_f8f6f4", ["v[32:35]", "v[20:23]", "v[120:123]", "v[32:35]", "v95", "v110"], fp4),
            ("encoding_rocjitsu_ordinary", "v_mfma_f32_16x16x128_f8f6f4", ["v[48:51]", "v[114:121]", "v[122:129]", "v[48:51]"], None),
            ("encoding_llvm_scaled", "v_mfma_scale_f32_16x16x128_f8f6f4", ["v[0:3]", "v[8:11]", "v[12:15]", "v[0:3]", "v5", "v6"], fp4)):
        i = code[name][0] if code.get(name) else None
        expect(name, i is not None and len(code[name]) == 1, "is not one instruction")
        if i:
            expect(name, i.op == op and i.operands == operands, f"{i.op} {i.operands}")
            expect(name, product_fields(i) == fields, f"fields {product_fields(i)}")


MULTIS = multi_pass()
runs = 0


def ran(host, kernel, how, code, *rest):
    """The machine code gives the bytes that the source gives."""
    global runs
    if not host:
        return
    runs += 1
    try:
        how(host, kernel, code, *rest, zlib.crc32(kernel.encode()))
    except Wrong as e:
        expect(kernel, False, str(e))


def main():
    library = only = None
    while sys.argv[1].startswith("--"):
        library, only = (sys.argv[2], only) if sys.argv[1] == "--library" else (library, sys.argv[2])
        del sys.argv[1:3]
    objdump, readelf, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    host = gfx950_runs.Host(library, list(rows()), OPERANDS, KEEPS, op_sel_bits) if library else None
    code, notes, whole = {}, {}, {}
    for f in files:
        name = None
        for line in subprocess.run([objdump, "-d", f], check=True, capture_output=True, text=True).stdout.splitlines():
            m = re.match(r"[0-9a-f]+ <(\w+)>:", line)
            if m:
                name = m.group(1)
                code[name] = []
            elif name and "//" in line:
                code[name].append(Instruction(line))
        current = {}
        for line in subprocess.run([readelf, "--notes", f], check=True, capture_output=True, text=True).stdout.splitlines():
            m = re.match(r"\s+(- )?\.(\w+):\s+(\S+)\s*$", line)
            if not m:
                continue
            if re.match(r"  - \.\w", line):
                current = {}
            if m.group(3).isdigit():
                current[m.group(2)] = int(m.group(3))
            if m.group(2) == "name" and re.match(r" {4}\.name", line):
                notes[m.group(3)] = current
    for name in code:
        whole[name] = list(code[name])
        while code[name] and code[name][-1].op in ("s_nop", "s_code_end"):
            code[name].pop()
    seen = set()
    for row in rows():
        if row["kind"] == "MFMA":
            edge = 16 if row["form"] == "MFMA16" else 32
            every = [(f"gfx950_{row['name']}_a{a}_b{b}_s{s}", a, b, s) for a in range(5) for b in range(5) for s in range(row["selects"])]
        else:
            every = [(f"gfx950_{row['name']}_s{s}", 0, 0, s) for s in range(row["selects"])]
        for kernel, a, b, s in every:
            seen.add(kernel)
            if only and kernel != only:
                continue
            expect(kernel, kernel in code and kernel in notes, "is not there")
            if kernel not in code or kernel not in notes:
                continue
            if row["kind"] == "MFMA":
                product(kernel, edge, row["mnemonic"], a, b, s, code[kernel], notes[kernel])
                ran(host, kernel, gfx950_runs.product, whole[kernel], edge)
            else:
                conversion(kernel, row, s, code[kernel], notes[kernel])
                ran(host, kernel, gfx950_runs.conversion, whole[kernel], row)
    for kernel, meant in FUSED.items():
        seen.add(kernel)
        if only and kernel != only:
            continue
        expect(kernel, kernel in code and kernel in notes, "is not there")
        if kernel in code and kernel in notes:
            fused(kernel, meant, code[kernel], notes[kernel])
            if kernel == "native_gemm_mxfp4":
                ran(host, kernel, gfx950_runs.gemm, whole[kernel], meant["lds"])
            elif kernel.startswith("native_"):
                ran(host, kernel, gfx950_runs.quantizer, whole[kernel])
            else:
                ran(host, kernel, gfx950_runs.conversion, whole[kernel], next(r for r in rows() if r["mnemonic"] == NARROW))
    if not only:
        encodings(code)
    for kernel in sorted(set(notes) - seen):
        wrong.append(f"{kernel}: a native kernel that nothing here checks")
    for line in wrong[:40]:
        print("check-gfx950:", line)
    most = {}
    for kernel in seen & set(notes):
        group = re.sub(r"_(a\d_b\d_)?s\d+$", "", kernel)
        most[group] = max(most.get(group, 0), notes[kernel]["vgpr_count"])
    print(f"check-gfx950: {len(seen)} kernels, {checks} checks of the disassembly, {len(wrong)} fail; most registers a lane: "
          f"{max(v for k, v in most.items() if 'mfma' not in k)} (conversions and complete kernels), {max([v for k, v in most.items() if 'mfma' in k] or [0])} (products)")
    print(f"check-gfx950: the machine code of {runs} kernels was run; memory is held to the source's" if host else "check-gfx950: no machine code was run")
    return 1 if wrong else 0


sys.exit(main())
