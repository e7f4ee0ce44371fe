"""The README.md that travels with a condensation: what it is, how it was made, what error to expect."""

from __future__ import annotations

from .condensation import Condensation
from .recipe import described
from .sizing import missed_by
from .splits import KEPT_TOGETHER


def card(condensation: Condensation, name: str) -> str:
    """The card as markdown; ``name`` is the folder's, for the commands it shows."""
    c, v = condensation, condensation.validation
    n_items = c.provenance.get("n_items", "?")
    made = c.provenance.get("created", "an unknown date")
    how = {step: described(c.provenance.get(step)) for step in ("select", "predict")}
    kept = KEPT_TOGETHER[v.grouped_by]
    of_kin = None if v.relatives is None else v.relatives.mae
    kin = "" if of_kin is None else f" On models of which relatives are sources: {100 * of_kin:.2f} points."
    more = "" if v.more_mae is None else f" With {v.n_more} further items (`--more`): {100 * v.more_mae:.2f} points."
    missed = missed_by(c.provenance.get("error_asked"), v.mae, v.mae_se, len(c.anchors))
    more += f"\n\n**{missed}**" if missed else ""
    rows = "\n".join(
        f"| {100 * level:.0f} % | {100 * v.half_width(level):.1f} points |" for level in (0.5, 0.8, 0.9, 0.95)
    )
    mixed = c.provenance.get("mixed")
    drawn = f"half by {how['select']}, half by chance" if mixed else f"by {how['select']}"
    return f"""# {c.benchmark}, condensed to {len(c.anchors)} items

A condensed benchmark made with disco-eval (`pip install disco-eval`): evaluate a model on these anchor items instead of
all {n_items}, and get an estimate of its score on all of them.

```bash
disco anchors {name}                 # the items to evaluate
disco estimate {name} ANSWERS        # answers as a store, an npz or a table
```

```python
import disco_eval as de

small = de.load("{name}")
estimates = small.estimate(answers)  # a Responses with at least the anchors
```

## What error to expect

Source models were predicted by condensations made without them ({v.n_folds} folds, {kept} left out together, anchors
chosen anew each time): mean absolute error **{100 * v.mae:.2f} points** (± {100 * v.mae_se:.2f} with other anchors),
against {100 * v.direct_mae:.2f} points for the plain mean over {v.against(len(c.anchors))}.{kin}{more}

| share of models | error at most |
|---|---|
{rows}

That holds for models like the source models. A model that is better than all of them, or of a new kind, can err more.

## How it was made

| | |
|---|---|
| benchmark | {c.benchmark}, {n_items} items |
| source models | {c.sources.n_models}, scores {100 * c.source_scores.min():.1f} to {100 * c.source_scores.max():.1f} |
| anchors | {len(c.anchors)}, {drawn} |
| prediction | {how["predict"]} |
| seed | {c.provenance.get("seed")} |
| made | {made} with disco-eval {c.provenance.get("disco_eval", "?")} |

Files: `condensation.json` (names and how it was made), `arrays.safetensors` (numbers), this card. No code, no pickles.
"""
