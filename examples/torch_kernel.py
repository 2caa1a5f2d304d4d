#!/usr/bin/env python3
"""Runs a kernel on torch tensors between gen and verify. On an AMD GPU torch calls the device "cuda" too.

    mxgold gen ties --preset torchao-even | python3 examples/torch_kernel.py | mxgold verify -

quantize() below is the place for yours: a Triton kernel, a torch.compile'd function, an extension. It gets x, float32 [rows][cols] on the device, and
returns codes (uint8 [rows][cols], one FP4 code each) and scales (uint8 [rows][blocks], E8M0). The one here is MXFP4 with the even rule in plain
torch operations; --bug rounds half away from zero. --kernel MODULE takes quantize() from MODULE.py beside this file: triton_kernel is the same rule as
a Triton kernel."""
import argparse
import importlib
import sys


def quantize(x, torch, bug=False):
    rows, cols = x.shape
    blocks = (cols + 31) // 32
    v = torch.nn.functional.pad(x, (0, blocks * 32 - cols)).reshape(rows, blocks, 32)
    bits = v.view(torch.int32)
    amax = (bits & 0x7FFFFFFF).amax(2)
    byte = (((amax + 0x200000) >> 23) - 2).clamp(0, 253)
    special = amax > 0x7F800000
    # Exact quotient: both are powers of two apart in binary64. torchao divides by 2^-126 at least, the least normal number.
    q = v.double() * torch.exp2(127.0 - byte.clamp(min=1).double()).unsqueeze(2)
    m = q.abs()
    code = torch.zeros_like(m, dtype=torch.int32)
    for i, (tie, even) in enumerate([(0.25, 0), (0.75, 1), (1.25, 0), (1.75, 1), (2.5, 0), (3.5, 1), (5.0, 0)]):
        code += (m >= tie if bug or even else m > tie).int()
    code |= (bits >> 31 & 1) << 3
    nan = torch.isnan(v)
    code = torch.where(special.unsqueeze(2), 7 | torch.where(nan, (bits >> 31 & 1) << 3, 0), code)
    byte = torch.where(special, 255, byte)
    return code.reshape(rows, blocks * 32)[:, :cols].to(torch.uint8), byte.to(torch.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bug", action="store_true")
    parser.add_argument("--device", default=None)
    parser.add_argument("--kernel", metavar="MODULE", default=None, help="take quantize() from there")
    options = parser.parse_args()
    import torch

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    lines = sys.stdin.read().splitlines()
    head = [l for l in lines if l.startswith("#") and not l.startswith("# end")]
    cases = [l for l in lines if not l.startswith("#")]
    columns = dict()
    for item in head[-1].split()[2:]:
        name, bits, count = item.rsplit(":", 2)
        columns[name] = (int(bits), int(count))
    meta = dict(l[2:].split("=", 1) for l in head if "=" in l)
    rows = int(meta["rows"]) if meta.get("case") == "tensor" else 1
    x = torch.tensor([[int(w, 16) for w in l.split(" | ")[0].split()] for l in cases], dtype=torch.int64)
    x = (x - ((x >> 31) << 32)).to(torch.int32).reshape(len(cases) * rows, -1)[:, : int(meta["cols"])].contiguous().view(torch.float32)
    kernel = importlib.import_module(options.kernel).quantize if options.kernel else quantize
    codes, scales = kernel(x.to(device), torch, options.bug)
    print("\n".join(head))
    codes = codes.cpu().reshape(len(cases), -1).tolist()
    scales = scales.cpu().reshape(len(cases), -1).tolist()
    for line, c, s in zip(cases, codes, scales):
        print(line + " | " + " ".join(f"{v:0{(columns['codes'][0] + 3) // 4}x}" for v in c) + " | " + " ".join(f"{v:02x}" for v in s))
    print(f"# end {len(cases)}")


if __name__ == "__main__":
    main()
