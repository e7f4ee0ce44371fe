"""A learning curve from 60 items a checkpoint, with the truth beside it.

A small neural network learns to read digits; after every few epochs it answers 60 anchors instead of 1,300 items. A
half-trained network is unlike any finished classifier, so checkpoints of two former runs are among the
source models: do the same with yours.
"""

import sys
import warnings

import numpy as np
from common import digits, figure, finish
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import disco_eval as de

warnings.simplefilter("ignore")  # one epoch at a time never converges
finished = digits(100)
images, digit = load_digits(return_X_y=True)
position = np.array([int(name.removeprefix("digits/")) for name in finished.items.ids])
train = np.setdiff1d(np.arange(len(images)), position)
epochs = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 30]


def run(width: int, rate: float, seed: int) -> list[np.ndarray]:
    """Probabilities on all 1,300 items after each of the epochs, (n_epochs, n_items, 10)."""
    network, seen = MLPClassifier((width,), learning_rate_init=rate, random_state=seed), []
    for epoch in range(1, max(epochs) + 1):
        network.partial_fit(images[train], digit[train], classes=np.arange(10))
        if epoch in epochs:
            seen.append(network.predict_proba(images[position]))
    return seen


former = [run(16, 4e-3, 1), run(64, 1e-3, 2)]
names = [*finished.models.ids, *(f"run-{k}-epoch-{e}" for k in range(len(former)) for e in epochs)]
family = [*finished.models.family, *(f"run-{k}" for k in range(len(former)) for _ in epochs)]
probs = np.concatenate([finished.probs, *former]).astype(np.float32)
sources = de.Responses.from_probs(de.Models(names, family=family), finished.items, probs)
small = de.condense(sources, n_anchors=60, rng=0)

answers = de.Responses.from_probs([f"epoch-{e}" for e in epochs], finished.items, np.float32(run(32, 2e-3, 0)))
estimates = small.estimate(answers.align(small.anchors.ids))

ax = figure("epoch", "accuracy on 1,300 digits (%)", "A network learns, seen through 60 items")
ax.fill_between(epochs, [100 * e.low for e in estimates], [100 * e.high for e in estimates], alpha=0.2, lw=0)
ax.plot(epochs, [100 * e.score for e in estimates], marker="o", label="estimated from 60 items")
ax.plot(epochs, 100 * answers.scores(), color="#222222", ls="--", label="true, on all 1,300")
ax.legend(frameon=False)
finish(ax, sys.argv[1])
for e, truth in zip(estimates, answers.scores(), strict=True):
    print(f"{e}   true {100 * truth:.1f}")
