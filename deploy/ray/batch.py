"""Batch jobs over files, with Ray Data.

    python batch.py prompts.jsonl replies/ --model gemma4:e2b --workers 4 --gpus 1
    python batch.py texts.jsonl vectors/ --model embeddinggemma --embed --workers 4 --gpus 1

A line of the input is an object with the field `prompt` (or `messages`), to embed one with the field `text`; its other fields stay. Lines of the
output also have `reply` or `embedding`, or `error`.
"""

import argparse
import json
import shlex
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy
import ray

from server_process import ServerProcess


class Worker:
    """A server, and what it makes of rows."""

    def __init__(self, command, model, embed, options, parallel):
        self.server = ServerProcess(command)
        self.model, self.embed, self.options, self.parallel = model, embed, options, parallel

    def __call__(self, batch):
        rows = [json.loads(line) for line in batch["text"]]
        if self.embed:
            self.embed_all(rows)
        else:
            # The server batches what comes at once.
            with ThreadPoolExecutor(self.parallel) as pool:
                list(pool.map(self.reply, rows))
        return {"text": numpy.array([json.dumps(row) for row in rows], dtype=object)}

    def embed_all(self, rows):
        try:
            request = {"model": self.model, "input": [row["text"] for row in rows]}
            for row, vector in zip(rows, self.post("/api/embed", request)["embeddings"], strict=True):
                row["embedding"] = vector
        except (KeyError, Refused) as error:
            for row in rows:
                row["error"] = repr(error)

    def reply(self, row):
        try:
            messages = row.get("messages") or [{"role": "user", "content": row["prompt"]}]
            request = {"model": self.model, "messages": messages, **self.options}
            row["reply"] = self.post("/v1/chat/completions", request)["choices"][0]["message"]["content"]
        except (KeyError, Refused) as error:
            row["error"] = repr(error)

    def post(self, path, body):
        request = urllib.request.Request(self.server.url + path, json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            # The request is at fault; anything else ends the worker, and Ray starts another one with the same rows.
            raise Refused(error.read().decode()) from None


class Refused(Exception):
    """The server does not accept a row."""


def run(source, target, model, *, command=None, embed=False, options=None, workers=1, parallel=8, gpus=0, cpus=1, rows=32):
    """Reads `source`, writes `target`; how many rows it had."""
    lines = ray.data.read_text(source)
    # Small files are one block: every worker gets some of it.
    lines = lines.repartition(max(workers * 4, 1))
    done = lines.map_batches(
        Worker,
        fn_constructor_args=(command, model, embed, options or {}, parallel),
        compute=ray.data.ActorPoolStrategy(size=workers),
        batch_size=rows,
        num_gpus=gpus,
        num_cpus=cpus,
        max_restarts=-1,
        max_task_retries=-1,
    )
    done = done.map(lambda row: json.loads(row["text"])).materialize()
    done.write_json(target)
    return done.count()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("source")
    arguments.add_argument("target")
    arguments.add_argument("--model", required=True)
    arguments.add_argument("--embed", action="store_true", help="compute embeddings of `text`")
    arguments.add_argument("--options", type=json.loads, default={}, help='such as \'{"max_tokens": 200, "temperature": 0}\'')
    arguments.add_argument("--workers", type=int, default=1, help="servers, one GPU each")
    arguments.add_argument("--gpus", type=float, default=0, help="GPUs of a worker")
    arguments.add_argument("--command", type=shlex.split, default=None, help="such as 'rullama serve --ctx 8192'")
    given = arguments.parse_args()
    count = run(
        given.source, given.target, given.model, command=given.command, embed=given.embed, options=given.options,
        workers=given.workers, gpus=given.gpus,
    )
    print(f"{count} rows")


if __name__ == "__main__":
    main()
