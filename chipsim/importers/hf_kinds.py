"""Layers one by one -> the kinds of layers of a model, and the order they stand in."""

from __future__ import annotations

from typing import Any, TypeAlias

Part: TypeAlias = dict[str, Any]
Mlp: TypeAlias = Part | None

LONGEST_PERIOD = 64
"""Layers of the longest pattern that is looked for."""


def layer_fields(mixers: list[Part | None], mlps: list[Mlp]) -> dict[str, Any]:
    """The fields of a model that say what its layers are.

    Parameters
    ----------
    mixers, mlps : list
        One per layer; None where a layer has none. What all layers share becomes the
        model's own, and what differs a kind.

    Returns
    -------
    dict
        ``attention``, ``mlp``, ``layer_kinds``, ``layer_order``; those that are needed.
    """
    content: dict[str, Any] = {}
    pairs = list(zip(mixers, mlps, strict=True))
    kinds: list[tuple[Part | None, Mlp]] = []
    order = []
    for pair in pairs:
        if pair not in kinds:
            kinds.append(pair)
        order.append(kinds.index(pair))
    same_mixer = all(mixer == mixers[0] for mixer in mixers) and mixers[0] is not None
    same_mlp = all(mlp == mlps[0] for mlp in mlps) and mlps[0] is not None
    if same_mixer and mixers[0]:
        content["attention"] = mixers[0]
    if same_mlp and mlps[0] != {"kind": "dense"}:
        content["mlp"] = mlps[0]
    if len(kinds) == 1 and same_mixer and same_mlp:
        return content
    names = _names(kinds, same_mixer=same_mixer, same_mlp=same_mlp)
    content["layer_kinds"] = [
        {
            "name": name,
            **({} if same_mixer else {"attention": "none" if mixer is None else mixer}),
            **({} if same_mlp else {"mlp": "none" if mlp is None else mlp}),
        }
        for name, (mixer, mlp) in zip(names, kinds, strict=True)
    ]
    content["layer_order"] = runs([names[index] for index in order])
    return content


def _names(
    kinds: list[tuple[Part | None, Mlp]], *, same_mixer: bool, same_mlp: bool
) -> list[str]:
    names: list[str] = []
    for mixer, mlp in kinds:
        words = []
        if mixer is not None and not same_mixer:
            words.append(_mixer_word(mixer))
        if mlp is not None and not same_mlp:
            words.append(str(mlp["kind"]))
        name = "-".join(words) or "layer"
        same = sum(other.rstrip("0123456789").removesuffix("-") == name for other in names)
        names.append(f"{name}-{same + 1}" if same else name)
    return names


def _mixer_word(mixer: Part) -> str:
    kind = str(mixer.get("kind", "gqa"))
    if kind == "compressed":
        sparse = "sparse" if "indexer" in mixer else "compressed"
        return sparse if "ratio" in mixer else "window"
    if kind != "gqa":
        return str(mixer.get("rule", kind))
    word = "window" if "window" in mixer else "full"
    return f"{word}-shared" if mixer.get("shares_cache") else word


def runs(order: list[str]) -> list[dict[str, Any]]:
    """An order as repeated patterns, each the one that covers most of what is left.

    Examples
    --------
    >>> runs(["a", "b", "b", "a", "b", "b", "a"])
    [{'kinds': ['a', 'b', 'b'], 'times': 2}, {'kinds': ['a']}]
    """
    found: list[dict[str, Any]] = []
    start = 0
    while start < len(order):
        period, times = _longest(order, start)
        run: dict[str, Any] = {"kinds": order[start : start + period]}
        found.append({**run, "times": times} if times > 1 else run)
        start += period * times
    return found


def _longest(order: list[str], start: int) -> tuple[int, int]:
    """Period and repetitions from a place on that cover the most layers."""
    best, covered = (1, 1), 1
    for period in range(1, min(LONGEST_PERIOD, (len(order) - start) // 2) + 1):
        pattern = order[start : start + period]
        times = 1
        while order[start + times * period : start + (times + 1) * period] == pattern:
            times += 1
        if times > 1 and times * period > covered:
            best, covered = (period, times), times * period
    return best
