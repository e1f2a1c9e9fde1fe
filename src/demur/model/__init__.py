"""The network: one encoder, a gate and a category head; its weights, its runtime, its training."""
