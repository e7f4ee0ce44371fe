"""The default score model where there is nothing to learn."""

import numpy as np
import pytest

from disco_eval import Responses, condense


@pytest.mark.parametrize("select", ["sharp", "pds", "auto"])
def test_models_of_one_score_have_that_score(select):
    """Nothing to learn, and no error to weigh by: no division by zero."""
    rng = np.random.default_rng(0)
    right = np.array([rng.permutation(np.arange(60) % 2) for _ in range(40)])
    r = Responses.from_correct([f"m{i}" for i in range(40)], [f"i{j}" for j in range(60)], right)
    c = condense(r, 20, select=select, rng=0, n_folds=3)
    assert np.isfinite(c.validation.mae)
    assert all(np.isfinite([e.score, e.low, e.high]).all() for e in c.estimate(r))
