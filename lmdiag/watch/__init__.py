"""The daemon: reads logs for ever, follows incidents over time, and shows what it does."""
