"""The engine's int8 arithmetic in C++: built once where a compiler is, called through ctypes."""
