"""The requests in tests/http/fixtures, which tests/http/request_fixtures_test.cc makes: sent as they are, and the profiles inside."""
import base64
import http.client
import json
import pathlib
import socket

DIRECTORY = pathlib.Path(__file__).parent.parent / "http/fixtures"
BEGIN_S = 1_700_000_000  # of their period, which is not long


def send(port, name):
    """Sends a request to a port of this machine. Returns the status of the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall((DIRECTORY / name).read_bytes())
        response = http.client.HTTPResponse(connection, method="POST")
        response.begin()
        response.read()
        return response.status


def profiles(name):
    """The encoded profiles of a request: its body, or those in a body of JSON for Parca."""
    body = (DIRECTORY / name).read_bytes().partition(b"\r\n\r\n")[2]
    if not body.startswith(b"{"):
        return [body]
    return [base64.b64decode(sample["rawProfile"]) for series in json.loads(body)["series"] for sample in series["samples"]]
