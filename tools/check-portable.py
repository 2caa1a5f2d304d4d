#!/usr/bin/env python3
"""Checks the portable kernels for gfx950: how many registers they use, and that some instructions are not in them.

check-portable.py FILE.s...    all of build/hip/gfx950, as clang wrote them

Fails on packed binary32 arithmetic in any file (gfx950 mis-executes some of it at times), and on a portable kernel that spills vector registers, or
has fewer waves a SIMD or more scratch memory or spilled scalar registers than LIMITS allows. Scalar registers spill to lanes of vector registers, not to memory."""
import re
import sys

# Kernel: waves a SIMD at least, bytes of scratch a lane and spilled scalar registers at most. All others: 8, 0, 0.
# The kernels that interpret a spec, a lane a tile, are long; mxh_gemm keeps an exact sum of 58 words, indexed, in scratch.
LIMITS = {"mxh_encode": (7, 0, 60), "mxh_quantize": (2, 16, 470), "mxh_quantize_special": (4, 0, 80), "mxh_gemm": (4, 236, 70)}


def main():
    wrong, packed, rows = [], 0, []
    for path in sys.argv[1:]:
        text = open(path).read()
        found = re.findall(r"^\tv_pk_\w+_f32\b.*", text, re.M)
        packed += len(found)
        if found:
            wrong.append(f"{path}: {len(found)} of packed binary32, the first: {found[0].strip()}")
        spills = {}
        for block in re.split(r"\n  - ", text.partition("amdhsa.kernels:")[2]):
            values = dict(re.findall(r"^    \.(name|sgpr_spill_count|vgpr_spill_count): +(\S+)", block, re.M))
            if "name" in values:
                spills[values["name"]] = int(values["sgpr_spill_count"]), int(values["vgpr_spill_count"])
        if "/native_" in path:
            continue
        for m in re.finditer(r"\.amdhsa_kernel (\w+)\n(.*?); COMPUTE_PGM_RSRC2", text, re.S):
            value = lambda what: int(re.search(rf"^; {what}: (\d+)", m.group(2), re.M).group(1))
            name = m.group(1)
            rows.append((name, value("NumVgprs"), value("TotalNumSgprs"), value("Occupancy"), value("ScratchSize"), *spills[name]))
    for name, _, _, waves, scratch, scalar, vector in rows:
        least, most, spilled = LIMITS.get(name, (8, 0, 0))
        if waves < least or scratch > most or scalar > spilled or vector:
            wrong.append(f"{name}: {waves} waves, {scratch} bytes of scratch, {scalar} scalar and {vector} vector registers spilled; allowed {least}, {most}, {spilled}, 0")
    for line in wrong:
        print("check-portable:", line)
    print(f"{'kernel':24}{'VGPRs':>6}{'SGPRs':>6}{'waves a SIMD':>14}{'scratch':>9}{'SGPRs spilled':>15}")
    for name, vector, scalar, waves, scratch, spilled, _ in rows:
        print(f"{name:24}{vector:6}{scalar:6}{waves:14}{scratch:9}{spilled:15}")
    print(f"check-portable: {len(rows)} kernels, {packed} packed binary32 instructions in {len(sys.argv) - 1} files, {len(wrong)} fail")
    return 1 if wrong or not rows else 0


sys.exit(main())
