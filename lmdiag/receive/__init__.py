"""`lmdiag receive`: takes an alert, looks at the log of the server that it is about, and answers with the cause."""
