"""Read what users have: sources into rows, rows into conversations, conversations into the model's text."""
