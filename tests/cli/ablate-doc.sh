# Tests how docs/FINDINGS.md judges papers: an order that does not hold must stand among what disagrees, and orders of rounding are compared as said below.
: "${scratch:?run by tests/run-cli.sh}"
# Orders of rounding agree if the dequantised values are the same and zeros of either sign count as equal. Codes are not compared, because each library
# rounds the last place of its values in its own way.
python3 - "$root" "$mxgold" <<'P' || fail "docs/FINDINGS.md: orders of rows or of roundings"
import array, json, random, re, struct, subprocess, sys
root, mxgold = sys.argv[1:]
page = open(root + "/docs/FINDINGS.md").read()
page = page[page.index("# Findings: the papers' tensor tables"):]  # below the part on training
rows = re.findall(r"\| (?:no clamp|\.\d+, \w+(?: \w+)?) \(paper: [\d.]+ %, ([\d.]+) dB\), SNR \|  \| ([\d.]+) \|", page)
assert len(rows) == 5, rows
paper, here = ([float(r[k]) for r in rows] for k in (0, 1))
few = page.split("## Stochastic rounding with few random bits")[1].split("\n## ")[0]
few = re.findall(r"^\| .* \| (-?[\d.]+) \| (-?[\d.]+) \| (.*) \|$", few, re.M)
assert len(few) == 27 and all(a == b and c == "agrees" for a, b, c in few), few # every stated digit
assert len(re.findall(r"^\| UE5M3 \(114688\), N\(0,1\), .* \| \d", page, re.M)) == 6 # the whole row of table 1.2
blocks = page.split("## Scales, their gradients and estimators on single blocks")[1].split("\n## ")[0]
blocks = re.findall(r"^\| .* \| ([^|]+) \| ([^|]+) \| (.*) \|$", blocks, re.M)
assert len(blocks) == 23 and all(a == b and c == "agrees" for a, b, c in blocks), blocks # every stated digit
order = lambda v: sorted(range(5), key=lambda i: -v[i])
listed = "order of these five rows by SNR" in page[:page.index("\n## ")]
assert listed == (order(paper) != order(here)), (paper, here)
random.seed(3)
n = 256 * 1024
x = array.array("f", (random.gauss(0, 1) for _ in range(n)))
head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (256, 1024), }"
open("x.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.ljust(117) + b"\n" + x.tobytes())
def values(*how):
    subprocess.run([mxgold, "quantize", "x.npy", *how, "--dequantized", "-o", "y.safetensors"], check=True, stdout=subprocess.DEVNULL)
    raw = open("y.safetensors", "rb").read()
    m = struct.unpack("<Q", raw[:8])[0]
    a, b = json.loads(raw[8:8 + m])["dequantized"]["data_offsets"]
    return raw[8 + m + a:8 + m + b]
exact = values(*(w for k in "scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv chain=exact".split() for w in ("--set", k)))
for preset in ("quark-nvfp4", "autoround-nvfp4"):
    own = values("--preset", preset)
    differ = sum(abs(a - b) > 1e-5 * abs(a) for a, b in zip(array.array("f", exact), array.array("f", own)))
    said = [int(v) for v in re.findall(r"\| %s, binary32, codes of another value \|  \| (\d+) \|" % preset, page)]
    assert own != exact and differ < 4 and len(said) == 1 and said[0] < 64 * 4, (preset, differ, said)
P
