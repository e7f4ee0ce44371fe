"""A population of real models that anyone can make in half a minute: scikit-learn classifiers judged on digits.

Every model is an ordinary classifier of one of many families, with hyper-parameters drawn from its usual range, trained
on a random part (20 to all) of 497 images of scikit-learn's digits. Its class probabilities on the other 1,300 images
are the responses. Strength comes from the family, the hyper-parameters and the amount of training data alone; no model
is spoiled or sharpened afterwards, and none is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ValidationError
from ..responses import Items, Models, Responses

Array = NDArray[Any]

N_TRAIN = 497
_SMALLEST = 20


def digits_zoo(
    n_models: int = 240, *, seed: int = 0, n_jobs: int = -1, progress: Callable[[str, int, int], None] | None = None
) -> Responses:
    """Train ``n_models`` classifiers and return their probabilities on 1,300 digits, 10 classes.

    Families take turns, so each has about equally many members. Models carry their ``family``, items their class as
    ``subtask``. The same seed gives the same population.

    Raises ValidationError for fewer than one model.
    """
    from joblib import Parallel, delayed
    from sklearn.datasets import load_digits

    if n_models < 1:
        raise ValidationError(f"a zoo needs at least one model, not {n_models}")
    images, digits = load_digits(return_X_y=True)
    split_seed, *seeds = np.random.SeedSequence(seed).spawn(1 + n_models)
    order = np.random.default_rng(split_seed).permutation(len(images))
    train, test = order[:N_TRAIN], np.sort(order[N_TRAIN:])
    names = list(_families())
    jobs = (
        delayed(_member)(names[k % len(names)], seeds[k], images[train], digits[train], images[test])
        for k in range(n_models)
    )
    probs = np.empty((n_models, len(test), 10), np.float32)
    sizes = np.empty(n_models, np.int64)
    for k, (p, n) in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(jobs)):
        probs[k], sizes[k] = p, n
        if progress:
            progress("training classifiers", k + 1, n_models)
    family = [names[k % len(names)] for k in range(n_models)]
    models = Models([f"{f}-{k // len(names) + 1:02d}-n{sizes[k]}" for k, f in enumerate(family)], family=family)
    label = digits[test]
    items = Items(
        [f"digits/{i}" for i in test],
        subtask=[f"digit {d}" for d in label],
        n_choices=np.full(len(test), 10),
        label=label,
    )
    return Responses.from_probs(models, items, probs)


def _member(family: str, seed: np.random.SeedSequence, X: Array, y: Array, unseen: Array) -> tuple[Array, int]:
    """One classifier's probabilities on the unseen images, and how many images it was trained on."""
    rng = np.random.default_rng(seed)
    n = round(float(np.exp(rng.uniform(np.log(_SMALLEST), np.log(len(X))))))
    estimator = _families()[family](rng)
    own = _balanced(y, n, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small training sets make solvers stop early; that is part of the population
        p = estimator.fit(X[own], y[own]).predict_proba(unseen)
    return p / p.sum(axis=1, keepdims=True), n


def _balanced(y: Array, n: int, rng: np.random.Generator) -> Array:
    """``n`` random positions, the same number of each class as far as it goes, at least two of each."""
    shuffled = rng.permutation(len(y))
    rank = np.empty(len(y), dtype=np.int64)
    for digit in range(10):
        at = shuffled[y[shuffled] == digit]
        rank[at] = np.arange(len(at))
    return shuffled[np.argsort(rank[shuffled], kind="stable")][:n]


def _families() -> dict[str, Callable[[np.random.Generator], Any]]:
    """Families of classifiers that state probabilities, each a function from a generator to a fresh estimator."""
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
    from sklearn.ensemble import (
        AdaBoostClassifier,
        BaggingClassifier,
        ExtraTreesClassifier,
        GradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.semi_supervised import LabelSpreading
    from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

    def one(r: np.random.Generator, *choices: Any) -> Any:
        return choices[int(r.integers(len(choices)))]

    def log(r: np.random.Generator, low: float, high: float) -> float:
        return float(np.exp(r.uniform(np.log(low), np.log(high))))

    def state(r: np.random.Generator) -> int:
        return int(r.integers(2**31))

    def scaled(estimator: Any) -> Any:
        return make_pipeline(StandardScaler(), estimator)

    return {
        "logistic": lambda r: scaled(LogisticRegression(C=log(r, 1e-3, 10), max_iter=200)),
        "pca-logistic": lambda r: make_pipeline(
            PCA(one(r, 3, 5, 8, 12), random_state=state(r)), LogisticRegression(C=log(r, 0.01, 10), max_iter=200)
        ),
        "sgd": lambda r: scaled(
            SGDClassifier(loss="log_loss", alpha=log(r, 1e-4, 1), max_iter=one(r, 5, 20, 100), random_state=state(r))
        ),
        "nystroem": lambda r: scaled(
            make_pipeline(
                Nystroem(gamma=log(r, 2e-3, 0.05), n_components=one(r, 5, 10, 20), random_state=state(r)),
                LogisticRegression(max_iter=200),
            )
        ),
        "lda": lambda r: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=one(r, 0.05, 0.3, 0.8)),
        "qda": lambda r: QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=one(r, 0.2, 0.5, 0.9)),
        "gauss-nb": lambda r: GaussianNB(var_smoothing=log(r, 1e-3, 1)),
        "bernoulli-nb": lambda r: BernoulliNB(alpha=log(r, 0.01, 5), binarize=one(r, 2, 4, 8)),
        "multinomial-nb": lambda r: MultinomialNB(alpha=log(r, 0.01, 10)),
        "knn": lambda r: KNeighborsClassifier(
            one(r, 1, 3, 5, 10), weights=one(r, "uniform", "distance"), p=one(r, 1, 2)
        ),
        "spreading": lambda r: LabelSpreading(kernel="rbf", gamma=log(r, 1e-4, 2e-3), alpha=one(r, 0.2, 0.5)),
        "tree": lambda r: DecisionTreeClassifier(
            max_depth=one(r, 3, 4, 6, 10, None), min_samples_leaf=one(r, 1, 3), random_state=state(r)
        ),
        "extra-tree": lambda r: ExtraTreeClassifier(max_depth=one(r, 4, 6, 10, None), random_state=state(r)),
        "forest": lambda r: RandomForestClassifier(
            one(r, 3, 10, 40), max_depth=one(r, 3, 6, None), random_state=state(r)
        ),
        "extra-trees": lambda r: ExtraTreesClassifier(
            one(r, 5, 20, 60), max_depth=one(r, 4, 8, None), random_state=state(r)
        ),
        "bagging": lambda r: BaggingClassifier(
            DecisionTreeClassifier(max_depth=one(r, 3, 6)), one(r, 5, 15), random_state=state(r)
        ),
        "adaboost": lambda r: AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=one(r, 1, 2, 3)), n_estimators=one(r, 10, 30), random_state=state(r)
        ),
        "boosting": lambda r: GradientBoostingClassifier(
            n_estimators=one(r, 3, 8, 15), max_depth=one(r, 1, 2, 3), random_state=state(r)
        ),
        "mlp": lambda r: scaled(
            MLPClassifier(
                one(r, (8,), (32,), (64, 32)), alpha=log(r, 1e-5, 1), max_iter=one(r, 15, 60), random_state=state(r)
            )
        ),
        "gp": lambda r: GaussianProcessClassifier(RBF(log(r, 10, 60)), optimizer=None, max_iter_predict=20),
    }
