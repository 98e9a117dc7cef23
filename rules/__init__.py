"""The shipped fix cards, and index.json, which is made from them. The directory is a package so that a wheel carries it."""
