"""What vLLM raises for a request that it does not take: no ``ValueError``."""


class VLLMClientError(Exception):
    pass


class VLLMValidationError(VLLMClientError):
    pass
