"""Inputs: which files to read (`paths`), their bytes whatever the compression (`archives`), their lines (`lines`)."""
