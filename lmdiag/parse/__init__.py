"""What a line is: containers and prefixes taken off, records put together, tracebacks read. Pure: text in, events out."""
