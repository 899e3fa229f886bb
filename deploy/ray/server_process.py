"""A `rullama serve` of our own: started with a replica, ended with it."""

import ctypes
import json
import os
import signal
import subprocess
import threading

# What `rullama serve` is started with unless the caller says otherwise.
COMMAND = ["rullama", "serve"]


def _end_with_parent():
    """Ends the child when its parent is killed, which then cannot do so itself (Linux)."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    except (OSError, AttributeError):
        pass


class ServerProcess:
    """Starts the server on a free port of this machine and waits until it listens."""

    def __init__(self, command=None):
        command = [*(command or COMMAND), "--port", "0", "--json"]
        environment = {name: value for name, value in os.environ.items() if name != "OLLAMA_HOST"}
        self.child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, preexec_fn=_end_with_parent
        )
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(f"{command[0]} ended with status {self.child.wait()} before it listened")
        self.url = json.loads(line)["url"].rstrip("/")
        # Nobody reads the rest; a full pipe would stop the server.
        threading.Thread(target=self.child.stdout.read, daemon=True).start()

    def check(self):
        """Raises if the server has ended."""
        status = self.child.poll()
        if status is not None:
            raise RuntimeError(f"the server has ended with status {status}")

    def stop(self):
        """Lets streams finish (`--drain`), then ends the server."""
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(timeout=90)
            except subprocess.TimeoutExpired:
                self.child.kill()
