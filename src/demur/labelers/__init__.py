"""Whoever gives a verdict on a conversation, behind the one method of `demur.verdict.Labeler`."""
