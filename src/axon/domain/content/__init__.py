"""What is said in a turn: messages, tools, and calls of them. Values only; knows no API and no format."""
