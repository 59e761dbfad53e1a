"""Several devices at once, by the process pool of sentence-transformers."""

import math
import queue
import threading
import traceback

import torch
from sentence_transformers import SentenceTransformer
from tqdm import tqdm

from ._batching import timed_parts
from ._encoder import SECONDS_PER_WINDOW, WINDOW
from ._loading import load_encoder

_CHUNKS_PER_WORKER = 4
_SECONDS_BETWEEN_LOOKS = 1.0


class _Worker(SentenceTransformer):
    """What the pool sends to its processes: it finds the model by its files, and runs it there.

    Parameters
    ----------
    recipe : Recipe
        How vectors are made.
    batch_size : int
        Size of a forward pass.
    options : dict
        Keyword arguments of :func:`~skflow.embedders._loading.load_encoder` except the device.
    """

    def __init__(self, recipe, batch_size, options):
        super().__init__(modules=[torch.nn.Identity()], device="cpu")
        self.recipe, self.batch_size, self.options = recipe, batch_size, options

    def encode(self, texts, device=None, **ignored):
        """Embed a chunk in a worker process, and hand back an error: some pools would wait forever."""
        # The pool kills its processes, and a lock between processes, as tqdm makes by itself, would be left.
        tqdm.set_lock(threading.RLock())
        try:
            encoder = load_encoder(device=str(device), **self.options)
            windows = encoder.embed(texts, self.recipe, batch_size=self.batch_size)
            return [("done", list(windows))]
        except Exception:
            return [("failed", traceback.format_exc())]

    # Newer versions of the pool call this instead.
    _inference = encode


class _WatchedQueue:
    """The queue of results, which some pools would wait at forever once a worker is dead."""

    def __init__(self, results, processes):
        self._results, self._processes = results, processes

    def get(self, *args, **kwargs):
        while True:
            try:
                return self._results.get(timeout=_SECONDS_BETWEEN_LOOKS)
            except queue.Empty:
                codes = [str(process.exitcode) for process in self._processes if not process.is_alive()]
            if codes:
                raise RuntimeError(
                    f"{len(codes)} worker processes of BertEmbedder died (exit code {', '.join(codes)}). A "
                    "script that gives a list as device must work under if __name__ == '__main__':, since "
                    "each worker imports the script. Otherwise memory may have run out."
                )

    def __getattr__(self, name):
        return getattr(self._results, name)


def embed_on_devices(devices, texts, recipe, *, batch_size, options, progress):
    """Embed texts in one process per device.

    Parameters
    ----------
    devices : list of str
        Devices of torch; one named twice gets two processes.
    texts : list of str
        Distinct texts.
    recipe, batch_size, progress
        As in :meth:`~skflow.embedders._encoder.Encoder.embed`.
    options : dict
        Keyword arguments of :func:`~skflow.embedders._loading.load_encoder` except the device.

    Yields
    ------
    rows, vectors, truncated
        As from :meth:`~skflow.embedders._encoder.Encoder.embed`.

    Raises
    ------
    RuntimeError
        If a worker failed; its traceback is in the message. If a worker died.
    """
    worker = _Worker(recipe, batch_size, options)
    # A call of the pool covers a few chunks per worker, and lasts no longer than finished vectors may wait.
    per_call = len(devices) * _CHUNKS_PER_WORKER
    first = 0
    pool = worker.start_multi_process_pool(list(devices))
    pool["output"] = _WatchedQueue(pool["output"], pool["processes"])
    try:
        for part in timed_parts(texts, per_call * batch_size, SECONDS_PER_WINDOW):
            chunk_size = min(WINDOW, math.ceil(len(part) / per_call))
            results = SentenceTransformer.encode(
                worker, part, pool=pool, chunk_size=chunk_size, show_progress_bar=False
            )
            for number, (outcome, content) in enumerate(results):
                if outcome == "failed":
                    raise RuntimeError(f"a worker process of BertEmbedder failed:\n{content}")
                for rows, vectors, truncated in content:
                    progress(len(rows))
                    yield first + number * chunk_size + rows, vectors, truncated
            first += len(part)
    finally:
        worker.stop_multi_process_pool(pool)
