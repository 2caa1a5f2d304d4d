"""Runs the native kernels on the same memory twice: as machine code (gfx950_machine.py), and from their source on the CPU host runtime. Used by
check-gfx950.py. LIBRARY is hip_backend/tests/machine.cc with the kernels; `make hip-native-host` holds the second to ref/."""
import ctypes
import random
import struct

from gfx950_machine import Memory, Wrong, launch, registers


class Host:
    def __init__(self, library, rows, operands, keeps, op_sel_bits):
        self.lib = ctypes.CDLL(library)
        for name in ("machine_rules", "mxh_open", "mxh_alloc"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.machine_row.restype = ctypes.c_char_p
        self.lib.mxh_error.restype = ctypes.c_char_p
        why = ctypes.create_string_buffer(256)
        self.device = ctypes.c_void_p(self.lib.mxh_open(b"host", why, 256))
        index, numbers, self.rows = 0, (ctypes.c_int * 3)(), {}
        names = {}
        while True:
            name = self.lib.machine_row(index, numbers)
            if not name:
                break
            names[name.decode()] = (index, *numbers)
            index += 1
        for row in rows:
            at, words_x, words_out, old = names[row["name"]]
            if row["kind"] != "MFMA":
                self.rows[row["mnemonic"]] = dict(row, index=at, words_x=words_x, words_out=words_out, keeps=row["form"] in keeps, operands=operands[row["form"]])
        self.op_sel_bits = op_sel_bits

    def row(self, i):
        return self.rows.get(i.base)

    def select(self, i, row):
        form = row["form"]
        if form in ("N8_UP", "N8_UP2"):
            at = i.rest.find("src0_sel:")
            return 0 if at < 0 else int(i.rest[at:].split()[0][-1])
        if form == "STEP":
            return 0
        for select in range(row["selects"]):
            if self.op_sel_bits(form, select) == i.words[0] >> 11 & 15:
                return select
        raise Wrong(f"op_sel {i.words[0] >> 11 & 15:04b} has no meaning")

    def convert(self, row, mode, select, old, x, scale, seed, source):
        out = (ctypes.c_uint32 * 32)(old)
        self.lib.machine_convert(row["index"], mode, select, out, (ctypes.c_uint32 * 32)(*x), ctypes.c_uint32(scale), ctypes.c_uint32(seed), source)
        return out[:row["words_out"]]

    def product(self, mode, edge, cbsz, blgp, select, a, b, c, scale_a, scale_b):
        flat = lambda rows: (ctypes.c_uint32 * sum(map(len, rows)))(*[w for r in rows for w in r])
        out = (ctypes.c_uint32 * 1024)()
        self.lib.machine_product(mode, edge, cbsz, blgp, select, flat(a), flat(b), flat(c), flat([scale_a]), flat([scale_b]), out)
        return [out[16 * lane:16 * lane + 16] for lane in range(64)]

    def run(self, kernel, buffers, arguments, grid, block):
        """The kernel from its source; what the buffers hold then."""
        at = [ctypes.c_void_p(self.lib.mxh_alloc(self.device, ctypes.c_size_t(len(b)))) for b in buffers]
        for p, b in zip(at, buffers):
            self.lib.mxh_put(self.device, p, b, ctypes.c_size_t(len(b)))
        packed = arguments([p.value for p in at], self.lib.machine_rules())
        if self.lib.mxh_launch(self.device, kernel.encode(), grid, block, packed, ctypes.c_size_t(len(packed))):
            raise Wrong("the host runtime: " + self.lib.mxh_error(self.device).decode())
        out = []
        for p, b in zip(at, buffers):
            got = ctypes.create_string_buffer(len(b))
            self.lib.mxh_get(self.device, got, p, ctypes.c_size_t(len(b)))
            out.append(got.raw)
            self.lib.mxh_free(self.device, p)
        return out


def words(values):
    return struct.pack(f"<{len(values)}I", *values)


def floats(rng, n):
    """Bits of binary32: most near 1, some of any kind."""
    return [rng.getrandbits(32) if rng.random() < 0.1 else rng.getrandbits(1) << 31 | rng.randrange(110, 136) << 23 | rng.getrandbits(23) for _ in range(n)]


def both(host, kernel, code, lds, buffers, arguments, grid, block, groups, mode, window=None):
    """window: the bytes of buffer 0 that the groups write; None: all of every buffer is compared."""
    memory = Memory()
    at = [memory.buffer(b) for b in buffers]
    packed = arguments(at, 0)
    hidden = struct.pack("<III6H", grid, 1, 1, block, 1, 1, 0, 0, 0)
    modes = launch(code, host, memory, packed + b"\0" * (-len(packed) % 8) + hidden, block, groups, lds)
    want = host.run(kernel, buffers, arguments, grid, block)
    for number, (base, data) in enumerate(memory.buffers[:len(buffers)]):
        got, meant = bytes(data), want[number]
        if window and number == 0:
            if got[:window[0]] != buffers[0][:window[0]] or got[window[1]:] != buffers[0][window[1]:]:
                raise Wrong("the machine code writes where it should not")
            got, meant = got[window[0]:window[1]], meant[window[0]:window[1]]
        if got != meant:
            first = next(k for k in range(len(got)) if got[k] != meant[k])
            raise Wrong(f"the machine code gives another byte {first} of buffer {number} than the source")
    if any(m != mode for m in modes):
        raise Wrong(f"an instruction runs with MODE {set(modes)}, meant {mode}")


def conversion(host, kernel, code, row, seed, modes=(1, 2)):
    rng = random.Random(seed)
    n, shape = 70, host.rows[row["mnemonic"]]
    for mode in modes:
        wide_in = row["kind"] not in ("WIDEN", "PRNG") and row["wide"] == "F32"
        x = floats(rng, n * shape["words_x"]) if wide_in else [rng.getrandbits(32) for _ in range(n * shape["words_x"])]
        scale = [rng.randrange(122, 133) << 23 | rng.getrandbits(23) for _ in range(n)]
        out = [rng.getrandbits(32) for _ in range(n * shape["words_out"])]
        arguments = lambda p, rules: struct.pack("<QQQQIIIIQ", p[0], p[1], p[2], p[3], n, 0, mode, 0, rules)
        both(host, kernel, code, 0, [words(out), words(x), words(scale), words([rng.getrandbits(32) for _ in range(n)])], arguments, 2, 64, (0, 1), mode)


def product(host, kernel, code, edge, seed):
    rng = random.Random(seed)
    regs = 4 if edge == 16 else 16
    operand = lambda: words([rng.getrandbits(32) & 0xBFBFBFBF for _ in range(2 * 64 * 8)])  # no NaN, no Inf
    scale = lambda: words([sum(rng.randrange(124, 131) << 8 * k for k in range(4)) for _ in range(2 * 64)])
    near = words([rng.getrandbits(1) << 31 | rng.randrange(124, 134) << 23 | rng.getrandbits(23) for _ in range(2 * 64 * regs)])
    buffers = [b"\xA5" * (2 * 64 * regs * 4), operand(), operand(), near, scale(), scale()]
    mode = seed % 4
    arguments = lambda p, rules: struct.pack("<QQQQQQIIQ", *p, mode, 0, rules)
    both(host, kernel, code, 0, buffers, arguments, 2, 64, (1,), mode, window=(64 * regs * 4, 2 * 64 * regs * 4))


def quantizer(host, kernel, code, seed):
    rng = random.Random(seed)
    for rows, cols, ld, shuffled, mode in ((33, 70, 75, 0, 0), (40, 64, 64, 1, 0), (3, 270, 271, 1, 3)):
        kb = (cols + 31) // 32
        x = floats(rng, rows * ld)
        for r in range(0, rows, 2):  # most blocks have numbers alone
            for c in range(r * ld, (r + 1) * ld):
                x[c] = rng.getrandbits(1) << 31 | rng.randrange(118, 132) << 23 | rng.getrandbits(23)
        size = (rows + 31) // 32 * 32 * ((kb + 7) // 8 * 8) if shuffled else rows * kb
        arguments = lambda p, rules: struct.pack("<QQQQQQQIIIIQ", p[0], p[1], p[2], rows, cols, ld, 0x123456789ABCDEF, shuffled, 0xA53C, mode, 0, rules)
        blocks = rows * kb
        both(host, kernel, code, 0, [words(x), b"\xA5" * (16 * blocks), b"\xA5" * size], arguments, (blocks + 63) // 64, 64, range((blocks + 63) // 64), mode)


def gemm(host, kernel, code, lds, seed):
    rng = random.Random(seed)
    for m, n, kb, mode in ((70, 40, 11, 0), (33, 65, 8, 3)):
        ldd, kb8 = n + 3, (kb + 7) // 8
        data = lambda rows: words([rng.getrandbits(32) for _ in range(rows * kb * 4)])
        scale = lambda rows: bytes(rng.randrange(124, 131) for _ in range((rows + 31) // 32 * kb8 * 256))
        arguments = lambda p, rules: struct.pack("<QQQQQIIIIIIQ", *p, m, n, kb, ldd, mode, 0, rules)
        grid = (m + 63) // 64 * ((n + 63) // 64)
        both(host, kernel, code, lds, [b"\xA5" * (m * ldd * 4), data(m), data(n), scale(m), scale(n)], arguments, grid, 256, range(grid), mode)
