"""Messages that no contract has."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from muniment.v1 import common_pb2

__all__ = ["vault_message"]


@cache
def vault_message() -> type[Message]:
    """A message type with secrets at every kind of place."""
    file = descriptor_pb2.FileDescriptorProto(
        name="tests/vault.proto",
        package="tests",
        syntax="proto3",
        dependency=["muniment/v1/common.proto"],
    )
    message = file.message_type.add(name="Vault")
    entry = message.nested_type.add(name="NamedEntry")
    entry.options.map_entry = True
    text = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
    inner = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
    one = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
    many = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
    entry.field.add(name="key", number=1, type=text, label=one)
    entry.field.add(name="value", number=2, type=inner, type_name=".tests.Vault", label=one)
    fields: list[tuple[str, int, Any, Any, str | None, bool]] = [
        ("title", 1, text, one, None, False),
        ("password", 2, text, one, None, True),
        ("codes", 3, text, many, None, True),
        ("inside", 4, inner, one, ".tests.Vault", False),
        ("list", 5, inner, many, ".tests.Vault", False),
        ("named", 6, inner, many, ".tests.Vault.NamedEntry", False),
        ("safe", 7, inner, one, ".tests.Vault", True),
        ("tags", 8, text, many, None, False),
    ]
    for name, number, kind, label, type_name, secret in fields:
        field = message.field.add(
            name=name, number=number, type=kind, label=label, type_name=type_name
        )
        field.options.Extensions[common_pb2.secret] = secret
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tests.Vault"))
