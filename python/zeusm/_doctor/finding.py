"""A finding of a step."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Whether something works."""

    OK = "ok"
    #: It is not there, and not needed.
    ABSENT = "absent"
    #: It works, and changes what programs see.
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    step: str
    state: State
    text: str
    #: The command that mends it.
    remedy: str | None = None
