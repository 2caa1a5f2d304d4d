#!/usr/bin/env python3
"""Measures the rate of `mxgold diff` beside that of reading its two files, both from the page cache, by turns: diff.py MXGOLD [ROUNDS [MIB]]

The files are MXFP4 of MIB (512) MiB of codes each: equal, with one code in 10,000 another, with every code of one row in 16 another, with every code
another (by the same bit: 16 pairs of codes), with codes at random (240 pairs), and with every code and every scale another. Memory is the peak of the process
while it passes over files many times larger. Exit 1 where one of the first three runs at less than half of the rate of reading (what bounds the last three:
docs/notes/VERIFY.md)."""
import json, os, random, resource, statistics, struct, subprocess, sys, tempfile, time

mxgold, rounds, mib = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5, int(sys.argv[3]) if len(sys.argv) > 3 else 512
COLS = 4096
ROWS = mib * (1 << 20) // (COLS // 2)


def header():
    n = ROWS * COLS // 2
    h = {"__metadata__": {"spec": "elem=e2m1", "shape": "[%d, %d]" % (ROWS, COLS), "dtype": "f32", "block": "1x32", "preset": ""},
         "codes": {"dtype": "U8", "shape": [ROWS, COLS // 2], "data_offsets": [0, n]},
         "scales": {"dtype": "U8", "shape": [ROWS, COLS // 32], "data_offsets": [n, n + n // 16]}}
    text = json.dumps(h).encode()
    return struct.pack("<Q", len(text)) + text


def write(path, change, scale=0):
    random.seed(1)
    with open(path, "wb") as f:
        f.write(header())
        some = [random.randbytes(1 << 20) for _ in range(8)]
        for i in range(mib):
            piece = bytearray(some[i % 8])
            change(piece)
            f.write(piece)
        for i in range(mib // 16):
            f.write(bytes([120 + scale + k % 16 for k in range(1 << 10)]) * 1024)


def sparse(piece):
    for _ in range(2 * len(piece) // 10000):
        piece[random.randrange(len(piece))] ^= 1


def dense(piece):
    for row in range(0, len(piece), 16 * COLS // 2):
        for k in range(row, row + COLS // 2):
            piece[k] ^= 0x11


def every(piece):
    piece[:] = piece.translate(bytes(k ^ 0x11 for k in range(256)))


def chance(piece):
    piece[:] = random.randbytes(len(piece))


def read(paths, room=bytearray(4 << 20)):
    start = time.perf_counter()
    for p in paths:
        with open(p, "rb", buffering=0) as f:
            while f.readinto(room):
                pass
    return time.perf_counter() - start


def spent():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def diff(a, b):
    start = time.perf_counter()
    p = subprocess.run([mxgold, "diff", a, b], stdout=subprocess.PIPE)
    seconds = time.perf_counter() - start
    if p.returncode == 2:
        sys.exit("diff.py: mxgold diff failed")
    return seconds


with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/tmp")) as tmp:
    a, b = tmp + "/a.safetensors", tmp + "/b.safetensors"
    write(a, lambda piece: None)
    size = 2 * os.path.getsize(a) / 1e9
    print("two files of %.2f GB, load %.1f" % (size / 2, os.getloadavg()[0]))
    worst = 9
    for name, change, scale, held in (("equal", lambda piece: None, 0, 1), ("1 code in 10,000 differs", sparse, 0, 1),
                                      ("1 row in 16 differs in every code", dense, 0, 1), ("every code differs", every, 0, 0), ("codes at random", chance, 0, 0),
                                      ("every code and every scale differ", every, 1, 0)):
        write(b, change, scale)
        read((a, b))
        own, theirs = time.process_time(), spent()
        pairs = [(read((a, b)), diff(a, b)) for _ in range(rounds)]
        own, theirs = time.process_time() - own, spent() - theirs
        ratio = statistics.median(r / d for r, d in pairs)
        worst = min(worst, ratio) if held else worst
        print("%-36s read %5.2f GB/s   diff %5.2f GB/s   ratio %.2f   processor time of diff over reading %.1f" %
              (name, size / statistics.median(p[0] for p in pairs), size / statistics.median(p[1] for p in pairs), ratio, theirs / own))
    print("memory at most %d MiB" % (resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024))
    sys.exit(worst < 0.5)
