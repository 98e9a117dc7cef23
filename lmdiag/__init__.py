"""lmdiag reads the logs of vLLM servers, finds the exception that was the cause, and answers with a fix card."""

__version__ = "0.1.0"
