"""Takes reports to the people on call: routing, the outbox that survives everything, and one sink for each service."""
