"""The registry of models: its administration, and views that follow it. Knows neither HTTP nor a terminal."""
