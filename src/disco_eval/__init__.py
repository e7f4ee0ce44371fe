"""Condense a benchmark to about 100 items and predict a model's full score from its answers on those alone."""

__version__ = "0.1.0"
