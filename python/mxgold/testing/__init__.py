"""Defines assertions for the tests of a kernel, whose failure message is the verdict.

    mxgold.testing.assert_matches(x, codes, scales, preset="te-nvfp4")      a quantiser's bytes
    mxgold.testing.assert_product(a, b, d, accum="f32_block")               a block-scaled product
    mxgold.testing.assert_linear(x, w, dy, y=y, dx=dx, dw=dw, recipe=...)   a quantised linear layer
    mxgold.testing.explain(kernel, preset="te-nvfp4")                       which rule a callable follows, confirmed on fresh inputs
    @mxgold.testing.cases("te-nvfp4", suites=["ties", "special"])           tensors that tell kernels apart, for pytest

They raise AssertionError, so they serve pytest and unittest alike. The first three lines of the message say what differs, where, and which rule the kernel
follows instead; then come the example in full and the shell command that repeats it on the files of the smallest failing case, saved under .mxgold/.
"""

from __future__ import annotations

from ._explain import Explanation, explain
from ._linear import assert_linear
from ._matches import assert_matches
from ._product import assert_product
from ._save import failures
from ._suites import CaseSet, cases

__all__ = ["CaseSet", "Explanation", "assert_linear", "assert_matches", "assert_product", "cases", "explain", "failures"]
