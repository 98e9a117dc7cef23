"""One module for each kind of receiver; `lmdiag.forward.sink.open_sink` loads the one that a configuration names."""
