"""Write the example of the present format: ``python -m tests.formats.make``. Run once per format, never again."""

import json
from pathlib import Path

from disco_eval import condense
from disco_eval.artifact import FORMAT
from tests.conftest import population

if __name__ == "__main__":
    folder = Path(__file__).parent / f"condensation-{FORMAT}"
    small = condense(population(), 12, rng=0, benchmark="toy")
    small.save(folder / "toy")
    estimates = {e.model: [e.score, e.low, e.high] for e in small.estimate(population())}
    (folder / "estimates.json").write_text(json.dumps(estimates, indent=1) + "\n")
