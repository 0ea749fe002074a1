"""The model in int8 on a CPU: C++ kernels, compiled once where a compiler is found, called through ctypes."""
