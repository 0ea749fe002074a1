"""Trains a head that drafts for the default model, out of text that the model itself writes."""
