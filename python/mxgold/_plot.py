"""Draws pictures of an Ablation with matplotlib (extra `plot`): error against bits, and how far each spec is behind the best with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import Error

if TYPE_CHECKING:
    from ._ablate import Ablation

# Of Okabe and Ito, which readers who see red and green alike can tell apart.
_FRONT, _REST = "#0072b2", "#8a8a8a"


def _axes(ax: Any, width: float, height: float) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("a plot needs matplotlib: pip install 'mxgold[plot]'") from None
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _rows(table: Ablation, tensor: str | None) -> tuple[str, list[dict[str, Any]]]:
    names = list(dict.fromkeys(row["tensor"] for row in table))
    if tensor is None and len(names) != 1:
        raise Error(f"tensor: of {len(names)} tensors, expected one of {', '.join(names[:8])}")
    name = names[0] if tensor is None else tensor
    rows = [row for row in table if row["tensor"] == name and row["sqnr_db"] is not None]
    if not rows:
        raise Error(f"tensor: {name!r} has no row with an SQNR, expected one of {', '.join(names[:8])}")
    return name, rows


def front(table: Ablation, tensor: str | None, ax: Any) -> Any:
    """SQNR against bits a number; specs that no other beats at fewer bits are joined by a line."""
    name, rows = _rows(table, tensor)
    ax = _axes(ax, 6.4, 4.2)
    best = sorted((row for row in rows if row["pareto"]), key=lambda row: float(row["bits"]))
    rest = [row for row in rows if not row["pareto"]]
    ax.plot([r["bits"] for r in best], [r["sqnr_db"] for r in best], color=_FRONT, marker="o", label="front")
    ax.plot([r["bits"] for r in rest], [r["sqnr_db"] for r in rest], color=_REST, marker="o", linestyle="none", label="not on it")
    low, high = min(r["bits"] for r in rows), max(r["bits"] for r in rows)
    room = (high - low) or 1.0
    ax.set_xlim(low - 0.08 * room, high + 0.42 * room)  # names stand to the right of their points
    for label, row in _apart(rows):
        ax.annotate(label, (row["bits"], row["sqnr_db"]), xytext=(7, 0), textcoords="offset points", fontsize=8, va="center")
    ax.set(xlabel="bits a number", ylabel="SQNR, dB", title=name)
    if rest:
        ax.legend(frameon=False, fontsize=8, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _apart(rows: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """A label for each point; points of one place share one, so that no name covers another."""
    span = max(r["sqnr_db"] for r in rows) - min(r["sqnr_db"] for r in rows)
    wide = (max(r["bits"] for r in rows) - min(r["bits"] for r in rows)) or 1.0
    groups: list[list[dict[str, Any]]] = []
    for row in sorted(rows, key=lambda r: (-r["sqnr_db"], r["bits"])):
        for group in groups:
            if abs(group[0]["sqnr_db"] - row["sqnr_db"]) <= 0.035 * span and abs(group[0]["bits"] - row["bits"]) <= 0.3 * wide:
                group.append(row)
                break
        else:
            groups.append([row])
    return [(", ".join(str(r["spec"]) for r in group), max(group, key=lambda r: float(r["bits"]))) for group in groups]


def behind(table: Ablation, tensor: str | None, ax: Any) -> Any:
    """Decibels behind the best spec of a tensor, best first, each with its interval of 95 %."""
    name, rows = _rows(table, tensor)
    rows = sorted((r for r in rows if r["behind_db"] is not None), key=lambda r: float(r["behind_db"]))
    ax = _axes(ax, 6.4, 1.2 + 0.32 * len(rows))
    at = range(len(rows))
    ax.barh(at, [r["behind_db"] for r in rows], color=[_FRONT if r["pareto"] else _REST for r in rows], height=0.62)
    for i, row in enumerate(rows):
        if row["behind_low"] is not None and row["behind_high"] is not None:
            ax.plot([row["behind_low"], row["behind_high"]], [i, i], color="black", linewidth=1.4)
    ax.set_yticks(list(at), [str(r["spec"]) for r in rows])
    ax.invert_yaxis()
    ax.set(xlabel="dB behind the best; the line is the interval of 95 %", title=f"{name} (blue: on the front of bits and SQNR)", xlim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
    return ax
