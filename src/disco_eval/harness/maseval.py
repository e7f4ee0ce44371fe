"""MASEval's DISCO artifact, read and written.

A folder with ``anchor_points.json`` (positions in the flattened benchmark; their order is the feature order),
``disco_transform.npz`` (PCA: ``components_``, ``mean_``), ``disco_model.npz`` (a forest as concatenated arrays),
``disco_meta.json`` and ``config.json``. A model is described by its padded log-likelihoods on the anchors: softmax over
the padded axis, flattened anchor by anchor, PCA, forest.

There, an anchor without an answer becomes the same plausible constant for every model; here it is an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, ValidationError, some
from ..files import new_folder
from ..io.npz import read_arrays
from ..io.records import in_layout, read_json
from ..numerics.forest import Trees
from ..predict.base import need

Array = NDArray[Any]

_TREES = {"counts": "tree_node_counts", "left": "children_left", "right": "children_right"}
_DTYPES = {"counts": "i8", "left": "i4", "right": "i4", "feature": "i4", "threshold": "f8", "value": "f8"}


@dataclass(frozen=True, eq=False)
class MasevalDisco:
    """A fitted DISCO predictor in MASEval's layout.

    Attributes
    ----------
    anchors : (n_anchors,) positions in the flattened benchmark, in feature order.
    mean, components : (F,), (k, F) of the PCA; F is n_anchors times ``pad_to_size``.
    trees : the forest.
    pad_to_size : choices per item after padding.
    meta, config : what else the two JSON files hold.
    """

    anchors: Array
    mean: Array
    components: Array
    trees: Trees
    pad_to_size: int
    meta: dict[str, Any]
    config: dict[str, Any]

    def predict(self, loglikelihoods: Array) -> Array:
        """Estimated scores, (n_models,), from log-likelihoods on the anchors, (n_models, n_anchors, n_choices).

        Choices that an item lacks are ``-inf``. Raises ValidationError for an anchor without any answer, or NaN.
        """
        x = np.asarray(loglikelihoods, dtype=np.float64)
        if x.ndim != 3 or x.shape[1] != len(self.anchors) or x.shape[2] > self.pad_to_size:
            expected = f"(n_models, {len(self.anchors)}, at most {self.pad_to_size})"
            raise ValidationError(f"loglikelihoods of shape {x.shape}, expected {expected}")
        top = x.max(axis=2)
        bad = ~np.isfinite(top)
        if bad.any():
            missing = self.anchors[bad.any(axis=0)]
            raise ValidationError(f"{len(missing)} anchors have no answer from some model: positions {some(missing)}")
        p = np.exp(x - top[..., None])
        p /= p.sum(axis=2, keepdims=True)
        padded = np.zeros((*x.shape[:2], self.pad_to_size))
        padded[..., : x.shape[2]] = p
        reduced = (padded.reshape(len(x), -1) - self.mean) @ self.components.T
        mean: Array = self.trees.predict(reduced).mean(axis=1)
        return mean

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the folder, whole or not at all."""
        with new_folder(path, "disco_meta.json", overwrite=overwrite) as draft:
            draft.mkdir()
            (draft / "anchor_points.json").write_text(json.dumps(self.anchors.tolist()))
            (draft / "disco_meta.json").write_text(json.dumps(self.meta, indent=2))
            (draft / "config.json").write_text(json.dumps(self.config, indent=2))
            np.savez(draft / "disco_transform.npz", components_=self.components, mean_=self.mean)
            arrays = {_TREES.get(k, k): getattr(self.trees, k).astype(_DTYPES[k]) for k in Trees.NAMES}
            np.savez(draft / "disco_model.npz", **arrays)


def read_maseval(path: str | Path) -> MasevalDisco:
    """Read MASEval's artifact; nothing in it is executed.

    Raises FormatError where a file is missing, damaged, or its arrays do not make a predictor.
    """
    folder = Path(path)
    with in_layout(folder, "an artifact of MASEval"):
        anchors, meta, config = (read_json(folder / f"{n}.json") for n in ("anchor_points", "disco_meta", "config"))
        if not isinstance(anchors, list) or not anchors or not all(isinstance(a, int) and a >= 0 for a in anchors):
            raise FormatError(f"'{folder / 'anchor_points.json'}' is not a list of positions")
        transform, model = (read_arrays(folder / f"disco_{n}.npz") for n in ("transform", "model"))
        mean = need(transform, "mean_", (None,))
        components = need(transform, "components_", (None, len(mean)))
        pad, rest = divmod(len(mean), len(anchors))
        declared = (config.get("eval_config") or {}).get("pad_to_size", config.get("pad_to_size", pad))
        if rest or declared != pad:
            raise FormatError(
                f"'{folder}': {len(mean)} features are not {len(anchors)} anchors times pad_to_size {declared}"
            )
        kinds = {"threshold": "f", "value": "f"}
        trees = Trees(*(need(model, _TREES.get(k, k), (None,), kinds.get(k, "i")) for k in Trees.NAMES))
        wrong = trees.check(len(components))
        if wrong:
            raise FormatError(f"'{folder / 'disco_model.npz'}' is no forest: {wrong}")
        return MasevalDisco(np.array(anchors), mean, components, trees, pad, meta, config)
