"""What the paper proves, checked by slow sums over joint distributions."""

import numpy as np
import pytest

from disco_eval.numerics.disagreement import Disagreement


def test_jsd_is_the_mutual_information_of_model_and_answer():
    """Proposition 1: with the model drawn uniformly, I(model; answer) of every item."""
    p = np.random.default_rng(0).dirichlet(np.ones(4), size=(7, 5))
    jsd = Disagreement(5, 4).update(p).jsd()
    for i in range(5):
        joint = p[:, i] / 7
        answer = joint.sum(axis=0)
        information = sum(joint[m, c] * np.log(joint[m, c] / (1 / 7 * answer[c])) for m in range(7) for c in range(4))
        assert jsd[i] == pytest.approx(information, abs=1e-7)
