"""Ask a language model behind an OpenAI-compatible endpoint, count what it costs, and never pay for an answer twice."""
