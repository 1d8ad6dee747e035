"""The write side: from the files that agents write to the store and the index."""
