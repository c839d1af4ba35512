"""The lead against the single query, and its time against the number of windows."""
