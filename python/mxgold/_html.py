"""Draws what notebooks show of Spec, Quantized, Diff and Identity: small tables, without script or network."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._spec import NO_CODES

if TYPE_CHECKING:
    from ._ablate import Ablation
    from ._quantized import Quantized
    from ._spec import Spec
    from ._verify import Diff, Identity


def _cell(value: Any) -> str:
    return html.escape(f"{value:.6g}" if isinstance(value, float) else str(value))


def _data(value: Any) -> str:
    side = "left" if isinstance(value, str) else "right"
    wrap = ";overflow-wrap:anywhere" if isinstance(value, str) and len(value) > 20 else ""
    return f'<td style="padding:1px 8px;text-align:{side}{wrap}">{_cell(value)}</td>'


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table with numbers at the right, which scrolls by itself where the page is narrow."""
    top = "".join(f'<th style="padding:1px 8px;text-align:left">{_cell(h)}</th>' for h in head)
    body = "".join("<tr>" + "".join(_data(v) for v in row) + "</tr>" for row in rows)
    return f'<div style="overflow-x:auto;max-width:100%"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


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
    if not q.rows or not q.cols or q.spec["elem"] in NO_CODES:
        return head
    codes, values = q.unpack()[0, :cols], q.dequantize().reshape(q.rows, q.cols)[0, :cols]
    rows = [(f"0, {at}", f"0x{int(code):x}", float(value)) for at, (code, value) in enumerate(zip(codes, values, strict=True))]
    scale = f"<p>scale 0x{int(q.scales[0, 0]):02x}</p>" if q.scales.size and q.scales.dtype.kind == "u" else ""
    return head + _table(("row, column", "code", "value"), rows) + scale


def diff_html(found: Diff) -> str:
    """Counts, patterns, verdict, examples."""
    counts = [("codes", found.n_codes, found.codes_differ), ("scales", found.n_scales, found.scales_differ)]
    parts = [f"<p><b>{'equal' if found.equal else 'not equal'}</b></p>", _table(("", "compared", "differ"), counts)]
    parts += [f"<p>{_cell(text)}</p>" for text in (*found.patterns, found.verdict) if text]
    if found.examples:
        rows = [[hex(v) if k.startswith(("code_", "scale_")) and isinstance(v, int) else v for k, v in e.items()] for e in found.examples]
        parts.append(_table((k.replace("_", " ") for k in found.examples[0]), rows))
    return "".join(parts)


def identity_html(found: Identity) -> str:
    """The verdict, the keys, the command."""
    keys = spec_html(found.spec) if found.spec is not None else ""
    command = f'<pre style="white-space:pre-wrap">{_cell(found.reproduce)}</pre>' if found.reproduce else ""
    return f"<p><b>{_cell(found.verdict)}</b></p>{keys}{command}"


def ablation_html(table: Ablation) -> str:
    """The figures that decide, a row for each tensor and spec."""
    head = ("tensor", "spec", "bits", "SQNR dB", "dB behind (95 %)", "saturated", "underflow")
    return _table(head, (_ablation_row(row) for row in table))


def _ablation_row(row: dict[str, Any]) -> list[str]:
    def number(name: str, form: str) -> str:
        value = row.get(name)
        return "" if value is None or value == "" else form.format(float(value))

    behind = number("behind_db", "{:.2f}")
    if number("behind_low", "{:.2f}") and row["behind_db"]:
        behind += f" ({row['behind_low']:.2f}..{row['behind_high']:.2f})"
    shares = [number(name, "{:.2%}") for name in ("saturated", "underflow")]
    return [row.get("tensor", ""), row.get("spec", ""), number("bits", "{:.3f}"), number("sqnr_db", "{:.2f}"), behind, *shares]
