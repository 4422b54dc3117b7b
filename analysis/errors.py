"""The error of the analysis: a sentence with a next step.

It has the attributes of the command line's errors (`message`, `hint`, `exit_code`), which this package may not import.
"""


class AnalysisError(Exception):
    """A run folder cannot be measured; `hint` says what to do next."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
