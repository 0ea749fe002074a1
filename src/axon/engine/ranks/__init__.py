"""The processes of a tensor-parallel group: how they join, stay alive and follow the leading rank step by step."""
