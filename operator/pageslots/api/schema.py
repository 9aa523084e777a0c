"""From a pydantic model to a structural OpenAPI v3 schema, as a CRD wants it.

The input is the JSON schema that pydantic makes. What a structural schema can't have is resolved:
references are inlined, `anyOf` with null becomes an optional field, titles go. What `kubectl explain`
shows comes from the docstrings of the models, read from their source here, so that a running program
doesn't pay for it.
"""

import ast
import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from typing import Any, get_args

from pydantic import BaseModel

from pageslots.api.fields import SAYS, ApiModel

JsonSchema = dict[str, Any]

_KEPT = (
    "description",
    "type",
    "format",
    "default",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "required",
    "properties",
    "items",
)
"""Keywords in the order in which they are written; `x-kubernetes-…` follow them."""
_DROPPED = frozenset({"title", "$defs", SAYS})
_MOST_INT32 = 2**31 - 1


class NotStructuralError(ValueError):
    """A model has something that a CRD can't express."""


def structural_schema(model: type[BaseModel], *, written: Mapping[str, JsonSchema]) -> JsonSchema:
    """The schema of one model, without references.

    `written` are the schemas of fields of its own that are not to be made from the model.
    NotStructuralError names a field that can't be expressed.
    """
    raw = model.model_json_schema(by_alias=True, mode="validation")
    raw["properties"] |= written
    return _Converter(raw.get("$defs", {}), model).convert(raw, model.__name__)


class _Converter:
    def __init__(self, definitions: Mapping[str, JsonSchema], model: type[BaseModel]) -> None:
        self._definitions = definitions
        self._models = {found.__name__: found for found in _models_below(model)}

    def convert(self, node: Mapping[str, Any], where: str) -> JsonSchema:
        node = self._resolve(node, where)
        unknown = [
            key for key in node if key not in (*_KEPT, *_DROPPED) and not key.startswith("x-kubernetes-")
        ]
        if unknown:
            raise NotStructuralError(f"{where}: a CRD can't have {', '.join(unknown)}")
        made: JsonSchema = {key: node[key] for key in _KEPT if key in node}
        if made.get("default", 0) is None:
            del made["default"]
        if "description" in made:
            made["description"] = _reflowed(made["description"])
        if made.get("type") == "integer" and "format" not in made:
            made["format"] = "int32" if made.get("maximum", _MOST_INT32 + 1) <= _MOST_INT32 else "int64"
        if "properties" in made:
            made["properties"] = {
                name: self.convert(child, f"{where}.{name}") for name, child in node["properties"].items()
            }
        if "items" in made:
            made["items"] = self.convert(node["items"], f"{where}[]")
        return made | {key: value for key, value in node.items() if key.startswith("x-kubernetes-")}

    def _resolve(self, node: Mapping[str, Any], where: str) -> JsonSchema:
        """The node with its reference, its `anyOf null` and its constant written out."""
        node = dict(node)
        if "anyOf" in node:
            others = [option for option in node.pop("anyOf") if option.get("type") != "null"]
            if len(others) != 1:
                raise NotStructuralError(f"{where}: a union of types")
            node = self._resolve(others[0], where) | node
        if "$ref" in node:
            name = node.pop("$ref").rpartition("/")[2]
            node = self._described(name) | node
        if "const" in node:
            node["enum"] = [node.pop("const")]
        if node.get("default") is not None and isinstance(node["default"], Enum):
            node["default"] = node["default"].value
        return node

    def _described(self, name: str) -> JsonSchema:
        """A definition with the texts of its fields, and `{}` as default of those made by a factory."""
        definition = dict(self._definitions[name])
        model = self._models.get(name)
        if model is None:
            definition.pop("description", None)  # an enum's docstring is about the program
            return definition
        texts = attribute_docstrings(model)
        defaults = {info.alias or field: info.default_factory for field, info in model.model_fields.items()}
        properties = {}
        for key, child in definition.get("properties", {}).items():
            described = dict(child)
            if key in texts:
                described["description"] = texts[key]
            if defaults.get(key) is not None:
                described["default"] = {}
            properties[key] = described
        return definition | {"properties": properties}


def _reflowed(text: str) -> str:
    """Paragraphs without line breaks of their own."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))


def _models_below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for info in model.model_fields.values():
        yield from _models_in(info.annotation)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from _models_below(annotation)
    for inner in get_args(annotation):
        yield from _models_in(inner)


@cache
def attribute_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """By alias, the text below each field in the model's source and in that of its parents."""
    texts: dict[str, str] = {}
    for parent in reversed(model.__mro__):
        if not issubclass(parent, ApiModel) or parent is ApiModel:
            continue
        (definition,) = ast.parse(inspect.getsource(parent)).body
        body = getattr(definition, "body", [])
        for statement, after in pairwise(body):
            match statement, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ) if name in model.model_fields:
                    alias = model.model_fields[name].alias or name
                    texts[alias] = text
                case _:
                    pass
    return texts
