"""HTTP clients of a running server, for the commands that ask one."""
