"""Products of rows with weights: which kernel multiplies so many rows, in bfloat16, float32, fp8 or four bits."""
