"""Replicas of rullama behind one address, with Ray Serve.

    serve run serving:app replicas=2 gpus=1 command="rullama serve --keep-alive -1"

Every replica runs a `rullama serve` of its own. The gateway passes requests of all APIs on. When a replica is lost, requests that have not begun
to be answered go to another one; a stream that has begun ends with an error, since its tokens cannot be taken back.
"""

import asyncio
import logging
import shlex

import aiohttp
from ray import serve
from ray.exceptions import RayError
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse

from server_process import ServerProcess

log = logging.getLogger("ray.serve")

# How often a request is sent before the client is told to try later, and the pause before the second time.
ATTEMPTS = 8
PAUSE = 0.25

# Headers that belong to a connection, not to a request. Serve checks who may connect; the server listens to this machine only.
OF_A_CONNECTION = {"host", "connection", "content-length", "transfer-encoding", "keep-alive", "origin", "authorization", "x-api-key"}


@serve.deployment(
    max_ongoing_requests=64,
    health_check_period_s=2,
    health_check_timeout_s=10,
    graceful_shutdown_timeout_s=60,
)
class Rullama:
    """A replica: one server, one GPU."""

    def __init__(self, command):
        self.server = ServerProcess(command)
        self.session = None

    def check_health(self):
        self.server.check()

    async def forward(self, method, path, headers, body):
        """Yields the status and the headers, then the body in pieces."""
        if self.session is None:
            # Replies take as long as they take.
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
            self.session = aiohttp.ClientSession(timeout=timeout, auto_decompress=False)
        async with self.session.request(method, self.server.url + path, headers=headers, data=body) as reply:
            kept = {name: value for name, value in reply.headers.items() if name.lower() not in OF_A_CONNECTION}
            yield reply.status, kept
            async for piece in reply.content.iter_any():
                yield piece

    def __del__(self):
        server = getattr(self, "server", None)
        if server is not None:
            server.stop()


@serve.deployment(max_ongoing_requests=1024)
class Gateway:
    """Passes requests on to replicas, and again to another one if the first is lost before it answers."""

    def __init__(self, replicas):
        self.replicas = replicas.options(stream=True)

    async def __call__(self, request: Request):
        headers = {name: value for name, value in request.headers.items() if name.lower() not in OF_A_CONNECTION}
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        body = await request.body()
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(PAUSE * 2 ** (attempt - 1))
            pieces = self.replicas.forward.remote(request.method, path, headers, body)
            try:
                status, kept = await anext(pieces)
                # A reply without a stream is taken whole, so that a replica lost in its middle loses nothing.
                if "text/event-stream" in kept.get("Content-Type", "") or "ndjson" in kept.get("Content-Type", ""):
                    return StreamingResponse(rest(pieces), status_code=status, headers=kept)
                whole = [piece async for piece in pieces]
                return StreamingResponse(iter(whole), status_code=status, headers=kept)
            except (RayError, aiohttp.ClientError) as error:
                log.warning("attempt %d of %s failed: %r", attempt + 1, path, error)
        return JSONResponse({"error": "no replica can answer; try again later"}, status_code=503, headers={"Retry-After": "1"})


async def rest(pieces):
    """The pieces of a stream; Ray ends the call when the client leaves."""
    async for piece in pieces:
        yield piece


def app(arguments):
    """The application, from arguments of `serve run` or of a configuration file."""
    command = arguments.get("command")
    if isinstance(command, str):
        command = shlex.split(command)
    replicas = int(arguments.get("replicas", 1))
    most = int(arguments.get("most_replicas", replicas))
    scale = {"num_replicas": replicas}
    if most > replicas:
        # As many requests as the server batches (--parallel) keep a replica busy.
        scale = {
            "num_replicas": "auto",
            "autoscaling_config": {
                "min_replicas": replicas,
                "max_replicas": most,
                "target_ongoing_requests": float(arguments.get("parallel", 4)),
            },
        }
    resources = {"num_cpus": float(arguments.get("cpus", 1)), "num_gpus": float(arguments.get("gpus", 0))}
    return Gateway.bind(Rullama.options(ray_actor_options=resources, **scale).bind(command))
