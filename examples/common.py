"""What the examples share: a real benchmark, and a way of drawing."""

from functools import cache

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from disco_eval import Responses
from disco_eval.studies.zoo import digits_zoo


@cache
def digits(n_models: int) -> Responses:
    """Answers of real scikit-learn classifiers to 1,300 digits."""
    return digits_zoo(n_models, seed=0)


def figure(across: str, up: str, title: str) -> Axes:
    """An empty picture."""
    ax = Figure(figsize=(6.2, 4.2), layout="constrained").subplots()
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    ax.set_title(title, loc="left", fontsize=10)
    ax.grid(color="#dddddd", lw=0.5)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def finish(ax: Axes, file: str) -> None:
    """Save the picture, the same bytes each time."""
    ax.figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)
