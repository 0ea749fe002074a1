"""A step on its way to the device and back: its arrays, buffers, block tables and recorded graphs."""
