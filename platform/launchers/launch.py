"""Serves OpenWhisk's /init and /run for one Python action, on "unix:PATH" or "HOST:PORT", its last argument. The one
before it is the text of archive.py, and the first one, where there are three, "native": then the action is a program.

One request at a time, in the main thread: an action may want signals. What an action raises becomes {"error": text} with
200, as OpenWhisk's Python runtime answers it; the platform makes an application error of that.
"""

import base64
import binascii
import io
import json
import os
import socketserver
import subprocess
import sys
import traceback
import types
from http.server import BaseHTTPRequestHandler

SENTINEL = "XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX"
NATIVE = len(sys.argv) > 3
LONGEST_ARGUMENT = 1 << 17  # of the kernel
NO_RESULT = "The action did not return a dictionary or array."
action = None
silent = False  # whoever asks knows by the answer where an activation's log ends


def source(value):
    """The text of an action and the file that it is of: one alone, or the first of an archive, which is unpacked."""
    code = value["code"]
    if not value.get("binary"):
        return code, "main__.py"
    try:
        data = base64.b64decode(code, validate=True)
    except binascii.Error:
        return code, "main__.py"
    if data[:2] != b"PK":
        return data.decode(), "main__.py"
    file = archive().place(data, "action")
    with open(file, encoding="utf-8") as text:
        return text.read(), file


def program(value):
    """A function that runs an action's program: a text of its own, or the file exec of an archive. It gets its arguments as
    JSON, in its first argument, if they are short enough for one, and to read; the last line that it prints is its result."""
    data = base64.b64decode(value["code"]) if value.get("binary") else value["code"].encode()
    if data[:2] == b"PK":
        folder = archive().unpack(io.BytesIO(data), "action")
    else:
        folder = os.path.join(os.getcwd(), "action")
        os.mkdir(folder)
        with open(os.path.join(folder, "exec"), "wb") as text:
            text.write(data)
    file = os.path.join(folder, "exec")
    if not os.path.isfile(file):
        raise ValueError("Zip file does not include exec at the root.")
    os.chmod(file, 0o755)

    def call(args):
        given = json.dumps(args)
        command = [file, given] if len(given) < LONGEST_ARGUMENT else [file]
        done = subprocess.run(command, input=given.encode(), stdout=subprocess.PIPE, cwd=folder)
        lines = done.stdout.decode("utf-8", "replace").rstrip("\n").split("\n")
        try:
            result = json.loads(lines[-1])
        except ValueError:
            result = None
        for line in lines if result is None else lines[:-1]:
            print(line)
        return result

    return call


def archive():
    """The module that unpacks archives. Most actions do not need it, so that its text is an argument and imports little."""
    module = types.ModuleType("archive")
    exec(compile(sys.argv[-2], "archive.py", "exec"), module.__dict__)
    return module


def init(value):
    """Makes the action of /init's value. Where that has sentinels as false, none are printed from then on, which the answer
    confirms."""
    status, said = load(value)
    if status == 200 and value.get("sentinels") is False:
        global silent
        silent = True
        said["sentinels"] = False
    return status, said


def load(value):
    global action
    if action is not None:
        text = "Cannot initialize the action more than once."
        print(text, file=sys.stderr)
        return 403, {"error": text}
    if not value.get("code"):
        return 403, {"error": "Missing main/no code to execute."}
    os.environ.update({k: str(v) for k, v in value.get("env", {}).items()})
    try:
        if NATIVE:
            action = program(value)
            return 200, {"ok": True}
        text, file = source(value)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 502, {"error": str(problem)}
    try:
        module = types.ModuleType("main__")
        module.__file__ = file
        sys.modules["main__"] = module
        exec(compile(text, file, "exec"), module.__dict__)
        action = module.__dict__[value.get("main") or "main"]
        if not callable(action):
            raise TypeError("%r is not a function" % value.get("main"))
    except BaseException:
        action = None
        traceback.print_exc()
        return 502, {"error": "Cannot start action. Check logs for details."}
    return 200, {"ok": True}


def run(request):
    if action is None:
        return 500, {"error": "no action defined yet"}
    for key, value in request.items():
        if key != "value":
            os.environ["__OW_" + key.upper()] = str(value)
    try:
        result = action(request.get("value") or {})
    except Exception as problem:
        traceback.print_exc()
        result = {"error": str(problem)}
    if not isinstance(result, (dict, list, tuple)):
        return 502, {"error": NO_RESULT}
    try:
        json.dumps(result)
    except (TypeError, ValueError):
        traceback.print_exc()
        return 502, {"error": NO_RESULT}
    return 200, result


def end():
    for stream in (sys.stdout, sys.stderr):
        if not silent:
            stream.write(SENTINEL + "\n")
        stream.flush()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = json.loads(body or b"{}")
        if self.path == "/init":
            status, answer = init(request.get("value") or {})
            if status != 200:
                end()
        elif self.path == "/run":
            status, answer = run(request)
            end()
        else:
            status, answer = 404, {"error": "there is only /init and /run"}
        data = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass  # the log is the action's


def server(address):
    if address.startswith("unix:"):
        return socketserver.UnixStreamServer(address[len("unix:"):], Handler)
    host, _, port = address.rpartition(":")
    return socketserver.TCPServer((host, int(port)), Handler)


server(sys.argv[-1]).serve_forever()
