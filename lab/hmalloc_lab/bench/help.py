"""The option that shows lab/help/bench.txt, of every command of hmalloc bench."""

from typing import Annotated

import typer

from ..build_paths import SOURCE


def show(wanted: bool) -> None:
    if wanted:
        print((SOURCE / "lab" / "help" / "bench.txt").read_text(), end="")
        raise typer.Exit()


Help = Annotated[bool, typer.Option("-h", "--help", is_eager=True, callback=show)]
