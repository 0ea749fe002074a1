"""The device: a CPU."""


class _Cpu:
    @staticmethod
    def is_cpu() -> bool:
        return True


current_platform = _Cpu()
