"""What is known of a model and its versions without their weights. Values only."""
