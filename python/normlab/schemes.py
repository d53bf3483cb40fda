"""The catalogue of schemes as typed objects, read from the compiled catalogue of the program.

>>> from normlab import schemes
>>> schemes.find("lp").p
3.0
>>> [name for name, row in schemes.catalogue.items() if row.constraint != "none"]
['ngpt', 'angpt']
"""
import dataclasses
import difflib
import json
import typing
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import torch

__all__ = ["Factor", "Scheme", "catalogue", "find"]

#: A number, or a rule such as "1/sqrt(d_head)" that follows from the sizes of a model.
Factor = float | str


@dataclasses.dataclass(frozen=True)
class Scheme:
    """A row; ``normlab config explain norm.KEY`` explains a field."""

    name: str
    title: str
    equation: str
    source: str
    recommended: Mapping[str, str]  #: configuration keys that its authors train with
    sublayer: Literal["layer", "rms", "scale", "dyt", "none"]
    placement: Literal["pre", "post", "branch", "both"]
    sublayer_eps: float
    sublayer_scale: Literal["1", "1/sqrt(layer)"]
    embedding: Literal["none", "fixnorm", "scaled", "sqrt_d"]
    residual: Literal["add", "lerp_unit", "lerp_nu", "lerp"]
    alpha_init: Factor
    alpha_sharing: Literal["channel", "layer"]
    map_scale: Literal["none", "s_uv", "nu"]
    qk: Literal["none", "lp", "rms", "layer"]
    p: float
    learn_p: bool
    p_sharing: Literal["layer", "head"]
    qk_groups: int
    scope: Literal["head", "all_heads"]
    order: Literal["before_rope", "after_rope"]
    qk_eps: float
    qk_affine: Literal["none", "shared", "own"]
    gain: Literal["none", "model", "layer", "head", "channel"]
    gain_init: Factor
    learn_gain: bool
    gain_on: Literal["queries", "both"]
    gain_form: Literal["plain", "exp"]
    gain_max: float
    logit_scale: Factor
    row_scale: Literal["1", "log(n)"]
    soft_cap: float
    output_scale: Literal["none", "s_z"]
    output_soft_cap: float
    z_loss: float
    stored_scale: Factor
    constraint: Literal["none", "unit", "ball"]
    constraint_axis: Literal["embedding", "rows"]
    qk_clip: float
    sigma_reparam: bool


def _value(text: str, kind: object) -> object:
    if kind == Factor:
        try:
            return float(text)
        except ValueError:
            return text
    if kind is bool:
        return {"true": True, "false": False}[text]
    if kind in (int, float):
        return kind(text)
    if text not in typing.get_args(kind):
        raise ValueError(f"[normlab.schemes] {text!r} is not among {typing.get_args(kind)}.")
    return text


def _read() -> Mapping[str, Scheme]:
    kinds = typing.get_type_hints(Scheme)
    rows = {}
    for row in json.loads(torch.ops.normlab.catalogue()):
        fields = {key.removeprefix("norm."): text for key, text in row["fields"].items()}
        fields.pop("scheme")
        values = {key: _value(text, kinds[key]) for key, text in fields.items()}
        texts = {key: row[key] for key in ("name", "title", "equation", "source")}
        rows[row["name"]] = Scheme(**texts, recommended=MappingProxyType(row["recommended"]), **values)
    return MappingProxyType(rows)


#: All rows by name, in the order of ``normlab schemes``.
catalogue: Mapping[str, Scheme] = _read()


def find(name: str) -> Scheme:
    """The row of that name.

    >>> find("qknrom")
    Traceback (most recent call last):
    ValueError: [normlab.schemes] there is no scheme 'qknrom'; did you mean qknorm? Known: none, qknorm, lp, ...
    """
    if name in catalogue:
        return catalogue[name]
    near = difflib.get_close_matches(str(name), catalogue, n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    raise ValueError(f"[normlab.schemes] there is no scheme {name!r}{hint} Known: {', '.join(catalogue)}.")
