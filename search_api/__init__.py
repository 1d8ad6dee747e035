"""The read side: from a question to an answer, and the doors through which it is asked."""
