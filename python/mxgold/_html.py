"""Draws what notebooks show of Spec, Quantized, Diff and Identity: small tables, without script or network."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._ablate import Ablation
    from ._quantized import Quantized
    from ._spec import Spec
    from ._verify import Diff, Identity


def _cell(value: Any) -> str:
    return html.escape(f"{value:.9g}" if isinstance(value, float) else str(value))


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    top = "".join(f"<th>{_cell(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{_cell(v)}</td>" for v in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def spec_html(spec: Spec) -> str:
    """The keys that differ from plain OCP MXFP4, with what each choice is."""
    from ._spec import meaning

    rows = [(k, v, meaning(k, v)) for k, _, v in (item.partition("=") for item in spec.text().split())]
    return f"<p><b>{_cell(spec)}</b></p>" + (_table(("key", "value", "meaning"), rows) if rows else "<p>plain OCP MXFP4</p>")


def quantized_html(q: Quantized) -> str:
    """What it is, and its first block: codes, values, scale."""
    q = q._in_numpy()
    cols = min(q.cols, 16)
    head = f"<p><b>{_cell(repr(q))}</b></p>"
    if not q.rows or not q.cols or q.spec["elem"] == "none":
        return head
    codes, values = q.unpack()[0, :cols], q.dequantize().reshape(q.rows, q.cols)[0, :cols]
    rows = [("code", *(f"0x{int(c):x}" for c in codes)), ("value", *(float(v) for v in values))]
    scale = f"<p>scale 0x{int(q.scales[0, 0]):02x}</p>" if q.scales.size and q.scales.dtype.kind == "u" else ""
    return head + _table(("row 0", *range(cols)), rows) + scale


def diff_html(found: Diff) -> str:
    """Counts, patterns, verdict, examples."""
    counts = [("codes", found.n_codes, found.codes_differ), ("scales", found.n_scales, found.scales_differ)]
    parts = [f"<p><b>{'equal' if found.equal else 'not equal'}</b></p>", _table(("", "compared", "differ"), counts)]
    parts += [f"<p>{_cell(text)}</p>" for text in (*found.patterns, found.verdict) if text]
    if found.examples:
        parts.append(_table(found.examples[0].keys(), (e.values() for e in found.examples)))
    return "".join(parts)


def identity_html(found: Identity) -> str:
    """The verdict, the keys, the command."""
    keys = spec_html(found.spec) if found.spec is not None else ""
    return f"<p><b>{_cell(found.verdict)}</b></p>{keys}<pre>{_cell(found.reproduce)}</pre>"


def ablation_html(table: Ablation) -> str:
    """The figures that decide, a row for each tensor and spec."""
    names = ("tensor", "spec", "bits", "sqnr_db", "behind_db", "behind_low", "behind_high", "saturated", "underflow")
    return _table(names, ([row.get(name, "") for name in names] for row in table))
