"""The one way in which a tool gives up: a line for the user and an exit code."""

USAGE = 2
NOT_EXECUTABLE = 126
NOT_FOUND = 127


class Failure(Exception):
    """Ends the command: `hmalloc: MESSAGE` on the standard error, and this exit code."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code
