"""A model's weights on the device: how they get there, and the layout in which they are kept."""
