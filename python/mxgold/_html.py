"""Draws what notebooks show of Spec, Quantized, Diff, Identity and other answers: small tables, without script or network."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ._spec import NO_CODES

if TYPE_CHECKING:
    from ._ablate import Ablation
    from ._quantized import Quantized
    from ._spec import Spec
    from ._verify import Diff, Identity, Judgement, Probe
    from .testing import Explanation


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


def _records(rows: Sequence[dict[str, Any]], names: Mapping[str, str] | None = None) -> str:
    """A table of dicts. names: headings of keys, where they are not the keys themselves; codes and scales are shown in hex."""
    keys = list(dict.fromkeys(k for row in rows for k in row))
    heads = [(names or {}).get(k, k.replace("_", " ")) for k in keys]
    return _table(heads, [[_value(k, row.get(k, "")) for k in keys] for row in rows])


def _value(key: str, value: Any) -> Any:
    return hex(value) if key.startswith(("code_", "scale_")) and isinstance(value, int) else value


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


# Headings of what the program calls A, which is expected, and B.
_SIDES = {f"{what}_{side}": word for what in ("code", "scale", "value") for side, word in (("a", f"expected {what}"), ("b", f"your {what}"))}


def diff_html(found: Diff) -> str:
    """Counts, patterns, verdict, examples."""
    counts = [("codes", found.n_codes, found.codes_differ), ("scales", found.n_scales, found.scales_differ)]
    parts = [f"<p><b>{'equal' if found.equal else 'not equal'}</b></p>", _table(("", "compared", "differ"), counts)]
    parts += [f"<p>{_cell(text)}</p>" for text in (*found.patterns, found.verdict) if text]
    if found.examples:
        parts.append(_records(found.examples, _SIDES))
    return "".join(parts)


def identity_html(found: Identity) -> str:
    """The verdict, the keys, the command."""
    keys = spec_html(found.spec) if found.spec is not None else ""
    command = f'<pre style="white-space:pre-wrap">{_cell(found.reproduce)}</pre>' if found.reproduce else ""
    return f"<p><b>{_cell(found.verdict)}</b></p>{keys}{command}"


def explanation_html(found: Explanation) -> str:
    """Whether it is right and confirmed, on how many inputs, then what was found."""
    row = ("yes" if found.ok else "no", found.grade, found.cases, found.fresh)
    return _table(("right", "answer", "inputs", "fresh inputs"), [row]) + identity_html(replace(found.identity, verdict=found.verdict))


def judgement_html(found: Judgement) -> str:
    """Counts, where D differs, verdict, models, examples."""
    parts = [f"<p><b>{'equal' if found.equal else 'not equal'}</b></p>"]
    parts.append(_table(("compared with", "outputs", "differ"), [(found.judged_against, found.outputs, found.differ)]))
    parts += [f"<p>{_cell(text)}</p>" for text in (*found.regions, found.verdict) if text]
    parts += [_records(rows) for rows in (found.findings, found.models, found.examples) if rows]
    return "".join(parts)


def probe_html(found: Probe) -> str:
    """The verdict, the model, the rows of the tables that give the same."""
    names = _table(("rows that give the same",), [(name,) for name in found.names]) if found.names else ""
    return f"<p><b>{_cell(found.verdict)}</b></p><p>{'model' if found.fits else 'nearest model'}: {_cell(found.model)}</p>{names}"


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
