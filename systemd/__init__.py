"""The unit, its drop-ins and the example configuration. The directory is a package so that a wheel carries it."""
