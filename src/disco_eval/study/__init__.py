"""Comparing methods on populations of models."""
