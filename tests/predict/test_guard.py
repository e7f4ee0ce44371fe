"""How the survey takes over where the sources end."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from disco_eval.predict.guard import GROWTH, START, survey_share

error = st.floats(1e-4, 0.2)


@given(error, error)
def test_nothing_of_it_inside_and_more_the_further_outside(sd, se):
    outside = np.linspace(-3.0, 5.0, 81)
    share = survey_share(np.full(81, sd), np.full(81, se), outside, GROWTH, START)
    assert (share[outside < -START] == 0).all()
    assert (np.diff(share) >= 0).all()
    assert ((share >= 0) & (share <= 1)).all()
    assert np.abs(np.diff(share)).max() < 0.1 + sd / se  # no jump unless the process errs more than the survey


def test_a_process_that_knows_a_near_duplicate_keeps_its_part_for_longer():
    outside, se = np.array([0.1, 0.1]), np.array([0.03, 0.03])
    near, far = survey_share(np.array([0.005, 0.02]), se, outside, GROWTH, START)
    assert near < 0.1 < 0.3 < far


def test_without_errors_the_process_stands():
    assert survey_share(np.zeros(1), np.zeros(1), np.ones(1), GROWTH, START) == 0
