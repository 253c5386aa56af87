"""Plays the script with one kubectl on one home."""

import asyncio
import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.conformance.kubectl.normal import normalise, sorted_json
from tests.conformance.kubectl.step import Step

PATIENCE = 60.0
"""Seconds for one command; two cores run several at once."""


@dataclass(frozen=True)
class Outcome:
    """What one command left, normalised."""

    line: str
    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"$ kubectl {self.line}\n{self.out}--- stderr\n{self.err}--- exit {self.code}\n"


class Player:
    """One kubectl on one home. `run` makes names this run's own; folder keeps configuration and caches of kubectl."""

    def __init__(self, program: Path, kubeconfig: Path, run: str, folder: Path) -> None:
        self._program, self._run, self._folder = program, run, folder
        folder.mkdir(parents=True)
        (folder / "kubeconfig").write_text(_in_namespace(kubeconfig.read_text(), f"lab-{run}"))
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "KUBECONFIG": str(folder / "kubeconfig"),
        }

    async def play(self, steps: Iterable[Step]) -> list[Outcome]:
        """Run each in turn; background ones until their lines have come."""
        outcomes: list[Outcome] = []
        for step in steps:
            outcomes += await self._step(step)
        return outcomes

    async def _step(self, step: Step) -> list[Outcome]:
        process = await self._start(step)
        try:
            async with asyncio.timeout(PATIENCE):
                if step.until:
                    return await self._watched(step, process)
                begun = await _until_it_watches(process.stderr) if step.meanwhile else b""
                meanwhile = await self.play(step.meanwhile)
                out, err = await process.communicate(self._own(step.stdin).encode())
        except TimeoutError:
            raise AssertionError(f"kubectl {step.line}: still running after {PATIENCE:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return [self._outcome(step, process.returncode or 0, out, begun + err), *meanwhile]

    async def _watched(self, step: Step, process: asyncio.subprocess.Process) -> list[Outcome]:
        """What a command printed that never ends by itself: `meanwhile` begins after its first two lines."""
        assert process.stdout is not None
        lines = [await process.stdout.readline() for _ in range(2)]
        meanwhile = await self.play(step.meanwhile)
        lines += [await process.stdout.readline() for _ in range(step.until - 2)]
        if process.returncode is None:
            process.terminate()
        _, err = await process.communicate()
        return [self._outcome(step, 0 if lines[-1] else 1, b"".join(lines), err), *meanwhile]

    async def _start(self, step: Step) -> asyncio.subprocess.Process:
        environment = dict(self._environment)
        if step.edit:
            editor = self._folder / "editor"
            editor.write_text(f'#!/bin/sh\nsed -i {shlex.quote(self._own(step.edit))} "$1"\n')
            editor.chmod(0o755)
            environment["KUBE_EDITOR"] = str(editor)
        return await asyncio.create_subprocess_exec(
            self._program,
            *shlex.split(self._own(step.line)),
            *(["-v=6"] if step.meanwhile and not step.until else ()),
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    def _own(self, text: str) -> str:
        return text.replace("RUN", self._run)

    def _outcome(self, step: Step, code: int, out: bytes, err: bytes) -> Outcome:
        text = sorted_json(out.decode()) if step.json else out.decode()
        shown = normalise(text, self._run, only=step.only, blur=step.blur, shuffled=step.shuffled)
        return Outcome(step.line, code, shown, normalise(err.decode(), self._run, blur=step.blur))


async def _until_it_watches(log: asyncio.StreamReader | None) -> bytes:
    """What kubectl logged until its watch stood, or to its end: what happens before is no news to it."""
    assert log is not None
    begun = b""
    while line := await log.readline():
        begun += line
        if b"watch=true" in line:
            break
    return begun


def _in_namespace(kubeconfig: str, namespace: str) -> str:
    config = yaml.safe_load(kubeconfig)
    for context in config["contexts"]:
        context["context"]["namespace"] = namespace
    return yaml.safe_dump(config)
