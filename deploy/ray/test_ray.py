"""Real Ray with small models: two replicas, one of them killed while 500 requests run; a batch job with a worker killed.

RULLAMA names the program, GOLDENS the folder of the small models. `cargo xtask ray` sets both.
"""

import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

# A busy machine may take minutes to start Ray's processes and those of Serve; the defaults are for idle ones.
PATIENCE_S = 300
os.environ |= {
    "RAY_AUTH_MODE": "disabled",
    # Ray gives workers a low priority; where other programs keep all cores busy, they would hardly run.
    "RAY_worker_niceness": "0",
    # Workers are started when they are needed, two at a time.
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_worker_maximum_startup_concurrency": "2",
}
os.environ |= {
    name: str(PATIENCE_S)
    for name in (
        "RAY_gcs_server_port_wait_time_s",
        "RAY_gcs_rpc_server_connect_timeout_s",
        "RAY_gcs_rpc_server_reconnect_timeout_s",
        "RAY_gcs_server_request_timeout_seconds",
        "RAY_raylet_start_wait_time_s",
        "RAY_worker_register_timeout_seconds",
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S",
        "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S",
    )
}
os.environ |= {
    name: str(PATIENCE_S * 1000)
    for name in ("RAY_health_check_initial_delay_ms", "RAY_health_check_timeout_ms", "RAY_agent_register_timeout_ms")
}
import ray
from ray import serve

import batch
import serving

REQUESTS = 500
GOLDENS = Path(os.environ["GOLDENS"])
URL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    store = tmp_path_factory.mktemp("store")
    models = ["--model", f"micro={GOLDENS}/gguf/micro-e2b-Q8_0.gguf", "--model", f"embedder={GOLDENS}/embedding/first-BF16.gguf"]
    folder = str(Path(__file__).parent)
    # Logical CPUs: replicas, gateway and workers fit on any machine.
    ray.init(num_cpus=8, object_store_memory=150 << 20, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": folder}})
    yield [os.environ["RULLAMA"], "--store", str(store), "serve", "--device", "cpu", "--ctx", "128", *models]
    serve.shutdown()
    ray.shutdown()


def post(path, body):
    request = urllib.request.Request(URL + path, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
        return reply.status, reply.read().decode()


def prompt(number):
    body = {"model": "micro", "prompt": f"number {number % 7}", "raw": True, "stream": number % 2 == 0}
    return body | {"options": {"num_predict": 6, "temperature": 0}}


def said(text):
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[-1]["done"], text
    return "".join(line["response"] for line in lines)


def pids(name):
    """The processes of actors: Ray writes their class into the title."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            title = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        if title.startswith(b"ray::") and name.encode() in title:
            found.append(int(folder.name))
    return found


def test_a_lost_replica_loses_no_request(command):
    serve.run(serving.app({"command": command, "replicas": 2, "cpus": 0.5}))
    assert len(pids("Rullama")) == 2
    expected = [said(post("/api/generate", prompt(number))[1]) for number in range(7)]
    done, killed = threading.Semaphore(0), []

    def kill():
        for _ in range(REQUESTS // 3):
            done.acquire()
        killed.append(pids("Rullama")[0])
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()

    def request(number):
        # Streams that a lost replica had begun are asked for again, as the SDKs do.
        for _ in range(3):
            try:
                status, text = post("/api/generate", prompt(number))
                answer = said(text)
                break
            except Exception as error:
                if number % 2:
                    raise
                broken.append(repr(error))
        done.release()
        return status, answer

    broken = []
    start = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(request, range(REQUESTS)))
    seconds = time.monotonic() - start
    killer.join()
    assert [status for status, _ in answers] == [200] * REQUESTS
    assert [answer for _, answer in answers] == [expected[number % 7] for number in range(REQUESTS)]
    assert len(broken) <= 16, broken
    deadline = time.monotonic() + PATIENCE_S
    while len(set(pids("Rullama")) - set(killed)) < 2:
        assert time.monotonic() < deadline, "the replica is not replaced"
        time.sleep(0.5)
    print(f"\n{REQUESTS} requests in {seconds:.1f} s, {len(broken)} streams broken by the kill and repeated, none lost")


def test_the_apis_pass_through(command):
    status, text = post("/v1/chat/completions", {"model": "micro", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3})
    assert status == 200 and json.loads(text)["choices"][0]["finish_reason"] == "length"
    with pytest.raises(urllib.error.HTTPError) as error:
        post("/v1/chat/completions", {"model": "nobody", "messages": [{"role": "user", "content": "hi"}]})
    assert error.value.code == 404 and json.loads(error.value.read())["error"]["code"] == "model_not_found"
    assert json.loads(urllib.request.urlopen(f"{URL}/api/tags").read())["models"]
    # What a client asks for when it leaves early is not finished; the next request is answered.
    stream = urllib.request.urlopen(urllib.request.Request(f"{URL}/api/generate", json.dumps(prompt(0)).encode()))
    stream.read(1)
    stream.close()
    assert post("/api/generate", prompt(1))[0] == 200
    serve.shutdown()


def read(folder):
    lines = [line for file in sorted(Path(folder).glob("*.json")) for line in file.read_text().splitlines()]
    return {row["id"]: row for row in map(json.loads, lines)}


def test_batch_jobs_over_files(command, tmp_path):
    source = tmp_path / "prompts.jsonl"
    source.write_text("".join(json.dumps({"id": number, "prompt": f"number {number}"}) + "\n" for number in range(200)))

    def kill():
        deadline = time.monotonic() + PATIENCE_S
        while not (workers := pids("MapWorker")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        os.kill(workers[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    options = {"max_tokens": 4, "temperature": 0, "reasoning_effort": "none"}
    count = batch.run(str(source), str(tmp_path / "replies"), "micro", command=command, options=options, workers=2, cpus=0.5, rows=10)
    killer.join()
    rows = read(tmp_path / "replies")
    assert count == 200 and sorted(rows) == list(range(200))
    assert all(isinstance(row["reply"], str) and "error" not in row for row in rows.values())
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"id": number, "text": f"text {number}"}) + "\n" for number in range(50)))
    assert batch.run(str(texts), str(tmp_path / "vectors"), "embedder", command=command, embed=True, workers=1, cpus=0.5) == 50
    vectors = read(tmp_path / "vectors")
    assert len(vectors) == 50 and all(abs(sum(x * x for x in row["embedding"]) - 1) < 1e-3 for row in vectors.values())
