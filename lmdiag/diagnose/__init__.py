"""Which exception is the cause, what became of the server, and what to change. Pure: events in, incidents out."""
