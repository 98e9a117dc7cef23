"""What `make docs` runs."""
