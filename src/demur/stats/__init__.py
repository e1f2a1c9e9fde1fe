"""Count verdicts, correct shares, measure labelers: numbers in, numbers out, no models and no files."""
