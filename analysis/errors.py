"""What can go wrong in the analysis: one error, a sentence with a next step.

It has the shape of the command line's own errors (`message`, `hint`, `exit_code`), which it may not import.
"""


class AnalysisError(Exception):
    """A run folder cannot be measured; `hint` says what to do next."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
