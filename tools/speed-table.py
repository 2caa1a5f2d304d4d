#!/usr/bin/env python3
"""Prints the tables of rates in README.md and docs/notes/SPEED.md, from what `make bench` and `make bench-gemm` wrote: bench/last.txt, bench/last-gemm.txt.

speed-table.py [--all]    eight rows for the front page; with --all every operation, for the notes
"""
import os
import re
import sys

bench = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench")
rates, order = {}, []
for line in open(os.path.join(bench, "last.txt")):
    cell = re.split(r"\s{2,}", line.strip())
    if len(cell) >= 9 and cell[1] in ("avx512", "avx2"):
        rates[cell[0], cell[1]] = cell
        if cell[0] not in order:
            order.append(cell[0])
products = {}
for line in open(os.path.join(bench, "last-gemm.txt")):
    found = re.match(r"(.+?)\s{2,}.*?\s([\d.]+) (GMAC/s|GB/s)\s.*ratio\s+([\d.]+)$", line.rstrip())
    if found:
        products[found[1]] = found.groups()[1:]

if sys.argv[1:] == ["--all"]:
    print("| operation | AVX-512, over memcpy | AVX2, over memcpy | AVX-512, times the scalar code |")
    print("|---|---|---|---|")
    for name in order:
        fast, narrow = rates[name, "avx512"], rates[name, "avx2"]
        print("| %s | %s | %s | %s |" % (name, fast[3], narrow[3], fast[8]))
    sys.exit()

print("| what | rate | compared with |")
print("|---|---|---|")
for text, name in (
    ("quantise to MXFP4 (OCP's rule)", "mxfp4 floor"),
    ("quantise to NVFP4, tensor scale known", "nvfp4 te, scale given"),
    ("quantise to NVFP4, tensor scale computed", "nvfp4 te, with amax"),
    ("quantise to MXFP4, stochastic rounding", "mxfp4 stochastic"),
    ("rotate (Hadamard, 16) and quantise to MXFP4", "mxfp4 hadamard 16"),
    ("dequantise MXFP4", "dequantize mxfp4"),
):
    cell = rates[name, "avx512"]
    print("| %s | %s G elements/s | %s times memcpy of the input |" % (text, cell[2], cell[3]))
for text, name, other in (
    ("product of MXFP4 matrices, 2048 x 2048 x 2048, one thread", "mxfp4 f32_block", "times OpenBLAS sgemm"),
    ("product of one row with an NVFP4 matrix, one thread", "skinny nvfp4 M = 1", "times the rate of reading the matrix"),
):
    rate, unit, ratio = products[name]
    print("| %s | %s %s | %s %s |" % (text, rate, unit, ratio, other))
