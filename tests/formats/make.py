"""Write the example of the present format: ``python -m tests.formats.make``. Run once per format, never again."""

import json
from pathlib import Path

from disco_eval import Responses, condense
from disco_eval.artifact import FORMAT
from tests.conftest import population


def in_parts() -> Responses:
    """Answers that are right in quarters."""
    r = population()
    return Responses.from_correct(r.models, r.items, (4 * r.label_probs()).round() / 4)


if __name__ == "__main__":
    folder = Path(__file__).parent / f"condensation-{FORMAT}"
    for name, responses, numbers in (("toy", population(), "estimates"), ("parts", in_parts(), "parts")):
        small = condense(responses, 12, rng=0, benchmark="toy")
        small.save(folder / name)
        estimates = {e.model: [e.score, e.low, e.high] for e in small.estimate(responses)}
        (folder / f"{numbers}.json").write_text(json.dumps(estimates, indent=1) + "\n")
