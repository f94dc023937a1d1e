"""A service that opens a door for whoever holds the lock, and refuses older fences.

usage: door.py    prints its URL, then serves: POST /open with a header Fence
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

largest = 0  # of a service that restarts: keep it on disk, and write it before the deed
one_at_a_time = threading.Lock()


class Door(BaseHTTPRequestHandler):
    def do_POST(self):
        global largest
        fence = int(self.headers["Fence"])
        with one_at_a_time:
            if fence < largest:
                return self.answer(412, "refused: a later holder was here\n")
            largest = fence
            # The deed is done before anybody else is let in.
            self.answer(200, "opened\n")

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
