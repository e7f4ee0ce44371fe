"""The paper's comparisons by name: which methods, on which splits, with how many anchors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import DiscoError, unknown
from ..predict.umap import umap_installed
from ..responses import Responses
from .methods import SSEPY, Condensed, Method, Options, Pair, method

Times = float | Mapping[str, float]
METABENCH = {"": 1.5, "hellaswag": 4.5, "winogrande": 2.0}  # the paper's 150, 450 and 200 items
CURVE = (10, 30, 60, 100, 200, 500)
_STRATIFIED = {"stratify": True}


@dataclass(frozen=True)
class Preset:
    """What a study needs; ``splits`` and ``n_anchors`` are the paper's, used unless the caller says otherwise.

    ``note`` says which methods are left out and why, ``split_note`` which splits, where the caller names none.
    """

    methods: tuple[Method, ...]
    splits: tuple[str, ...] = ("chronological",)
    n_anchors: tuple[int, ...] = (100,)
    note: str = ""
    split_note: str = ""


def preset(name: str, responses: Responses, *, committee: int | None = None, metabench: Times = METABENCH) -> Preset:
    """A preset of the paper, fitted to what the responses hold.

    Parameters
    ----------
    name
        One of `PRESETS`.
    responses
        Rows that need probabilities are left out where only grades are known, and the note says so.
    committee
        Source models asked for disagreement, drawn in every run; all by default. The paper takes 100 on MMLU. More than
        there are is refused when anchors are chosen.
    metabench
        Metabench's anchors for each one of the others', for all benchmarks or by name (``""`` for any other).

    Raises DiscoError for another name.
    """
    if name not in PRESETS:
        raise DiscoError(unknown("preset", name, list(PRESETS)))
    asked = {} if committee is None else {"committee_size": committee}
    made = PRESETS[name](responses, asked, metabench)
    if responses.probs is not None:
        return made
    kept = tuple(m for m in made.methods if not _needs_probabilities(m))
    left = [m.name for m in made.methods if m not in kept]
    note = f"left out, as only grades are known: {', '.join(left)}" if left else ""
    return replace(made, methods=kept, note="; ".join(n for n in (made.note, note) if n))


def _needs_probabilities(m: Method) -> bool:
    return isinstance(m, SSEPY) or (isinstance(m, Pair) and m.select == "anchor_conf")


def _pair(name: str, select: str, predict: str, options: Options | None = None, **more: Any) -> Pair:
    return Pair(name, select, predict, select_options=options or {}, **more)


def _random(predict: str) -> Pair:
    return _pair(f"random+{predict}", "uniform", predict, _STRATIFIED)


def _table1(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """The language table (Table 1): every row."""
    return Preset(
        (
            _random("direct"),
            _random("gpirt"),
            _pair("anchor_irt+gpirt", "anchor_irt", "gpirt"),
            _pair("anchor_corr+gpirt", "anchor_corr", "gpirt"),
            _pair("best_for_validation+ability_irt", "best_for_validation", "ability_irt", times=metabench),
            _random("knn"),
            _random("forest"),
            _pair("pds+knn", "pds", "knn", asked),
            _pair("pds+forest", "pds", "forest", asked),
            _pair("jsd+knn", "jsd", "knn", asked),
            _pair("jsd+forest", "jsd", "forest", asked),
        )
    )


def _vision(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """The ImageNet table (Table 3): every row, and Lifelong with a threshold that one lucky guess does not decide."""
    return Preset(
        (
            _random("direct"),
            _pair("every_kth+lifelong", "every_kth", "lifelong"),
            _pair(
                "every_kth+lifelong, fewest errors",
                "every_kth",
                "lifelong",
                predict_options={"threshold": "fewest_errors"},
            ),
            SSEPY(),
            _random("knn"),
            _random("forest"),
            _pair("pds+knn", "pds", "knn", asked),
            _pair("pds+forest", "pds", "forest", asked),
        )
    )


def _curve(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """Error and rank over numbers of anchors (Figures 5 and 10)."""
    methods = (
        _random("direct"),
        _pair("anchor_corr+gpirt", "anchor_corr", "gpirt"),
        _random("knn"),
        _random("forest"),
        _pair("pds+knn", "pds", "knn", asked),
        _pair("pds+forest", "pds", "forest", asked),
    )
    return Preset(methods, n_anchors=tuple(k for k in CURVE if k <= responses.n_items // 2))


def _model_split(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """Chronological against uniform split (Table 2a)."""
    return Preset((_pair("pds+forest", "pds", "forest", asked),), ("chronological", "iid"))


def _stratification(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """Equal numbers from every subtask, or not (Table 2b)."""
    return Preset(
        (
            _pair("pds+forest", "pds", "forest", asked),
            _pair("pds+forest, stratified", "pds", "forest", {**asked, **_STRATIFIED}),
        )
    )


def _sources(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """How many source models are needed (Table 2c): the paper's 100, 200, 300 and all, as far as there are so many."""
    most = int(0.85 * responses.n_models)
    sizes = [n for n in (25, 50, 100, 200, 300) if n < most]
    few = {n: asked if asked.get("committee_size", 0) <= n else {} for n in sizes}
    methods = [_pair(f"pds+forest, {n} sources", "pds", "forest", few[n], n_sources=n) for n in sizes]
    return Preset((*methods, _pair("pds+forest, all sources", "pds", "forest", asked)))


def _reduction(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """What signatures are reduced to (Table 2d)."""

    def row(name: str, **options: Any) -> Pair:
        return _pair(f"pds+forest, {name}", "pds", "forest", asked, predict_options=options)

    rows = [row("no reduction", n_components=None)]
    rows += [row(f"PCA {n}", n_components=n) for n in (16, 32, 64, 128, 256)]
    if umap_installed():
        rows.append(row("UMAP 16", n_components=16, reduction="umap"))
    note = "" if umap_installed() else "UMAP is left out: pip install 'disco-eval[umap]'"
    return Preset(tuple(rows), note=note)


def _prediction(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """What maps signatures to scores (Table 2e)."""
    names = ("knn", "forest", "linear", "ridge", "lasso", "boosting", "mlp2", "mlp3")
    return Preset(tuple(_pair(f"pds+{name}", "pds", name, asked) for name in names))


def _bootstrap(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """Several chronological splits, drawn from 90 % of each side (Appendix D.2): the rows that its table has."""
    return Preset(
        (
            _random("direct"),
            _random("gpirt"),
            _pair("anchor_corr+gpirt", "anchor_corr", "gpirt"),
            _pair("anchor_irt+gpirt", "anchor_irt", "gpirt"),
            _pair("pds+knn", "pds", "knn", asked),
            _pair("pds+forest", "pds", "forest", asked),
        ),
        ("bootstrap",),
    )


def _performance(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """Targets better than all sources, without and with a gap (Appendix F)."""
    methods = (_random("direct"), _pair("pds+forest", "pds", "forest", asked))
    return Preset(methods, ("iid", "chronological", "top10", "top30"))


def _versus(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """Direct evaluation against DISCO, for calibration (Appendix E) and the quality of ranks (Appendix C)."""
    return Preset((_random("direct"), _pair("pds+forest", "pds", "forest", asked)))


def _all_sources_selection(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """Our addition: lowest against highest disagreement, and committees of several sizes (Appendix I)."""
    sizes = [n for n in (10, 25, 50, 100, 200) if n < 0.85 * responses.n_models]
    rows = [_pair(f"pds+forest, committee {n}", "pds", "forest", {"committee_size": n}) for n in sizes]
    rows += [_pair("pds+forest, whole committee", "pds", "forest")]
    return Preset((*rows, _pair("lowest pds+forest", "pds", "forest", {"lowest": True})))


def _beyond(responses: Responses, asked: Options, metabench: Times) -> Preset:
    """Our default against every row of Table 1 and plain means, on targets like the sources and on others."""
    methods = (
        *_table1(responses, asked, metabench).methods,
        _pair("uniform+direct", "uniform", "direct"),
        _pair("by difficulty+direct", "stratified", "direct"),
        Condensed("default"),
        Condensed("default, as many more when alarmed", times=1.0),
    )
    kin = {by: len(set(getattr(responses.models, by).tolist()) - {""}) > 1 for by in ("base", "family")}
    splits = tuple(s for s in ("random", "base", "family", "top10", "top30") if kin.get(s, True))
    lacking = [by for by, known in kin.items() if not known]
    note = f"splits left out, as they are not known of the models: {', '.join(lacking)}" if lacking else ""
    return Preset(methods, splits, (30, 100), split_note=note)


PRESETS: dict[str, Callable[[Responses, Options, Times], Preset]] = {
    "table1": _table1,
    "beyond": _beyond,
    "vision": _vision,
    "compression": _curve,
    "model_split": _model_split,
    "stratification": _stratification,
    "n_sources": _sources,
    "reduction": _reduction,
    "prediction": _prediction,
    "bootstrap": _bootstrap,
    "performance": _performance,
    "calibration": _versus,
    "rank_quality": _versus,
    "committee": _all_sources_selection,
}


def request(
    names: str,
    responses: Mapping[str, Responses],
    split: str | None,
    anchors: str | None,
    *,
    committee: int | None = None,
    metabench: Times = METABENCH,
) -> Preset:
    """What a command line asks for: presets and methods by name, with commas, and splits and counts that override.

    Several benchmarks share the rows that all of them allow. Raises DiscoError for names that are not known.
    """
    methods: list[Method] = []
    splits: list[str] = []
    counts: list[int] = []
    notes: list[str] = []
    for name in [n.strip() for n in names.split(",")]:
        if name in PRESETS:
            made = [preset(name, r, committee=committee, metabench=metabench) for r in responses.values()]
            common = [m for m in made[0].methods if all(m in p.methods for p in made)]
            methods += [m for m in common if m not in methods]
            splits += [s for s in made[0].splits if s not in splits and all(s in p.splits for p in made)]
            counts += [k for k in made[0].n_anchors if k not in counts and all(k in p.n_anchors for p in made)]
            told = [p.note for p in made] + ([] if split else [p.split_note for p in made])
            notes += [note for note in dict.fromkeys(told) if note and note not in notes]
            some = [m.name for p in made for m in p.methods if m not in common]
            if some:
                notes.append(f"left out, as not every benchmark allows them: {', '.join(dict.fromkeys(some))}")
        elif name not in [m.name for m in methods]:
            methods.append(method(name))
    chosen = tuple(s.strip() for s in split.split(",")) if split else tuple(splits) or ("iid",)
    return Preset(tuple(methods), chosen, _counts(anchors) or tuple(counts) or (100,), "; ".join(notes))


def _counts(text: str | None) -> tuple[int, ...]:
    try:
        return () if text is None else tuple(int(n) for n in text.split(","))
    except ValueError:
        raise DiscoError(f"--anchors takes whole numbers with commas, such as 10,30,60,100, not '{text}'") from None


def metabench_times(text: str) -> dict[str, float]:
    """``"1.5,hellaswag=4.5"`` as what presets take. Raises DiscoError for what is no number above 0."""
    out: dict[str, float] = {}
    for pair in text.split(","):
        name, equals, value = pair.rpartition("=")
        try:
            out[name.strip() if equals else ""] = number = float(value)
        except ValueError:
            number = 0.0
        if not 0 < number < 1e6:
            raise DiscoError(f"--metabench takes numbers above 0 such as 1.5 or 1.5,hellaswag=4.5, not '{text}'")
    return {"": 1.0, **out}
