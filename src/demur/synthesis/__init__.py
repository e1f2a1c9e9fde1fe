"""Make training rows: written by a language model to a plan and checked before they count, or changed without one."""
