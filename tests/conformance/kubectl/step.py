"""One command of the script."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """`kubectl line`, as a user types it. RUN in line, stdin and edit stands for what makes this run's names its own.

    stdin: what is piped in.
    edit: a sed expression that serves as the editor (KUBE_EDITOR).
    only: a regular expression; lines of the output that it does not match are left out, for lists that name more on a
        cluster.
    blur: a regular expression; what it matches is not compared (tokens, names that a server makes up).
    json: the output is JSON whose keys may stand in any order.
    shuffled: lines may come in any order, as Kubernetes promises none.
    until: the command runs in the background; once it has printed this many lines it is stopped. 0: it ends by itself.
    meanwhile: commands that run while it does; their outputs are compared, too.
    differs: why the answers must differ, in one line; of such a step only the exit code is compared.
    core: also played with each kubectl beside the default one. Such a step needs no other but these.
    """

    line: str
    stdin: str = ""
    edit: str = ""
    only: str = ""
    blur: str = ""
    json: bool = False
    shuffled: bool = False
    until: int = 0
    meanwhile: tuple["Step", ...] = ()
    differs: str = ""
    core: bool = False
