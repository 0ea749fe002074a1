"""What a turn uses, what it costs, and who pays for a replica's time."""
