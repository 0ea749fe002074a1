"""Routes of models that give vectors, classes or scores. Knows no queue and no engine."""
