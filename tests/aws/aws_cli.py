"""Stands in for the AWS CLI and its Session Manager plugin: what both call for a session, and what AWS says to it.

They start the session, take it up again after a broken connection, and end it. ``TESTBED_SSH`` in the environment names a file that says where the sshd of
each instance listens, by its id: a session by ``AWS-StartSSHSession`` leads there.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from pathlib import Path

import boto3
from botocore.exceptions import ClientError

OPTIONS = {"--target", "--region", "--document-name", "--parameters"}


def main(words: list[str]) -> int:
    assert words[:2] == ["ssm", "start-session"], words
    given = dict(zip(words[2::2], words[3::2], strict=True))
    assert given.keys() <= OPTIONS, given
    ssm = boto3.client("ssm", region_name=given["--region"])
    more = {}
    if "--document-name" in given:
        name, _, value = given["--parameters"].partition("=")
        more = {"DocumentName": given["--document-name"], "Parameters": {name: [value]}}
    refused = []
    try:
        session = ssm.start_session(Target=given["--target"], **more)["SessionId"]
        if "TESTBED_SSH" in os.environ:
            instance = "i-" + given["--target"].rpartition("-i-")[2]
            pipe(*json.loads(Path(os.environ["TESTBED_SSH"]).read_text())[instance])
    except ClientError as error:
        sys.exit(str(error))
    for call in (ssm.resume_session, ssm.terminate_session):
        try:
            call(SessionId=session)
        except ClientError as error:
            refused.append(str(error))
    print("\n".join(refused), file=sys.stderr)
    return bool(refused)


def pipe(host: str, port: int) -> None:
    """Standard input and output are the connection's, until one side closes."""
    with socket.create_connection((host, port)) as connection:
        threading.Thread(target=send, args=(connection,), daemon=True).start()
        while chunk := connection.recv(65536):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()


def send(connection: socket.socket) -> None:
    while chunk := os.read(0, 65536):
        connection.sendall(chunk)
    connection.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
