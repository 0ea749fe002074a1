"""Tokens drawn on the device: masks, truncation, random numbers, the draw, and the scores of prompts."""
