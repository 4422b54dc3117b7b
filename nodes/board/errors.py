"""Errors of the programs on a board; the text of each is a sentence for the orchestrator."""

FAILED, WRONG_INPUT = 1, 2


class BoardError(Exception):
    """It was tried and failed."""

    exit_code = FAILED


class WrongInput(BoardError):
    """A file or argument is wrong."""

    exit_code = WRONG_INPUT
