"""Defines Spec, the keys of a quantisation as a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import _core
from ._arguments import integer, text
from ._errors import Error, SpecError

_KEYS: dict[str, str] = {name: doc for name, doc, _ in _core.keys()}
_CHOICES: dict[str, dict[str, str]] = {name: dict(choices) for name, _, choices in _core.keys()}
_ATTRIBUTES: dict[str, str] = {name.replace(".", "_"): name for name in _KEYS}
# Elements that are binary32 values themselves.
NO_CODES = ("none", "bf16")
# Keys without choices that are no numbers.
_TEXTS = {"block", "had.signs"}


def _number(key: str, value: str) -> int | float | None:
    """The value of a key that is a number; None for choices and texts."""
    if _CHOICES[key] or key in _TEXTS or value == "none":
        return None
    return int(value) if value.lstrip("-").isdigit() else float(value)


def meaning(key: str, value: str) -> str:
    """What a choice of a key is, in a few words; "" for numbers."""
    found = _CHOICES[key].get(value) or next((doc for name, doc in _CHOICES[key].items() if name.endswith("=") and value.startswith(name)), "")
    return found.partition(";")[0]


def _word(key: str, value: Any) -> str:
    """A value as its key's text: numbers in full, (1, 16) as 1x16."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return "x".join(str(integer(n, key)) for n in value)
    if value is None:
        return "none"
    if isinstance(value, (str, int)) or hasattr(type(value), "__index__"):
        return str(value)
    raise TypeError(f"{key}: expected text or a number, not {type(value).__name__}")


def _key(name: str) -> str:
    return _ATTRIBUTES.get(name, name)


def text_of(keys: Any, argument: str = "set") -> str:
    """Keys as 'key=value key=value': from such text, a mapping, or a sequence of 'key=value'."""
    if isinstance(keys, str):
        return text(keys, argument)
    if isinstance(keys, Mapping):
        return " ".join(f"{_key(text(k, argument))}={_word(k, v)}" for k, v in keys.items())
    if isinstance(keys, (list, tuple, frozenset, set)) and all(isinstance(k, str) for k in keys):
        return " ".join(text(k, argument) for k in keys)
    raise TypeError(f"{argument}: expected text, a mapping or a sequence of 'key=value', not {type(keys).__name__}")


class Spec(_core.SpecBase):
    """What a quantiser does, in full: formats, block, rules, rounding, special values, tensor scale, layout of codes.

    Spec()                                          plain OCP MXFP4
    Spec("te-nvfp4")                                a preset (mxgold.presets())
    Spec("te-nvfp4", elem_round="sr", seed=7)       keys on top, dots as underscores
    Spec("te-nvfp4 elem.round=sr seed=7")           the same as text
    Spec({"preset": "te-nvfp4", "elem.round": "sr"})  a mapping
    Spec("te-nvfp4", set={"elem.round": "sr"})      keys with their own names

    A Spec never changes. Specs are equal if every key is; they hash, pickle, and print as the shortest text that makes them again. spec.elem_round and
    spec["elem.round"] give a key's value; dict(spec) all of them; spec.replace(...) a changed one; spec.preset the preset with exactly these keys, or None.

    Raises SpecError for unknown presets, keys and values (with .nearest) and for keys that exclude each other.

    >>> Spec("te-nvfp4", elem_round="sr", seed=7)
    Spec('te-nvfp4', elem_round='sr', seed=7)
    >>> Spec("te-nvfp4").scale, Spec("te-nvfp4").block
    ('e4m3', '1x16')
    """

    __slots__ = ("_like",)
    _like: str | None

    def __new__(cls, spec: str | Mapping[str, Any] | _core.SpecBase | None = None, /, *, set: Any = None, seed: int | None = None, **keys: Any) -> Spec:
        preset: str | None = None
        texts: list[str] = []
        if isinstance(spec, _core.SpecBase):
            preset = getattr(spec, "_like", None)
            texts.append(spec.text(True))
        elif isinstance(spec, str):
            if spec.lstrip().startswith("{"):
                texts.append(spec)
            else:
                words = spec.replace(",", " ").split()
                if words and "=" not in words[0]:
                    preset = words.pop(0)
                texts.append(" ".join(words))
        elif isinstance(spec, Mapping):
            rest = dict(spec)
            preset = rest.pop("preset", None)
            texts.append(text_of(rest))
        elif spec is not None:
            raise TypeError(f"spec: expected a preset's name, keys as text, a mapping or a Spec, not {type(spec).__name__}")
        if set is not None:
            texts.append(text_of(set))
        for name, value in keys.items():
            if name not in _ATTRIBUTES:
                core = _core.SpecBase(None)
                try:  # the message with the nearest names is the library's
                    core.__class__(None, f"{name.replace('_', '.', 1)}=1")
                except SpecError as error:
                    error.nearest = tuple(n.replace(".", "_") for n in error.nearest)
                    raise
                raise TypeError(f"Spec() has no key {name}")
            texts.append(f"{_ATTRIBUTES[name]}={_word(name, value)}")
        if seed is not None:
            texts.append(f"seed={integer(seed, 'seed')}")
        try:
            self = super().__new__(cls, preset, *(t for t in texts if t))
        except Error as error:
            if set is not None and error.argument is None:
                _name(error, "set")
            raise
        self._like = preset
        return self

    def __init_subclass__(cls) -> None:
        raise TypeError("Spec cannot be subclassed")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_like" and not hasattr(self, "_like"):
            super().__setattr__(name, value)
            return
        raise AttributeError(f"a Spec never changes: spec.replace({name}=...) gives a changed one")

    def _items(self) -> Iterator[tuple[str, str]]:
        for item in self.text(True).split(" "):
            name, _, value = item.partition("=")
            yield name, value

    def keys(self) -> list[str]:
        """Names of all keys, in the order of the specification."""
        return list(_KEYS)

    def __getitem__(self, name: str) -> str | int | float:
        if not isinstance(name, str):
            raise TypeError(f"name: expected a key's name, not {type(name).__name__}")
        key = _key(name)
        for k, value in self._items():
            if k == key:
                number = _number(key, value)
                return value if number is None else number
        raise KeyError(name)

    def __getattr__(self, name: str) -> Any:
        if name in _ATTRIBUTES:
            return self[name]
        raise AttributeError(f"Spec has no key {name}")

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *_ATTRIBUTES])

    @property
    def preset(self) -> str | None:
        """The preset with exactly these keys, seed, nibble order and a given tensor scale apart; None if there is none."""
        plain = self.replace(seed=0, nibble="low_first", tensor_given="none")
        name, rest = plain.shortest(self._like)
        return name if not rest else None

    def _label(self) -> str:
        """The preset's name that a file states: the one that was asked for, if the spec is still that preset."""
        like = self._like
        return like if like and self.replace(seed=0, nibble="low_first", tensor_given="none") == Spec(like, nibble="low_first") else ""

    def replace(self, **keys: Any) -> Spec:
        """A spec with some keys changed: spec.replace(elem_round="sr")."""
        return Spec(self, **keys)

    def __str__(self) -> str:
        name, rest = self.shortest(self._like)
        return " ".join(part for part in (name, rest) if part) or "ocp-mxfp4"

    def __repr__(self) -> str:
        name, rest = self.shortest(self._like)
        words = [repr(name)] if name else []
        for item in rest.split():
            key, _, value = item.partition("=")
            number = _number(key, value)
            words.append(f"{key.replace('.', '_')}={value if number is not None and abs(number) < float('inf') else repr(value)}")
        return f"Spec({', '.join(words)})"

    def _repr_html_(self) -> str:
        from ._html import spec_html

        return spec_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._like, self.text(True))


def _name(error: Error, argument: str) -> None:
    """Put the argument's name before a message that has none."""
    error.args = (f"{argument}: {error}",)
    error.argument = argument


def _unpickle(like: str | None, text: str) -> Spec:
    spec = Spec(text)
    object.__setattr__(spec, "_like", like)
    return spec


def make(preset: Any, spec: Any, set: Any, seed: Any) -> Spec:
    """The spec of the arguments preset=, spec=, set= and seed= of a function; called by the C module too."""
    if preset is not None and spec is not None:
        raise SpecError("preset and spec exclude each other, expected one of them")
    if preset is not None and not isinstance(preset, str):
        raise TypeError(f"preset: expected a name, not {type(preset).__name__}")
    base, argument = (preset, "preset") if preset is not None else (spec, "spec")
    try:
        return Spec(base, set=set, seed=seed)
    except Error as error:
        if error.argument is None:
            _name(error, argument)
        raise
