"""The OpenAPI document and the routes say the same."""

import yaml

from hyperpod_jlab.server.base import API_PREFIX
from hyperpod_jlab.server.endpoint import EndpointHandler
from hyperpod_jlab.server.log_socket import LogSocket
from hyperpod_jlab.server.openapi import document
from hyperpod_jlab.server.run_events import SCHEMA_FILE

VERBS = ("get", "head", "post", "put", "patch", "delete")


def served(web_app):
    """Each verb of each path of ours that the server answers."""
    for rule in web_app.default_router.rules[0].target.rules:
        handler = rule.target
        if not isinstance(handler, type) or not issubclass(handler, EndpointHandler | LogSocket):
            continue
        for verb in VERBS:
            if getattr(handler, verb).__name__ != "_unimplemented_method":
                yield verb, rule.matcher.regex


async def test_what_is_described_is_what_is_served(api, jp_serverapp):
    described = await api.get("openapi.json")
    assert described == document()
    examples = {
        (verb, path.replace("{", "").replace("}", ""))
        for path, operations in described["paths"].items()
        for verb in operations
    }
    rules = list(served(jp_serverapp.web_app))
    assert len(rules) == len(examples)
    base = jp_serverapp.web_app.settings["base_url"].rstrip("/")
    for verb, pattern in rules:
        matching = [
            path
            for described_verb, path in examples
            if described_verb == verb and pattern.fullmatch(f"{base}{API_PREFIX}{path}")
        ]
        assert matching, pattern.pattern


def test_every_operation_says_what_it_asks_the_authorizer_for():
    for operations in document()["paths"].values():
        for verb, operation in operations.items():
            assert operation["x-action"] == {"get": "read", "post": "execute"}[verb]
            assert operation["summary"]


def test_all_references_lead_somewhere():
    def references(node):
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    described = document()
    for reference in references(described):
        place = described
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def test_the_events_schema_names_all_states():
    schema = yaml.safe_load(SCHEMA_FILE.read_text())
    states = document()["components"]["schemas"]["RunState"]["enum"]
    assert schema["properties"]["state"]["enum"] == states
