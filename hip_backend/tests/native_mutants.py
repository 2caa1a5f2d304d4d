#!/usr/bin/env python3
"""Is a wrong instruction in the machine code of the native kernels noticed? native_mutants.py CLANG FOLDER CHECK... , FOLDER that of the .s files and CHECK
the command that check-gfx950.py is run by, without files. Each mutant is one change of one kernel's assembly; exit 1 if one passes."""
import os
import re
import subprocess
import sys
import tempfile

PAIR, PAIR_SR, PRODUCT = "v_cvt_scalef32_pk_fp4_f32", "v_cvt_scalef32_sr_pk_fp4_f32", "v_mfma_scale_f32_16x16x128_f8f6f4"
CONVERSION, MFMA, TALL = "gfx950_cvt_scalef32_pk_fp4_f32_s1", "gfx950_mfma_scale_f32_16x16x128_f8f6f4_a1_b2_s7", "gfx950_mfma_scale_f32_32x32x64_f8f6f4_a0_b4_s9"


def replace(pattern, by, which=0):
    """The which-th place (-1: all of them) where the pattern is."""

    def change(text):
        found = list(re.finditer(pattern, text))
        for m in reversed(found if which < 0 else found[which:which + 1]):
            text = text[:m.start()] + (by(m) if callable(by) else m.expand(by)) + text[m.end():]
        return text

    return change


def longer(m):
    return m[1] + str((int(m[2]) + 1) % 6)


def on_source(mnemonic, which=0):
    """The destination, there and where it is stored, moved onto a source: the machine that runs the code reads before it writes and sees nothing."""

    def change(text):
        m = re.search(mnemonic + r" v\[(\d+):(\d+)\], (.*)", text)
        first, last = int(m[1]), int(m[2])
        source = int(re.search(r"\d+", m[3].split(", ")[which])[0]) // 2 * 2 # registers of more than one begin at an even one
        def moved(r):
            a, b = int(r[1]), int(r[2])
            return f"v[{a - first + source}:{b - first + source}]" if first <= a and b <= last else r[0]
        rest = text[m.start():]
        one = rest.index("\n")
        head = rest[:one].replace(f"v[{first}:{last}]", f"v[{source}:{source + last - first}]", 1)
        return text[:m.start()] + head + re.sub(r"v\[(\d+):(\d+)\]", moved, rest[one:])

    return change


def overlaps(row, which, source):
    """A mutant of a conversion of 32 numbers. Without the & in its inline assembly clang 22 makes the first of 2xpk16 itself: v[0:5], v[0:15]."""
    mnemonic = "v_" + row
    return "convert", f"gfx950_{row}_s0", f"{OWN}, {source}", on_source(mnemonic, which), OWN


ADDRESS = r"(v_lshlrev_b32_e32 v\d+, )(\d+)(?=,)"
OWN = "on its own source"
MUTANTS = [  # stem, kernel, what, change, what the check must say of it (if not just anything)
    ("quantize", "native_mxfp4", "one op_sel byte", replace(r"op_sel:\[0,0,1,0\]", "op_sel:[0,0,0,1]")),
    ("quantize", "native_mxfp4_sr", "one op_sel byte", replace(r"op_sel:\[0,0,1,0\]", "op_sel:[0,0,0,1]")),
    ("quantize", "native_mxfp4", "sources of a pair exchanged", replace(PAIR + r" (v\d+), (v\d+), (v\d+),", PAIR + r" \1, \3, \2,")),
    ("quantize", "native_mxfp4", "a destination untied", replace(PAIR + r" v\d+,", PAIR + " v77,", 1)),
    ("quantize", "native_mxfp4_hadamard_sr", "a destination untied", replace(PAIR_SR + r" v\d+,", PAIR_SR + " v77,", 1)),
    ("quantize", "native_mxfp4_sr", "the word of another pair", lambda t: (lambda s: replace(PAIR_SR + r" (\S+), (\S+), v\d+,", PAIR_SR + r" \1, \2, " + s + ",", 3)(t))(
        re.findall(PAIR_SR + r" \S+, \S+, (v\d+),", t)[0])),
    ("quantize", "native_mxfp4_hadamard", "a sum for a difference", replace(r"v_sub_f32_e32", "v_add_f32_e32", 5)),
    ("quantize", "native_mxfp4_hadamard", "a factor", replace(r"(v_mul_f32_e32 v\d+, )0x3e800000", r"\g<1>0x3f000000", 7)),
    ("quantize", "native_mxfp4", "a wait for memory removed", replace(r"s_waitcnt vmcnt\(\d+\)", "s_nop 0", -1)),
    ("quantize", "native_mxfp4", "MODE: another field", replace(r"(s_setreg_b32 hwreg\(HW_REG_MODE, )4, 4", r"\g<1>0, 4")),
    ("quantize", "native_mxfp4", "a scale's address", replace(r"global_store_byte (v\[\d+:\d+\], v\d+, off)", r"global_store_byte \1 offset:1")),
    ("convert", CONVERSION, "waits for loads removed", replace(r"s_waitcnt vmcnt\(\d+\)", "s_nop 0", -1)),
    ("convert", CONVERSION, "one wait for fewer loads", replace(r"s_waitcnt vmcnt\(0\)", "s_waitcnt vmcnt(1)")),
    ("convert", CONVERSION, "wait for a scalar load removed", replace(r"s_waitcnt lgkmcnt\(0\)", "s_nop 0")),
    ("convert", CONVERSION, "MODE: another field", replace(r"(s_setreg_b32 hwreg\(HW_REG_MODE, )4, 4", r"\g<1>8, 4")),
    ("convert", CONVERSION, "MODE: another value", replace(r"(s_cselect_b32 s\d+, )15, 12", r"\g<1>12, 15")),
    ("convert", CONVERSION, "MODE: the other register", replace(r"(s_setreg_b32 hwreg\(HW_REG_MODE, 23, 1\), )s(\d+)", lambda m: m[1] + "s" + str(int(m[2]) + 1))),
    ("convert", CONVERSION, "op_sel", replace(r"op_sel:\[0,0,1,0\]", "op_sel:[0,0,0,1]")),
    ("convert", CONVERSION, "an index's shift", replace(r"(v_lshlrev_b64 v\[\d+:\d+\], )(\d+)(?=,)", longer)),
    ("convert", CONVERSION, "lanes beyond the last", replace(r"v_cmp_gt_u32_e32", "v_cmp_ge_u32_e32")),
    ("convert", "gfx950_cvt_scalef32_pk32_fp6_f16_s0", "a word of the source", replace(r"(global_load_dwordx4 v\[4:7\], \S+ \S+) offset:16", r"\1 offset:20")),
    *(overlaps(f"cvt_scalef32_2xpk16_{to}_f32", k, f"the {n} sixteen") for to in ("fp6", "bf6") for k, n in ((0, "first"), (1, "second"))),
    overlaps("cvt_scalef32_2xpk16_bf6_f32", 2, "the scale"),
    overlaps("cvt_scalef32_sr_pk32_bf6_f32", 0, "the numbers"),
    *(overlaps(f"cvt_scalef32_pk32_{to}_{of}", 0, "the numbers") for to in ("fp6", "bf6") for of in ("f16", "bf16")),
    overlaps("cvt_scalef32_pk32_fp6_f16", 1, "the scale"),
    *(overlaps(f"cvt_scalef32_pk32_{to}_{of}", 0, "the codes") for of in ("fp6", "bf6") for to in ("f32", "f16", "bf16")),
    overlaps("cvt_scalef32_pk32_f32_bf6", 1, "the scale"),
    ("quantize", "native_mxfp4_sr", OWN, replace(r"(" + PAIR_SR + r" v\d+, )(v\[\d+:\d+\]), v\d+(, v\d+)", lambda m: m[0].replace(m[0].split()[1], "v" + re.search(r"\d+", m[2])[0] + ","), 2), OWN),
    ("mfma", MFMA, "cbsz", replace(r"cbsz:1", "cbsz:0")),
    ("mfma", MFMA, "scale registers exchanged", replace(r"(" + PRODUCT + r" \S+ \S+ \S+ \S+ )(v\d+), (v\d+)", r"\1\3, \2")),
    ("mfma", MFMA.replace("b2", "b0"), "A and B exchanged", replace(r"(" + PRODUCT + r" \S+ )(v\[\d+:\d+\]), (v\[\d+:\d+\])", r"\1\3, \2")),
    ("mfma", MFMA, "an address's shift", replace(ADDRESS, longer)),
    ("mfma", MFMA, "stored at another place", replace(r"(global_store_dword\w* v\[\d+:\d+\], v\[\d+:\d+\], off)", r"\1 offset:64")),
    ("mfma", MFMA, "wait states before the store removed", replace(r"s_nop 11", "s_nop 0")),
    ("mfma", MFMA, "one wait state less", replace(r"s_nop 11", "s_nop 10")),
    ("mfma", TALL, "one wait state less", replace(r"s_nop 3(\n\s+global_store)", r"s_nop 2\1")),
    ("gemm", "native_gemm_mxfp4", "the first barrier missing", replace(r"s_barrier", "s_nop 0")),
    ("gemm", "native_gemm_mxfp4", "the second barrier missing", replace(r"s_barrier", "s_nop 0", 1)),
    ("gemm", "native_gemm_mxfp4", "A and B of a product exchanged", replace(r"(" + PRODUCT + r" \S+ )(v\[\d+:\d+\]), (v\[\d+:\d+\])", r"\1\3, \2")),
    ("gemm", "native_gemm_mxfp4", "another accumulator", lambda t: replace(PRODUCT + r" (\S+), (\S+), (\S+), (\S+),", lambda m: m[0].replace(m[4], "v[2:5]"), 0)(t)),
    ("gemm", "native_gemm_mxfp4", "a wait for LDS removed", replace(r"s_waitcnt (vmcnt\(0\) )?lgkmcnt\(\d\)(?=\n\tv_mfma)", "s_nop 0")),
    ("gemm", "native_gemm_mxfp4", "LDS read at another place", replace(r"(ds_read_b128 \S+ v\d+) offset:2048", r"\1 offset:2064")),
    ("gemm", "native_gemm_mxfp4", "LDS written at another place", replace(r"offset:8192", "offset:8208")),
    ("gemm", "native_gemm_mxfp4", "rows beyond the last", replace(r"v_cmp_gt_u32_e64", "v_cmp_ge_u32_e64", -1)),
]


def main():
    clang, folder, check = sys.argv[1], sys.argv[2], sys.argv[3:]
    passed = 0
    with tempfile.TemporaryDirectory() as work:
        for stem, kernel, what, change, *says in MUTANTS:
            name = f"{kernel}: {what}"
            text = open(f"{folder}/native_{stem}.s").read()
            first = text.index(f"\n{kernel}:")
            last = text.index(".Lfunc_end", first)
            body = text[first:last]
            changed = change(body)
            if changed == body:
                print(f"hip-native-mutants: NO CHANGE  {name}")
                passed += 1
                continue
            open(f"{work}/m.s", "w").write(text[:first] + changed + text[last:])
            subprocess.run([clang, "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx950", f"{work}/m.s", "-o", f"{work}/m.hsaco"], check=True)
            r = subprocess.run(check[:-2] + ["--only", kernel] + check[-2:] + [f"{work}/m.hsaco"], capture_output=True, text=True, env=dict(os.environ))
            noticed = r.returncode == 1 and r.stdout.startswith("check-gfx950: " + kernel) and all(word in r.stdout for word in says)
            passed += not noticed
            print(f"hip-native-mutants: {'noticed   ' if noticed else 'NOT NOTICED'} {name}: {r.stdout.splitlines()[0][len(kernel) + 16:120] if noticed else r.stderr[-300:]}")
    print(f"hip-native-mutants: {len(MUTANTS) - passed} of {len(MUTANTS)} noticed")
    return 1 if passed else 0


sys.exit(main())
