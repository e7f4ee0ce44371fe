"""Tiny models and local tasks for the real lm_eval: nothing is downloaded.

A model is a GPT-2 of random weights with a byte-level tokenizer. The tasks are a group of three: ``toy_facts`` (2 to 5
choices), ``toy_shots`` (few-shot with the default random sampler) and ``toy_fill`` (multiple input, as WinoGrande).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

WORDS = [
    "red",
    "blue",
    "green",
    "old",
    "new",
    "small",
    "large",
    "river",
    "stone",
    "cloud",
    "table",
    "apple",
    "seven",
    "quick",
    "warm",
    "north",
    "lamp",
    "paper",
    "bird",
    "salt",
]


def make_model(folder: Path, seed: int = 0) -> Path:
    """A GPT-2 with 2 layers of random weights, saved with its tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from tokenizers.decoders import ByteLevel
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate(letters)} | {"<|end|>": len(letters)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")
    fast.chat_template = (
        "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}[assistant] {% endif %}"
    )
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=len(vocab),
        n_positions=512,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=len(letters),
        eos_token_id=len(letters),
    )
    config.initializer_range = 0.3
    model = GPT2LMHeadModel(config)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def make_tasks(folder: Path, n: int = 24, seed: int = 0) -> Path:
    """Three leaf tasks of ``n`` items each and the group ``toy`` of them, as YAML and JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)

    def words(k: int) -> list[str]:
        return [WORDS[i] for i in rng.choice(len(WORDS), k, replace=False)]

    def question(i: int) -> dict[str, object]:
        choices = words(int(rng.integers(2, 6)))
        return {"q": f"{i}. The {' '.join(words(3))} is", "choices": choices, "gold": int(rng.integers(len(choices)))}

    def fill(i: int) -> dict[str, object]:
        a, b = words(2)
        return {
            "pre": f"{i}. Put the {a} on the {b} since the",
            "a": a,
            "b": b,
            "post": f"was {words(1)[0]}.",
            "gold": int(rng.integers(2)),
        }

    rows = {
        "facts": [question(i) for i in range(n)],
        "shots": [question(i) for i in range(n)],
        "pool": [question(1000 + i) for i in range(30)],
        "fill": [fill(i) for i in range(n)],
    }
    for name, records in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    choice = """
output_type: multiple_choice
doc_to_text: "{{q}}"
doc_to_choice: "{{choices}}"
doc_to_target: gold
"""
    metrics = """
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
  - metric: acc_norm
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1.0
"""
    shots = "num_fewshot: 2\nfewshot_split: train\ntraining_split: train\n"
    _task(folder, "toy_facts", {"test": "facts"}, choice + metrics)
    _task(folder, "toy_shots", {"test": "shots", "train": "pool"}, choice + shots + metrics)
    (folder / "fill.py").write_text(
        "def choices(doc):\n    return [f\"{doc['pre']} {w}\" for w in (doc['a'], doc['b'])]\n\n"
        "def text(doc):\n    return doc['gold']\n\n"
        "def target(doc):\n    return doc['post']\n"
    )
    inputs = """
output_type: multiple_choice
doc_to_text: !function fill.text
doc_to_target: !function fill.target
doc_to_choice: !function fill.choices
"""
    _task(folder, "toy_fill", {"test": "fill"}, inputs + metrics)
    (folder / "toy.yaml").write_text(
        "group: toy\ntask:\n  - toy_facts\n  - toy_shots\n  - toy_fill\n"
        "aggregate_metric_list:\n  - metric: acc\n    weight_by_size: true\nmetadata:\n  version: 1.0\n"
    )
    return folder


def _task(folder: Path, name: str, splits: dict[str, str], rest: str) -> None:
    files = "\n".join(f"    {split}: {folder / file}.jsonl" for split, file in splits.items())
    (folder / f"{name}.yaml").write_text(
        f"task: {name}\ndataset_path: json\ndataset_kwargs:\n  data_files:\n{files}\ntest_split: test\n{rest.lstrip()}"
    )


def evaluate(models: list[Path], tasks: Path, out: Path, **options: object) -> None:
    """Full runs of the real lm_eval, one output folder per model, as its command line writes them."""
    import lm_eval
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    for model in models:
        tracker = EvaluationTracker(output_path=str(out))
        results = lm_eval.simple_evaluate(
            model="hf",
            model_args=f"pretrained={model},dtype=float32",
            tasks=["toy"],
            task_manager=TaskManager(include_path=str(tasks), include_defaults=False),
            device="cpu",
            batch_size=8,
            log_samples=True,
            evaluation_tracker=tracker,
            bootstrap_iters=0,
            **options,
        )
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        for task, rows in samples.items():
            tracker.save_results_samples(task_name=task, samples=rows)


if __name__ == "__main__":
    import sys

    folder = Path(sys.argv[1])
    tasks = make_tasks(folder / "tasks")
    zoo = [make_model(folder / "models" / f"m{seed:02d}", seed) for seed in range(12)]
    evaluate(zoo, tasks, folder / "runs")
    evaluate(zoo[11:], tasks, folder / "chat", apply_chat_template=True)
