#!/usr/bin/env python3
"""Checks that a document fits a schema, prints what does not, and then ends with status 1: check_schema.py SCHEMA.json [FILE.json] (standard input without
FILE). It knows the words that docs/reference/schemas uses and refuses any other, so that a schema cannot promise what is not checked."""
import json, re, sys

KNOWN = {"$schema", "title", "description", "type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "minimum",
         "minItems", "maxItems", "pattern"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "number": (int, float), "integer": int, "null": type(None)}


def is_a(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def check(value, schema, at="$"):
    unknown = set(schema) - KNOWN
    if unknown:
        yield "%s: the schema has %s, which this checker does not know" % (at, sorted(unknown))
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_a(value, k) for k in kinds):
        yield "%s: %r is no %s" % (at, value, " or ".join(kinds))
        return
    if "enum" in schema and value not in schema["enum"]:
        yield "%s: %r is none of %s" % (at, value, schema["enum"])
    if "anyOf" in schema and all(list(check(value, s, at)) for s in schema["anyOf"]):
        yield "%s: %r fits none of the choices" % (at, value)
    if "minimum" in schema and value < schema["minimum"]:
        yield "%s: %r is below %r" % (at, value, schema["minimum"])
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield "%s: %r does not match %s" % (at, value, schema["pattern"])
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield "%s: %d items" % (at, len(value))
        for i, v in enumerate(value):
            yield from check(v, schema.get("items", {}), "%s[%d]" % (at, i))
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                yield "%s: no %r" % (at, key)
        rest = schema.get("additionalProperties", True)
        for key, v in value.items():
            if key in schema.get("properties", {}):
                yield from check(v, schema["properties"][key], "%s.%s" % (at, key))
            elif rest is False:
                yield "%s: %r is not in the schema" % (at, key)
            elif isinstance(rest, dict):
                yield from check(v, rest, "%s.%s" % (at, key))


def strict(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError("a key twice: %s" % sorted(k for k in set(keys) if keys.count(k) > 1))
    return dict(pairs)


def no_constant(name):
    raise ValueError("%s is not JSON" % name)


document = json.load(open(sys.argv[2]) if len(sys.argv) > 2 else sys.stdin, object_pairs_hook=strict, parse_constant=no_constant)
wrong = list(check(document, json.load(open(sys.argv[1]))))
print("\n".join(wrong[:10]))
sys.exit(bool(wrong))
