"""What a field expects, in words; read from the JSON schema of its kind."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from pageslots.api.faults import Path
from pageslots.api.fields import SAYS

Node = Mapping[str, Any]


class Expectations:
    """The schema of one kind, walked along the path of a field."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._root: Node = model.model_json_schema(by_alias=True)

    def at(self, path: Path) -> Node:
        """The schema of a field; empty when there is none."""
        node = self._resolved(self._root)
        for step in path:
            inner = (
                node.get("items", {}) if isinstance(step, int) else node.get("properties", {}).get(step, {})
            )
            node = self._resolved(inner)
        return node

    def fields(self, path: Path) -> list[str] | None:
        """The names of the fields of an object; None for what is no object with fixed fields."""
        properties = self.at(path).get("properties")
        return None if properties is None else list(properties)

    def _resolved(self, node: Node) -> Node:
        options = [option for option in node.get("anyOf", ()) if option.get("type") != "null"]
        if len(options) == 1:
            node = {**self._resolved(options[0]), **{key: node[key] for key in node if key != "anyOf"}}
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            node = {**self._root["$defs"][name], **{key: node[key] for key in node if key != "$ref"}}
        return node


def phrase(node: Node) -> str:
    """What a value must be, to follow "is not" or "expected"."""
    if "const" in node:
        return str(node["const"])
    if "enum" in node:
        return f"one of {', '.join(node['enum'])}"
    if SAYS in node:
        return str(node[SAYS])
    if node.get("x-kubernetes-int-or-string"):
        return 'a whole number or a fraction such as "1/3"'
    return _phrase_of_type(node)


def _phrase_of_type(node: Node) -> str:
    words = "a text"
    match node:
        case {"type": "integer", "minimum": least, "maximum": most}:
            words = f"a whole number from {least} to {most}"
        case {"type": "integer"}:
            words = "a whole number"
        case {"type": "boolean"}:
            words = "true or false"
        case {"type": "array", "maxItems": most}:
            words = f"a list of {node.get('minItems', 0)} to {most} entries"
        case {"type": "array"}:
            words = "a list"
        case {"type": "object"}:
            words = "a mapping"
        case {"format": "date-time"}:
            words = "a time such as 2026-05-01T12:00:00Z"
        case {"maxLength": most}:
            words = f"a text of {node.get('minLength', 0)} to {most} characters"
    return words
