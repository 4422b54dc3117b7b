"""What can go wrong in the programs of a board; each is a sentence for whoever called them."""

FAILED, WRONG_INPUT = 1, 2


class BoardError(Exception):
    """It was tried and failed."""

    exit_code = FAILED


class WrongInput(BoardError):
    """A file or argument is wrong."""

    exit_code = WRONG_INPUT
