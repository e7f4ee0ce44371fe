"""Estimate the benchmark score of a model while transformers trains it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from ..artifact import load
from ..condensation import Condensation
from ..errors import DiscoError
from ..estimates import Estimate
from ..numerics.intervals import check_level
from .prompts import AnchorTask, Settings, anchor_tasks
from .run import run_anchors


class DiscoCallback(TrainerCallback):  # type: ignore[misc]  # transformers has no types
    """Logs ``disco/score``, ``disco/low``, ``disco/high`` and ``disco/flags`` through the trainer.

    TensorBoard, W&B, MLflow and whatever else the trainer reports to show them. One estimate costs a forward pass per
    choice of each anchor; the anchors' answers are kept under ``OUTPUT_DIR/disco/step-N``, in place of those of an
    earlier run.

    Parameters
    ----------
    condensation : a condensation made from lm_eval's outputs, or its folder.
    trainer : the trainer to log through; add the callback to it with ``trainer.add_callback``.
    tokenizer : the model's; by default the trainer's ``processing_class``.
    every : estimate every so many steps; by default at each save, and at the end.
    tasks_path, batch_size, level, more : as for ``disco run``.
    """

    def __init__(
        self,
        condensation: Condensation | str | Path,
        trainer: Any,
        *,
        tokenizer: Any = None,
        every: int | None = None,
        tasks_path: str | Path | None = None,
        batch_size: int = 8,
        level: float = 0.9,
        more: int = 0,
    ) -> None:
        self.condensation = condensation if isinstance(condensation, Condensation) else load(condensation)
        self.trainer = trainer
        self.tokenizer = tokenizer or getattr(trainer, "processing_class", None)
        if self.tokenizer is None:
            raise DiscoError(
                "DiscoCallback needs the model's tokenizer: give tokenizer=, or a trainer with processing_class"
            )
        check_level(level)
        self.every = every
        self.settings = Settings(tasks_path, more=more)
        self.batch_size = batch_size
        self.level = level
        self.history: list[tuple[int, Estimate]] = []
        self._tasks: list[AnchorTask] | None = None

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Every ``every`` steps."""
        if self.every and state.global_step % self.every == 0:
            self._estimate(args, state, kwargs["model"])

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """At each save, unless ``every`` says otherwise."""
        if not self.every:
            self._estimate(args, state, kwargs["model"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """At the end, unless the last step was estimated."""
        self._estimate(args, state, kwargs["model"])

    def _estimate(self, args: Any, state: Any, model: Any) -> None:
        step = int(state.global_step)
        if not state.is_world_process_zero or (self.history and self.history[-1][0] == step):
            return
        from lm_eval.models.huggingface import HFLM

        training = model.training
        model.eval()
        try:
            lm = HFLM(pretrained=model, tokenizer=self.tokenizer, batch_size=self.batch_size)
            self._tasks = self._tasks or list(anchor_tasks(self.condensation, self.settings, lm))
            folder = Path(args.output_dir) / "disco" / f"step-{step}"
            answers = run_anchors(self.condensation, lm, folder, name=f"step-{step}", tasks=self._tasks, resume=False)
        finally:
            model.train(training)
        (estimate,) = self.condensation.estimate(answers, self.level, more=self.settings.more)
        self.history.append((step, estimate))
        numbers = {"disco/score": estimate.score, "disco/low": estimate.low, "disco/high": estimate.high}
        self.trainer.log({**numbers, "disco/flags": len(estimate.flags)})
