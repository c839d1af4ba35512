"""One reader for each data set: its files as documents with questions and gold spans."""
