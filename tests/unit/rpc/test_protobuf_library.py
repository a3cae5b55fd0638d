"""Imports of generated code; the rest of the library stays importable."""

from __future__ import annotations

import subprocess
import sys

from google.protobuf.internal import api_implementation


def output_of(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_messages_work_without_the_second_implementation() -> None:
    if api_implementation.Type() != "upb":
        return  # there is no first one
    found = output_of(
        "import sys\n"
        "from coder.rpc.proto import agent_pb2 as pb\n"
        "made = pb.Manifest(agent_name='a', environment_variables={'k': 'v'})\n"
        "made.metadata.add().timeout.FromSeconds(3)\n"
        "again = pb.Manifest.FromString(made.SerializeToString())\n"
        "assert again == made and again.metadata[0].timeout.seconds == 3 and 'agent_name' in str(again)\n"
        "names = ('internal.python_message', 'internal.decoder', 'text_format')\n"
        "print([name for name in names if f'google.protobuf.{name}' in sys.modules])"
    )
    assert found == "[]"


def test_second_implementation_stays_importable() -> None:
    found = output_of(
        "from coder.rpc.proto import agent_pb2 as pb\n"
        "from google.protobuf import descriptor_pool, json_format, text_format\n"
        "made = pb.Manifest(agent_name='a')\n"
        "assert text_format.Parse(text_format.MessageToString(made), pb.Manifest()) == made\n"
        "assert json_format.Parse(json_format.MessageToJson(made), pb.Manifest()) == made\n"
        "from google.protobuf.internal import python_message\n"
        "stub = descriptor_pool.python_message\n"
        "print(stub.GeneratedProtocolMessageType is python_message.GeneratedProtocolMessageType)"
    )
    assert found == "True"
