"""Tests the forms in which ablate() gives its results: CSV, pandas, polars, pictures."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from conftest import ROOT

import mxgold

PRESETS = ["ocp-mxfp4", "nvfp4", "fouroversix", "mxfp4-ue5m3", "ocp-mxfp8-e4m3"]


@pytest.fixture(scope="module")
def table():
    return mxgold.ablate(mxgold.load(ROOT / "tests/data/minilm_slices.safetensors"), PRESETS)


def test_csv(table, tmp_path):
    table.to_csv(tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(table) == 15
    for mine, theirs in zip(table, rows, strict=True):
        assert float(theirs["sqnr_db"]) == mine["sqnr_db"] and theirs["spec"] == mine["spec"]  # every bit of a number survives
        assert theirs["note"] == (mine["note"] or "")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library, table):
    pytest.importorskip(library)
    frame = table.to_pandas() if library == "pandas" else table.to_polars()
    assert frame.shape == (15, len(table.columns)) and list(frame.columns) == table.columns
    for name in ("sqnr_db", "bits", "behind_db", "max_relative"):
        assert "float" in str(frame[name].dtype).lower(), name
        assert [float(v) for v in frame[name]] == [float(row[name]) for row in table]
    assert [str(v) for v in frame["spec"]] == [row["spec"] for row in table]


@pytest.fixture
def axes():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    yield ax
    plt.close("all")


def test_plot_front(table, axes, tmp_path):
    assert table.plot_front("activation", ax=axes) is axes
    rows = [row for row in table if row["tensor"] == "activation"]
    best = sorted((row["bits"], row["sqnr_db"]) for row in rows if row["pareto"])
    front, rest = axes.get_lines()
    assert list(zip(*front.get_data(), strict=True)) == best and len(rest.get_xdata()) == len(rows) - len(best)
    said = ", ".join(text.get_text() for text in axes.texts)
    assert sorted(said.split(", ")) == sorted(PRESETS) and axes.get_ylabel() == "SQNR, dB"
    axes.figure.savefig(tmp_path / "front.png")
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])  # no name covers another
    assert all(box.x1 <= axes.get_window_extent().x1 + 1 for box in boxes)
    with pytest.raises(mxgold.Error, match="tensor: of 3 tensors"):
        table.plot_front()
    with pytest.raises(mxgold.Error, match="tensor: 'no'"):
        table.plot_behind("no")


def test_plot_behind(table, axes, tmp_path):
    table.plot_behind("weight", ax=axes)
    rows = sorted((row for row in table if row["tensor"] == "weight"), key=lambda row: row["behind_db"])
    assert [bar.get_width() for bar in axes.patches] == [row["behind_db"] for row in rows]
    assert [t.get_text() for t in axes.get_yticklabels()] == [row["spec"] for row in rows]
    assert [tuple(line.get_xdata()) for line in axes.get_lines()] == [(row["behind_low"], row["behind_high"]) for row in rows]
    axes.figure.savefig(tmp_path / "behind.png")


def test_plot_of_one(axes):
    """One spec of one tensor, and exact numbers: axes without any extent."""
    one = mxgold.ablate(np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32), "ocp-mxfp4")
    one.plot_front(ax=axes)
    exact = mxgold.ablate(np.ones((8, 64), np.float32), ["ocp-mxfp4", "nvfp4"])
    try:
        exact.plot_behind(ax=axes)
    except mxgold.Error as error:
        assert "no row with an SQNR" in str(error)
