"""Runs the machine code of the native kernels: waves of 64 lanes over what llvm-objdump prints. Used by check-gfx950.py.

What an instruction of formats/gfx950.def gives comes from a library of hip_backend/tests/machine.cc (gfx950/host.h); all else is here: scalar and
vector arithmetic, EXEC, branches, MODE, memory, LDS. What the hardware leaves to the program is held to it:
  - a load arrives when s_waitcnt says so, not before: until then its registers hold nothing, and nothing may be made of them;
  - accesses lie inside the arguments' buffers, LDS inside what the kernel asked for; what was never written is nothing;
  - LDS that one wave writes and another uses lies on two sides of an s_barrier, with the accesses waited for;
  - what a product wrote is not read before the wait states that LLVM keeps (PRODUCT_WAIT), a part of a register not by the next vector instruction.
Not held: other wait states (EXEC, VCC and SGPRs written by a vector instruction and used by another unit), clauses, caches."""
import re
import struct

M32, M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
PRODUCT_WAIT = {(16, False): 8, (16, True): 12, (32, False): 12, (32, True): 20}  # (edge, an operand has 8 bits)
MODE_START = 0x2F0 | 1 << 8  # FP_DENORM 15, round to nearest, DX10_CLAMP, IEEE: what the kernels' descriptors say


class Wrong(Exception):
    pass


class Instruction:
    def __init__(self, line):
        text, _, code = line.partition("//")
        parts = text.split(None, 1)
        self.op = parts[0]
        self.rest = parts[1].strip() if len(parts) > 1 else ""
        at, _, words = code.partition(":")
        self.at = int(at, 16)
        self.words = [int(w, 16) for w in words.split()[:4] if re.fullmatch("[0-9A-F]{8}", w)]
        operands = re.split(r",\s*(?![^\[]*\])", self.rest)
        self.operands = [o.strip().split()[0] if o.strip() else "" for o in operands]
        self.base = re.sub(r"_(e32|e64|sdwa|dpp)$", "", self.op)
        self.target = self.at + 4 + 4 * ((self.words[0] & 0xFFFF ^ 0x8000) - 0x8000) if self.op.startswith(("s_cbranch", "s_branch")) else None
        m = re.search(r"\boffset:(\d+)", self.rest)
        self.offset = int(m.group(1)) if m else 0


def registers(operand):
    """['v', 2, 3] of v[2:3]; None if it is not a range of registers."""
    m = re.fullmatch(r"([vsa])(\d+)", operand) or re.fullmatch(r"([vsa])\[(\d+):(\d+)\]", operand)
    if not m:
        return None
    first = int(m.group(2))
    return [m.group(1)] + list(range(first, int(m.group(m.lastindex)) + 1))


def product_fields(i):
    """What the words of a scaled product say beside its operands: scale bytes of A and B, ABID[0], format codes. None: not the four words of that form."""
    if len(i.words) != 4:
        return None
    w = i.words
    return dict(byte_a=w[0] >> 11 & 1 | (w[1] >> 27 & 1) << 1, byte_b=w[0] >> 12 & 1 | (w[1] >> 28 & 1) << 1, abid=w[2] >> 11 & 1, cbsz=w[2] >> 8 & 7,
                blgp=w[3] >> 29)


def f32(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def bits32(value):
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def signed(x, bits):
    return x - (1 << bits) if x >> (bits - 1) else x


class Memory:
    """Buffers of words' bytes, each at an address of its own; None: nothing was written there."""

    def __init__(self):
        self.buffers = []
        self.next = 0x10000000000

    def buffer(self, data):
        at = self.next
        self.buffers.append((at, list(data)))
        self.next += (len(data) + 0xFFFFF) & ~0xFFFFF
        return at

    def where(self, at, n):
        for base, data in self.buffers:
            if base <= at and at + n <= base + len(data):
                return data, at - base
        raise Wrong(f"access of {n} bytes outside every buffer")

    def load(self, at, words):
        data, i = self.where(at, 4 * words)
        out = []
        for k in range(i, i + 4 * words, 4):
            b = data[k:k + 4]
            out.append(None if None in b else b[0] | b[1] << 8 | b[2] << 16 | b[3] << 24)
        return out

    def store(self, at, value, n):
        data, i = self.where(at, n)
        for k in range(n):
            data[i + k] = value >> 8 * k & 255


VECTOR = {  # on one lane's words
    "v_mov_b32": lambda a: a, "v_and_b32": lambda a, b: a & b, "v_or_b32": lambda a, b: a | b, "v_xor_b32": lambda a, b: a ^ b,
    "v_add_u32": lambda a, b: a + b & M32, "v_sub_u32": lambda a, b: a - b & M32, "v_subrev_u32": lambda a, b: b - a & M32,
    "v_lshlrev_b32": lambda a, b: b << (a & 31) & M32, "v_lshrrev_b32": lambda a, b: b >> (a & 31), "v_max_u32": max, "v_max3_u32": max,
    "v_mul_lo_u32": lambda a, b: a * b & M32, "v_mul_hi_u32": lambda a, b: a * b >> 32, "v_add3_u32": lambda a, b, c: a + b + c & M32,
    "v_or3_b32": lambda a, b, c: a | b | c, "v_and_or_b32": lambda a, b, c: a & b | c, "v_lshl_or_b32": lambda a, b, c: a << (b & 31) & M32 | c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c & M32, "v_add_lshl_u32": lambda a, b, c: (a + b) << (c & 31) & M32,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c & M32, "v_min_u32": min, "v_mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) & M32,
    "v_bfe_u32": lambda a, b, c: a >> (b & 31) & (1 << (c & 31)) - 1, "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31) & M32, "v_cvt_f32_u32": lambda a: bits32(float(a)),
    "v_cvt_u32_f32": lambda a: 0 if f32(a) != f32(a) else max(0, min(M32, int(max(-1.0, min(5e9, f32(a)))))),
    "v_trunc_f32": lambda a: bits32(float(int(f32(a)))), "v_rcp_f32": lambda a: bits32(1 / f32(a)), "v_rcp_iflag_f32": lambda a: bits32(1 / f32(a)),
    "v_fmamk_f32": lambda a, k, c: bits32(f32(a) * f32(k) + f32(c)),
}
VECTOR64 = {  # widths of the sources, in tens of bits
    "v_lshl_add_u64": ("636", lambda a, b, c: (a << (b & 7)) + c & M64), "v_lshlrev_b64": ("36", lambda a, b: b << (a & 63) & M64),
    "v_lshrrev_b64": ("36", lambda a, b: b >> (a & 63)), "v_mov_b64": ("6", lambda a: a)}
FLOAT = {"v_add_f32": lambda a, b: a + b, "v_sub_f32": lambda a, b: a - b, "v_subrev_f32": lambda a, b: b - a, "v_mul_f32": lambda a, b: a * b}
COMPARE = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
           "ge": lambda a, b: a >= b, "lg": lambda a, b: a != b}
LOGIC = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "andn2": lambda a, b: a & ~b, "orn2": lambda a, b: a | ~b}
# Name: signs of the operands of a sum that makes and takes a carry, and whether it takes one.
CARRY = {"v_add_co_u32": (1, 1, 0), "v_addc_co_u32": (1, 1, 1), "v_sub_co_u32": (1, -1, 0), "v_subb_co_u32": (1, -1, 1),
         "v_subrev_co_u32": (-1, 1, 0), "v_subbrev_co_u32": (-1, 1, 1)}


class Wave:
    def __init__(self, code, host, memory, lds, epochs, number, arguments, group, lanes):
        self.code, self.host, self.memory, self.lds, self.epochs, self.number = code, host, memory, lds, epochs, number
        self.index = {i.at: n for n, i in enumerate(code)}
        self.v = {0: [number * 64 + lane for lane in range(64)]}
        self.s = {0: arguments & M32, 1: arguments >> 32, 2: group}
        self.exec, self.vcc, self.scc, self.mode = (1 << lanes) - 1, None, None, MODE_START
        self.loads, self.lgkm, self.epoch = [], [], 0  # what is under way: (None or what arrives)
        self.slot, self.partial, self.products = 0, {}, {}
        self.modes_seen = []

    # ---- operands
    def scalar(self, name, bits=32):
        r = registers(name)
        if r:
            words = [self.s.get(n) for n in r[1:]]
            return None if None in words else words[0] | (words[1] << 32 if len(words) > 1 else 0)
        if name in ("exec", "vcc"):
            return getattr(self, name)
        if name in ("vcc_lo", "exec_lo"):
            return getattr(self, name[:-3]) & M32
        if name in ("vcc_hi", "exec_hi"):
            return getattr(self, name[:-3]) >> 32
        if re.fullmatch(r"-?\d+|0x[0-9a-f]+", name):
            return int(name, 0) & (M64 if bits == 64 else M32)
        if re.fullmatch(r"-?\d+\.\d+", name):
            return bits32(float(name))
        raise Wrong(f"operand {name} is not known")

    def set_scalar(self, name, value, bits=32):
        r = registers(name)
        if r:
            for k, n in enumerate(r[1:]):
                self.s[n] = None if value is None else value >> 32 * k & M32
        elif name in ("exec", "vcc"):
            setattr(self, name, value)
        else:
            raise Wrong(f"destination {name} is not known")

    def lanes(self):
        return [lane for lane in range(64) if self.exec >> lane & 1]

    def read(self, name, n=1, by_product=None, by_memory=False):
        """[lane][word] of a source: None where nothing is."""
        if re.fullmatch(r"-[vs]\d+", name):  # the sign of a binary32
            return [[None if w[0] is None else w[0] ^ 0x80000000] for w in self.read(name[1:])]
        if name.startswith("|"):
            return [[None if w[0] is None else w[0] & 0x7FFFFFFF] for w in self.read(name[1:-1])]
        r = registers(name)
        if not r or r[0] == "s":
            value = self.scalar(name, 32 * n)
            return [[None if value is None else value >> 32 * k & M32 for k in range(n)]] * 64
        for k in r[1:]:
            if k in self.products and name != by_product:
                at, wait = self.products[k]
                if self.slot - at - 1 < wait:
                    raise Wrong(f"v{k} is read {self.slot - at - 1} wait states after the product that makes it, {wait} are needed")
            if not by_memory and k in self.partial and self.slot - self.partial[k] < 2:
                raise Wrong(f"v{k}, of which a part was written, is read with no wait state between")
        columns = [self.v.get(k, (None,) * 64) for k in r[1:]]
        return list(zip(*columns))

    def write(self, name, values):
        """values[lane] = words, for the lanes of EXEC."""
        r = registers(name)
        for k, n in enumerate(r[1:]):
            column = list(self.v.get(n, (None,) * 64))
            for lane in self.lanes():
                column[lane] = None if values[lane] is None else values[lane][k]
            self.v[n] = column
            self.products.pop(n, None)
            self.partial.pop(n, None)

    def wide(self, name):
        return [None if None in w else w[0] | w[1] << 32 for w in self.read(name, 2)]

    def mask(self, name, per_lane):
        value = 0
        for lane in self.lanes():
            if per_lane[lane] is None:
                value = None
                break
            value |= bool(per_lane[lane]) << lane
        self.set_scalar(name, value, 64)

    def forget(self, name):
        r = registers(name)
        for n in r[1:]:
            column = list(self.v.get(n, (None,) * 64))
            for lane in self.lanes():
                column[lane] = None
            self.v[n] = column

    # ---- run to the next barrier or the end
    def run(self):
        at = 0
        for _ in range(200000):
            if at >= len(self.code):
                raise Wrong("runs past its end")
            i = self.code[at]
            at += 1
            try:
                self.slot += 1
                if i.op == "s_endpgm":
                    return
                if i.op == "s_barrier":
                    if any(kind != "scalar" for kind, *_ in self.lgkm):
                        raise Wrong("LDS accesses are under way at the barrier")
                    yield
                    self.epoch += 1
                elif i.target is not None:
                    if self.taken(i):
                        if i.target not in self.index:
                            raise Wrong("a branch to nowhere")
                        at = self.index[i.target]
                else:
                    self.step(i)
            except Wrong as e:
                raise Wrong(f"{i.op} {i.rest[:60]}: {e}") from None
            except TypeError:
                raise Wrong(f"{i.op} {i.rest[:60]}: of what nothing wrote, or was not waited for") from None
        raise Wrong("does not end")

    def taken(self, i):
        how = i.op[10:]
        if i.op == "s_branch":
            return True
        value = {"e": self.exec, "s": self.scc, "v": self.vcc}[how[0]]
        if value is None:
            raise Wrong("a branch on nothing")
        return {"execz": not value, "execnz": bool(value), "vccz": not value, "vccnz": bool(value), "scc0": not value, "scc1": bool(value)}[how]

    def step(self, i):
        row = self.host.row(i)
        if row is not None:
            self.convert(i, row)
        elif i.op.startswith("v_mfma_scale"):
            self.product(i)
        elif i.op.startswith("s_"):
            self.scalar_step(i)
        elif i.op.startswith("v_"):
            self.vector_step(i)
        elif i.op.startswith(("global_", "ds_")):
            self.memory_step(i)
        else:
            raise Wrong("is not known")

    def wait(self, queue, left, name):
        if name == "lgkm" and left and any(e[0] == "scalar" for e in queue):
            return  # scalar loads come in any order
        while len(queue) > left:
            kind, put = queue.pop(0)
            if put:
                put()

    def scalar_step(self, i):
        o, name = i.operands, i.op[2:]
        if i.op == "s_nop":
            self.slot += int(o[0], 0)
        elif i.op == "s_waitcnt":
            for counter, n in re.findall(r"(vm|lgkm)cnt\((\d+)\)", i.rest):
                self.wait(self.loads if counter == "vm" else self.lgkm, int(n), counter)
        elif name.startswith("load_dword"):
            n = len(registers(o[0])) - 1
            words = self.memory.load(self.scalar(o[1]) + int(o[2], 0), n)
            for k in registers(o[0])[1:]:
                self.s[k] = None
            self.lgkm.append(("scalar", lambda: self.s.update(zip(registers(o[0])[1:], words))))
        elif i.op == "s_setreg_b32":
            m = re.match(r"hwreg\(HW_REG_MODE, (\d+), (\d+)\), (\S+)", i.rest)
            if not m:
                raise Wrong("another register than MODE")
            first, width, value = int(m.group(1)), int(m.group(2)), self.scalar(m.group(3))
            mask = (1 << width) - 1
            self.mode = self.mode & ~(mask << first) | (value & mask) << first
        elif name in ("mov_b32", "mov_b64", "movk_i32"):
            self.set_scalar(o[0], self.scalar(o[1], 64 if name == "mov_b64" else 32))
        elif name.endswith("_saveexec_b64"):
            old, value = self.exec, self.scalar(o[1], 64)
            self.exec = {"and": value & old, "or": value | old, "andn2": value & ~old, "xor": value ^ old}[name[:-13]] & M64
            self.set_scalar(o[0], old, 64)
            self.scc = self.exec != 0
        elif name.startswith("cmp_"):
            kind = name[-3]
            a, b = (self.scalar(x) for x in o)
            if a is None or b is None:
                raise Wrong("a comparison of nothing")
            self.scc = COMPARE[name[4:6]](signed(a, 32) if kind == "i" else a, signed(b, 32) if kind == "i" else b)
        elif name.startswith("bitcmp"):
            self.scc = (self.scalar(o[0]) >> (self.scalar(o[1]) & 31) & 1) == int(name[6])
        elif name.startswith("cselect"):
            self.set_scalar(o[0], self.scalar(o[1] if self.scc else o[2], 64 if name.endswith("b64") else 32))
        else:
            bits = 64 if name.endswith("64") else 32
            a, b = self.scalar(o[1], bits), self.scalar(o[2], bits)
            full = M64 if bits == 64 else M32
            kind = name.rsplit("_", 1)[0]
            if kind in LOGIC:
                value = LOGIC[kind](a, b) & full
                self.scc = value != 0
            elif kind in ("lshl", "lshr"):
                value = (a << (b & bits - 1) if kind == "lshl" else a >> (b & bits - 1)) & full
                self.scc = value != 0
            elif name == "mul_i32":
                value = a * b & M32
            elif name == "mul_hi_u32":
                value = a * b >> 32
            elif name in ("add_u32", "addc_u32", "sub_u32", "subb_u32"):
                value = a + b if name[0] == "a" else a - b
                if "c" in name[3:4] or name[3] == "b":
                    value += self.scc if name[0] == "a" else -self.scc
                self.scc = not 0 <= value <= M32
                value &= M32
            elif name in ("add_i32", "sub_i32"):
                value = signed(a, 32) + signed(b, 32) * (1 if name[0] == "a" else -1)
                self.scc = not -1 << 31 <= value < 1 << 31
                value &= M32
            else:
                raise Wrong("is not known")
            self.set_scalar(o[0], value)

    def flushed(self, b):
        return b & 0x80000000 if not self.mode >> 4 & 3 and not b & 0x7F800000 else b

    def vector_step(self, i):
        o, name = i.operands, i.base
        if name in VECTOR or name in FLOAT or name == "v_bitop3_b32":
            f = VECTOR.get(name)
            if name in FLOAT:
                g = FLOAT[name]
                f = lambda a, b: self.flushed(bits32(g(f32(self.flushed(a)), f32(self.flushed(b)))))
            elif name == "v_bitop3_b32":
                table = int(re.search(r"bitop3:(0x[0-9a-f]+|\d+)", i.rest).group(1), 0)
                f = lambda a, b, c: sum((table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | c >> k & 1) & 1) << k for k in range(32))
            sources = [self.read(x) for x in o[1:]]
            if i.op.endswith("_sdwa"):
                if "dst_sel:DWORD" not in i.rest:
                    raise Wrong("an SDWA destination that is not the whole")
                for k in range(len(sources)):
                    m = re.search(rf"src{k}_sel:(\w+?)_?(\d?)(?:\s|$)", i.rest)
                    size = {"BYTE": 8, "WORD": 16, "DWORD": 32}[m.group(1)]
                    shift = size * int(m.group(2) or 0)
                    sources[k] = [[None if w[0] is None else w[0] >> shift & (1 << size) - 1] for w in sources[k]]
            out = [None] * 64
            for lane in self.lanes():
                words = [s[lane][0] for s in sources]
                out[lane] = [None if None in words else f(*words)]
            self.write(o[0], out)
        elif name in VECTOR64:
            widths, f = VECTOR64[name]
            sources = [self.wide(x) if w == "6" else [w1[0] for w1 in self.read(x)] for x, w in zip(o[1:], widths)]
            out = [None] * 64
            for lane in self.lanes():
                words = [s[lane] for s in sources]
                value = None if None in words else f(*words)
                out[lane] = [None, None] if value is None else [value & M32, value >> 32]
            self.write(o[0], out)
        elif name == "v_mad_u64_u32":
            a, b, c = self.read(o[2]), self.read(o[3]), self.wide(o[4])
            out, over = [None] * 64, [None] * 64
            for lane in self.lanes():
                value = None if None in (a[lane][0], b[lane][0], c[lane]) else a[lane][0] * b[lane][0] + c[lane]
                over[lane] = None if value is None else value >> 64
                out[lane] = [None, None] if value is None else [value & M32, value >> 32 & M32]
            self.mask(o[1], over)
            self.write(o[0], out)
        elif name.startswith("v_cmp_"):
            how, kind = name[6:].split("_")
            bits = int(kind[1:])
            a, b = (self.wide(x) if bits == 64 else [w[0] for w in self.read(x)] for x in o[1:3])
            out = [None] * 64
            for lane in self.lanes():
                x, y = a[lane], b[lane]
                if x is None or y is None:
                    continue
                if kind == "f32":
                    x, y = f32(x), f32(y)
                    out[lane] = (x == x and y == y) == (how == "o") if how in "ou" else COMPARE[how](x, y)
                else:
                    out[lane] = COMPARE[how](signed(x, bits), signed(y, bits)) if kind[0] == "i" else COMPARE[how](x, y)
            self.mask(o[0], out)
        elif name == "v_cndmask_b32":
            mask = self.scalar(o[3], 64)
            a, b = self.read(o[1]), self.read(o[2])
            self.write(o[0], [None if mask is None else [(b if mask >> lane & 1 else a)[lane][0]] for lane in range(64)])
        elif name in CARRY:
            sign_a, sign_b, takes = CARRY[name]
            a, b, carry = self.read(o[2]), self.read(o[3]), self.scalar(o[4], 64) if takes else 0
            out, over = [None] * 64, [None] * 64
            for lane in self.lanes():
                if None in (a[lane][0], b[lane][0]) or carry is None:
                    continue
                c = carry >> lane & 1
                value = sign_a * a[lane][0] + sign_b * b[lane][0] + (c if sign_a + sign_b == 2 else -c)
                out[lane], over[lane] = [value & M32], not 0 <= value <= M32
            self.write(o[0], out)
            self.mask(o[1], over)
        elif name == "v_readfirstlane_b32":
            self.set_scalar(o[0], self.read(o[1])[(self.lanes() or [0])[0]][0])
        else:
            raise Wrong("is not known")

    def memory_step(self, i):
        o = i.operands
        n = {"": 1, "x2": 2, "x3": 3, "x4": 4}.get(i.op.rsplit("dword", 1)[-1], 0) if "dword" in i.op else {"b32": 1, "b64": 2, "b96": 3, "b128": 4}.get(
            i.op.rsplit("_", 1)[-1], 0)
        if i.op.startswith("global_load_dword"):
            at = self.address(o[1], o[2], i.offset)
            values = [self.memory.load(at[lane], n) if self.exec >> lane & 1 else None for lane in range(64)]
            self.arrives(self.loads, o[0], values)
        elif i.op.startswith("global_store"):
            at, data = self.address(o[0], o[2], i.offset), self.read(o[1], by_memory=True)
            for lane in self.lanes():
                if None in data[lane]:
                    raise Wrong("stores what nothing wrote, or was not waited for")
                if i.op == "global_store_byte":
                    self.memory.store(at[lane], data[lane][0], 1)
                else:
                    for k in range(n):
                        self.memory.store(at[lane] + 4 * k, data[lane][k], 4)
            self.loads.append(("store", None))
        elif i.op.startswith("ds_read_b"):
            at = self.read(o[1])
            values = [None] * 64
            for lane in self.lanes():
                values[lane] = [self.local(at[lane][0] + i.offset + 4 * k, False) for k in range(n)]
            self.arrives(self.lgkm, o[0], values)
        elif i.op.startswith("ds_write_b"):
            at, data = self.read(o[0]), self.read(o[1], by_memory=True)
            for lane in self.lanes():
                for k in range(n):
                    if data[lane][k] is None:
                        raise Wrong("writes to LDS what nothing wrote, or was not waited for")
                    self.local(at[lane][0] + i.offset + 4 * k, True, data[lane][k])
            self.lgkm.append(("lds", None))
        else:
            raise Wrong("is not known")

    def arrives(self, queue, name, values):
        """Registers hold nothing until the queue is waited for."""
        lanes = self.lanes()
        for n in registers(name)[1:]:
            self.products.pop(n, None)
            self.partial.pop(n, None)
        self.forget(name)

        def put():
            for k, n in enumerate(registers(name)[1:]):
                column = list(self.v[n])
                for lane in lanes:
                    column[lane] = values[lane][k]
                self.v[n] = column

        queue.append(("vector", put))

    def address(self, vector, base, offset):
        out = [None] * 64
        if base == "off":
            at = self.wide(vector)
            base = 0
        else:
            at = [w[0] for w in self.read(vector)]
            base = self.scalar(base, 64)
        for lane in self.lanes():
            out[lane] = at[lane] + base + offset
        return out

    def local(self, at, store, value=None):
        if at % 4 or not 0 <= at < len(self.lds) * 4:
            raise Wrong("LDS outside what the kernel asked for")
        users = self.epochs.setdefault((self.epoch, at), [set(), set()])
        if (users[1] - {self.number}) or (store and users[0] - {self.number}):
            raise Wrong("LDS that another wave writes or reads, with no barrier between")
        users[store].add(self.number)
        if store:
            self.lds[at // 4] = value
        return self.lds[at // 4]

    def set_mode(self):
        """The host's word for MODE; anything but FP16_OVFL and FP_DENORM of binary32 is as it was."""
        denorm = self.mode >> 4 & 15
        if self.mode & ~(0xF0 | 1 << 23) != MODE_START & ~0xF0 or denorm not in (0xF, 0xC):
            raise Wrong(f"MODE is {self.mode:#x}")
        self.modes_seen.append((self.mode >> 23 & 1) | (2 if denorm == 0xC else 0))
        return self.modes_seen[-1]

    def convert(self, i, row):
        select, keeps, seed_at = self.host.select(i, row), row["keeps"], row["operands"]
        words = dict(x=[], scale=None, seed=None)
        source = 0
        for operand, argument in zip(i.operands[1:], seed_at):
            if argument[0] == "x":
                words["x"].append(self.read(operand))
            else:
                words[argument] = self.read(operand)
                if argument == "scale":
                    r = registers(operand)
                    source = 0 if r and r[0] == "v" else 1 if r else 2
        old = self.read(i.operands[0]) if keeps else None
        mode, out = self.set_mode(), [None] * 64
        for lane in self.lanes():
            x = [w for part in words["x"] for w in part[lane]][:row["words_x"]]
            was = [old[lane][0] if keeps else 0]
            rest = [words[k][lane][0] if words[k] else 0 for k in ("scale", "seed")]
            out[lane] = [None] * row["words_out"] if None in x + was + rest else self.host.convert(row, mode, select, was[0], x, rest[0], rest[1], source)
        if len(registers(i.operands[0])) - 1 != row["words_out"]:
            raise Wrong("a destination of another size")
        self.write(i.operands[0], out)
        if keeps and select:
            self.partial[registers(i.operands[0])[1]] = self.slot

    def product(self, i):
        edge = 16 if "16x16x128" in i.op else 32
        regs = 4 if edge == 16 else 16
        if self.exec != M64:
            raise Wrong("lanes are missing")
        o, f = i.operands, product_fields(i)
        if not f or not f["abid"]:
            raise Wrong("not the scaled form")
        cbsz, blgp = f["cbsz"], f["blgp"]
        a, b, c = self.read(o[1]), self.read(o[2]), self.read(o[3], regs, by_product=o[0])
        scale_a, scale_b = self.read(o[4]), self.read(o[5])
        for lane in range(64):
            if None in tuple(a[lane]) + tuple(b[lane]) + tuple(c[lane]) + tuple(scale_a[lane]) + tuple(scale_b[lane]):
                raise Wrong("of what nothing wrote, or was not waited for")
        pad = [0] * 8
        out = self.host.product(self.set_mode(), edge, cbsz, blgp, f["byte_a"] + 4 * f["byte_b"], [(list(x) + pad)[:8] for x in a], [(list(x) + pad)[:8] for x in b],
                                [(list(x) + [0] * 16)[:16] for x in c], [s[0] for s in scale_a], [s[0] for s in scale_b])
        self.write(o[0], [row[:regs] for row in out])
        for n in registers(o[0])[1:]:
            self.products[n] = (self.slot, PRODUCT_WAIT[edge, cbsz < 2 or blgp < 2])


def launch(code, host, memory, arguments, block, groups, n_lds):
    """The groups given, one after the other. Returns the modes that the instructions ran under."""
    modes = []
    for group in groups:
        lds, epochs = [None] * (n_lds // 4), {}
        at = memory.buffer(arguments)
        waves = [Wave(code, host, memory, lds, epochs, n, at, group, min(64, block - 64 * n)) for n in range((block + 63) // 64)]
        running = [(w, w.run()) for w in waves]
        while running:
            left = []
            for w, r in running:
                try:
                    next(r)
                    left.append((w, r))
                except StopIteration:
                    modes += w.modes_seen
            if left and len(left) != len(running):
                raise Wrong("a barrier that not every wave reaches")
            running = left
    return modes
