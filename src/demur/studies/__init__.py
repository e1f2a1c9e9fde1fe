"""What commands do: audits, evaluations, training runs. Numbers and files out, no rendering."""
