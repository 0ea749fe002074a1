"""Time slices of whole cores, for engines that share them."""
