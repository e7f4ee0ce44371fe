"""Score models: from a model's answers on the anchors to its score on the whole benchmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DiscoError, FormatError, check_options, options_of, unknown
from .auto import Assessment, Auto
from .base import ScoreModel
from .direct import Direct, WeightedSum
from .irt import GPIRT, PIRT, AbilityIRT
from .lifelong import Lifelong
from .regressors import KNN, REGRESSORS, Boosting, Forest, Lasso, Linear, Ridge
from .signature import PARTS, SignatureModel, signature

# classes that a saved condensation may name; nothing else is ever built from a file
SCORE_MODELS: dict[str, type[Any]] = {
    c.name: c for c in (Auto, Direct, WeightedSum, SignatureModel, PIRT, GPIRT, AbilityIRT, Lifelong)
}


def _on_signature(regressor: str) -> Callable[..., ScoreModel]:
    def build(
        parts: tuple[str, ...] = ("probs",), n_components: int | None = 256, reduction: str = "pca", **options: Any
    ) -> ScoreModel:
        if reduction not in ("pca", "umap"):
            raise DiscoError(unknown("reduction", reduction, ["pca", "umap"]))
        kind: type[SignatureModel] = SignatureModel
        if reduction == "umap":
            from .umap import UmapSignatureModel

            kind = UmapSignatureModel
        return kind(REGRESSORS[regressor](**options), parts, n_components)

    return build


def _gp(grades: bool = False, guess: bool | None = None, perfect: bool | None = None) -> ScoreModel:
    return Auto(guard=False, grades=grades, guess=guess, perfect=perfect)


PREDICTORS: dict[str, Callable[..., ScoreModel]] = {
    "auto": Auto,
    "gp": _gp,
    "direct": Direct,
    "weighted_sum": WeightedSum,
    "pirt": PIRT,
    "gpirt": GPIRT,
    "ability_irt": AbilityIRT,
    "lifelong": Lifelong,
    **{name: _on_signature(name) for name in REGRESSORS},
}


def predictor(name: str, **options: Any) -> ScoreModel:
    """A new score model of a name; an unknown name or option raises DiscoError and says which there are.

    ``auto`` takes ``guard``, ``grades``, ``guess`` and ``perfect``, ``gp`` (auto without its guard) the last three;
    ``direct`` and ``weighted_sum`` nothing, ``lifelong`` ``threshold``; ``pirt``, ``gpirt`` and ``ability_irt``
    ``n_dims``; the others are a `SignatureModel` with that regressor and take ``parts``, ``n_components``,
    ``reduction`` (``pca`` or, with the extra, ``umap``) and the regressor's own options (``k``, ``metric``, ``alpha``,
    ``n_trees``, ``epochs``).
    """
    if name not in PREDICTORS:
        raise DiscoError(unknown("prediction", name, list(PREDICTORS)))
    methods: list[Callable[..., object]] = [method for method in (PREDICTORS[name], REGRESSORS.get(name)) if method]
    check_options(f"prediction '{name}'", options, methods)
    try:
        return PREDICTORS[name](**options)
    except TypeError:
        takes = ", ".join(o for o in map(options_of, methods) if o != "none") or "none"
        raise DiscoError(f"prediction '{name}' does not take these options: {options}; it takes {takes}") from None


def restore(name: str, config: dict[str, Any], state: dict[str, Any], ids: Any) -> ScoreModel:
    """A fitted score model from what was saved; FormatError where the arrays do not make one."""
    if name not in SCORE_MODELS:
        raise FormatError(unknown("score model", name, list(SCORE_MODELS)))
    try:
        model: ScoreModel = SCORE_MODELS[name].restore(config, state, ids)
    except (TypeError, KeyError) as e:
        raise FormatError(f"the saved score model '{name}' cannot be restored: {e}") from None
    return model


__all__ = [
    "GPIRT",
    "KNN",
    "PARTS",
    "PIRT",
    "PREDICTORS",
    "REGRESSORS",
    "SCORE_MODELS",
    "AbilityIRT",
    "Assessment",
    "Auto",
    "Boosting",
    "Direct",
    "Forest",
    "Lasso",
    "Lifelong",
    "Linear",
    "Ridge",
    "ScoreModel",
    "SignatureModel",
    "WeightedSum",
    "predictor",
    "restore",
    "signature",
]
