"""The Open Inference Protocol's health and metadata: ``inference.proto``, and what ``make proto`` generates from it."""
