"""The nouns of turndex, without I/O: what every other room speaks of."""
