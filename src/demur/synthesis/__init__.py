"""Make training rows: written by language models and checked, or varied from rows that there are."""
