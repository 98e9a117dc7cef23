"""The examples in docs/payloads are what is sent, and what the schemas beside them say."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from messages import message, summary
from payload_examples import WRITERS, example, path
from referencing import Registry, Resource

from lmdiag.forward.message import Message
from lmdiag.settings.sink_table import keys_of

DIRECTORY = path("").parent
SCHEMAS = {file.name: json.loads(file.read_text()) for file in DIRECTORY.glob("*.schema.json")}
INCIDENT = json.loads((DIRECTORY.parent / "incident.schema.json").read_text())
REGISTRY: Registry[object] = Registry().with_resources(
    [(name, Resource.from_contents(schema)) for name, schema in (*SCHEMAS.items(), ("../incident.schema.json", INCIDENT))]
)


@pytest.mark.parametrize("name", WRITERS)
def test_the_example_is_what_is_sent(name: str) -> None:
    """`make docs` writes it anew."""
    assert example(name) == json.loads(json.dumps(WRITERS[name](message())))


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("one", [None, message("resolved"), summary(12, 3)], ids=["the example", "resolved", "a summary"])
def test_each_payload_is_what_its_schema_says(name: str, one: Message | None) -> None:
    if one and one.members and "burst" not in keys_of(name):
        return  # no summary is made for it
    payload = example(name) if one is None else json.loads(json.dumps(WRITERS[name](one)))
    schema = SCHEMAS[f"{name.removesuffix('-cloudevents')}.schema.json"]
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema, registry=REGISTRY).validate(payload)


def test_there_is_an_example_of_each_schema() -> None:
    examples = {file.name.partition(".")[0] for file in DIRECTORY.glob("*.example.json")}
    assert examples == set(WRITERS)
    assert {name.partition(".")[0] for name in SCHEMAS} == {name.removesuffix("-cloudevents") for name in WRITERS}
