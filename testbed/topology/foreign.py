"""How the values that describe other people's programs, and the router in front of a node, are checked."""

import re

from testbed.topology.checks import Checked, described, refuse, text
from testbed.topology.hints import quoted

MAX_WORDS = 200  # of a command
# As engines read it: [host[:port]/]name[/name...][:tag][@digest]
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"
_IMAGE = (
    rf"(?=.{{1,255}}$)({_HOST}/)?{_PART}(/{_PART})*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
_PACKAGE = r"[a-z0-9][a-z0-9+.-]{1,99}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
_INSIDE = r"(/[A-Za-z0-9._+-]+)+"


def _matching(what: str, pattern: str, hint: str) -> Checked:
    def check(value: object) -> str:
        given = text(value, what)
        if not re.fullmatch(pattern, given):
            raise refuse(f"{quoted(given)} cannot be {what}", hint)
        return given

    return Checked(check, {"type": "string", "pattern": f"^{pattern}$"})


def image() -> Checked:
    """The name of a container image."""
    return _matching(
        "an image's name", _IMAGE, "write it like eclipse-mosquitto:2, in small letters"
    )


def package() -> Checked:
    """The name of a Debian package."""
    return _matching("a package's name", _PACKAGE, "write it like mosquitto")


def variable() -> Checked:
    """The name of an environment variable."""
    return _matching("a variable's name", _VARIABLE, "write it like LOG_LEVEL")


def variable_value() -> Checked:
    """What a variable holds; a bare number would be ambiguous, so it is quoted."""
    return Checked(lambda value: text(value, "a variable's value"), {"type": "string"})


def inside_path() -> Checked:
    """Where a file stands in the container."""

    def check(value: object) -> str:
        given = text(value, "a path")
        if not re.fullmatch(_INSIDE, given) or ".." in given.split("/"):
            raise refuse(
                f"{quoted(given)} cannot be a path inside the container",
                "write an absolute path like /etc/mosquitto/mosquitto.conf",
            )
        return given

    return Checked(check, {"type": "string", "pattern": f"^{_INSIDE}$"})


def source_path() -> Checked:
    """A file on this machine; a relative path begins at the topology file's folder."""
    return Checked(lambda value: text(value, "a file's path"), {"type": "string"})


def router() -> Checked:
    """The router in front: a node's name, or a selector of several."""
    return Checked(lambda value: text(value, "a router's name"), {"type": "string"})


def command() -> Checked:
    """A list of words, or a line that the image's shell is to read."""
    hint = (
        "write a list like [mosquitto, -c, /etc/mosquitto/mosquitto.conf], or a line for the shell"
    )

    def check(value: object) -> tuple[str, ...]:
        if value == [] or (isinstance(value, str) and not value.strip()):
            raise refuse("the command is empty", hint)
        if isinstance(value, str):
            return ("sh", "-c", value)
        if not isinstance(value, list):
            raise refuse(f"a command is expected here, not {described(value)}", hint)
        for index, word in enumerate(value):
            if not isinstance(word, str):
                raise refuse(
                    f"a text is expected here, not {described(word)}", "put it in quotes", index
                )
        if len(value) > MAX_WORDS:
            raise refuse(f"more than {MAX_WORDS} words", "put them into a file")
        return tuple(value)

    words = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_WORDS}
    return Checked(check, {"anyOf": [{"type": "string"}, words]})
