"""What is unusual about a model, or about the sources of a condensation, in words."""

from __future__ import annotations

from collections.abc import Iterable

FLAGS = {
    "source-model": "this model is one of the source models: its true score is known, and the estimate has seen it",
    "outside-range": "its score lies at or beyond the edge of the source models', as that of a model which knows the "
    "anchors by heart does: the further out, the more the estimate rests on the anchors as a survey of the benchmark, "
    "with a survey's interval",
    "lines-disagree": "what source models teach and what the anchors alone say differ more than they should: the model "
    "is unlike the sources",
    "odd-answers": "it gets anchors right that no source of its ability would, or that do not go together in any: "
    "anchors may have leaked into its training data, or it is of a kind that the sources are not (such as one that has "
    "hardly learned)",
    "anchors-differ": "its anchors say a higher score than the further items do, by more than chance explains: "
    "anchors may have leaked. As many further items as anchors overrule them, fewer widen the interval to hold theirs",
    "few-sources": "the condensation learned from few source models; add more",
    "alike-sources": "the source models are so alike, or of so few families, that they tell little of others, whose "
    "estimates err more; add some",
    "no-gain": "on left-out source models the estimates were no better than the mean over random items, as many or as "
    "dear: add source models, or take more anchors",
}


OF_ESTIMATES = ("outside-range", "lines-disagree")  # nothing where all items are answered: none is estimated
OF_SOURCES = ("few-sources", "alike-sources", "no-gain")  # not about one model: every estimate carries them
WEAK = ("few-sources", "no-gain")  # of these, those which say how much the sources teach, not of whom


def is_alarmed(flags: Iterable[str]) -> bool:
    """Whether a model is flagged for what it is itself, or how unlike the sources are: weak ones are no alarm."""
    return bool(set(flags) - {"source-model", *WEAK})
