"""Reads manifests: YAML or JSON, several documents in a file, from standard input, from folders."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import yaml

from metal.cli.support.dynamic import Obj

_ENDINGS = (".yaml", ".yml", ".json")


class _Loader(yaml.SafeLoader):
    """Keeps timestamps as text, as in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [entry for entry in entries if entry[0] != "tag:yaml.org,2002:timestamp"]
    for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class Manifest:
    """An object and the place where it is written."""

    obj: Obj
    where: str

    def within(self, namespace: str) -> "Manifest":
        """Return the manifest with a namespace, if it has none."""
        metadata = {"namespace": namespace, **self.obj["metadata"]}
        return replace(self, obj={**self.obj, "metadata": metadata})

    def __str__(self) -> str:
        return f"{self.obj['kind']} {self.obj['metadata']['name']}"


file_option = click.option(
    "-f", "--filename", "files", multiple=True, metavar="FILE",
    help="YAML or JSON file, a folder of such files, or - for standard input.",
)  # fmt: skip


def read(files: Iterable[str]) -> list[Manifest]:
    """Return every object in the files, in order. Raises click.UsageError that names file and document."""
    found = [manifest for name in files for source, text in _texts(name) for manifest in documents(text, source)]
    if not found:
        raise click.UsageError("the files have no objects")
    return found


def _texts(name: str) -> Iterator[tuple[str, str]]:
    if name == "-":
        yield "standard input", sys.stdin.read()
        return
    path = Path(name)
    try:
        files = sorted(f for f in path.iterdir() if f.suffix in _ENDINGS) if path.is_dir() else [path]
        for file in files:
            yield str(file), file.read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise click.UsageError(f"{name} cannot be read: {exc}") from None


def documents(text: str, source: str) -> Iterator[Manifest]:
    """Return the objects of a text. Raises click.UsageError that names `source`, document, line and field."""
    try:
        documents = list(yaml.load_all(text, _Loader))
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f" line {mark.line + 1}" if mark else ""
        raise click.UsageError(f"{source}{where}: not YAML: {getattr(exc, 'problem', exc)}") from None
    for number, document in enumerate(documents, 1):
        where = f"{source} document {number}" if len(documents) > 1 else source
        yield from _objects(document, where)


def _objects(document: Any, where: str) -> Iterator[Manifest]:
    if document is None:
        return
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List") and "items" in document:
        for item in document["items"] or ():
            yield from _objects(item, where)
        return
    yield Manifest(_checked(document, where), where)


def _checked(document: Any, where: str) -> Obj:
    if not isinstance(document, dict):
        raise click.UsageError(f"{where}: an object must be a mapping with apiVersion, kind and metadata")
    for key in ("apiVersion", "kind"):
        if not isinstance(document.get(key), str) or not document[key]:
            raise click.UsageError(f"{where}: {key} is missing: every object needs one")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise click.UsageError(f"{where}: metadata.name is missing or not text: every object needs one (quote numbers)")
    return document
