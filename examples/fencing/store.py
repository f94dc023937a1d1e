"""An object store in memory, with entity tags and conditional writes, and no idea of fences.

usage: store.py    prints its URL, then serves
"""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

objects = {}
one_at_a_time = threading.Lock()


def tag(body):
    return f'"{hashlib.sha256(body).hexdigest()}"'


class Store(BaseHTTPRequestHandler):
    def do_GET(self):
        body = objects.get(self.path)
        if body is None:
            return self.answer(404)
        self.answer(200, body)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with one_at_a_time:
            there = objects.get(self.path)
            if there is None:
                permitted = self.headers["If-None-Match"] == "*"
            else:
                permitted = self.headers["If-Match"] == tag(there)
            if permitted:
                objects[self.path] = body
        self.answer(200 if permitted else 412)

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", tag(body))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
