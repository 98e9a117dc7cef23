"""Builds the catalogue: every place where a release of vLLM or LMCache raises an error, with the message it gives.

Nothing of a release is imported or run; its sources are parsed. A scan loads nothing from here.
"""
