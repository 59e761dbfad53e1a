"""Several devices at once, by the process pool of sentence-transformers."""

import queue
import threading
import traceback

import torch
from sentence_transformers import SentenceTransformer
from tqdm import tqdm

from ._encoder import WINDOW
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
        """Embed a chunk in a worker process, and hand back an error: some pools would wait for ever."""
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
    """The queue of results, which some pools would wait at for ever once a worker is dead."""

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
    start, vectors, is_cut
        As from :meth:`~skflow.embedders._encoder.Encoder.embed`.

    Raises
    ------
    RuntimeError
        If a worker failed; its traceback is in the message. If a worker died.
    """
    worker = _Worker(recipe, batch_size, options)
    chunk_size = min(WINDOW, max(1, -(-len(texts) // (len(devices) * _CHUNKS_PER_WORKER))))
    # A call of the pool covers a few chunks per worker, so that finished vectors can be kept meanwhile.
    call_size = chunk_size * len(devices) * _CHUNKS_PER_WORKER
    pool = worker.start_multi_process_pool(list(devices))
    pool["output"] = _WatchedQueue(pool["output"], pool["processes"])
    try:
        for first in range(0, len(texts), call_size):
            part = texts[first : first + call_size]
            results = SentenceTransformer.encode(
                worker, part, pool=pool, chunk_size=chunk_size, show_progress_bar=False
            )
            for number, (outcome, content) in enumerate(results):
                if outcome == "failed":
                    raise RuntimeError(f"a worker process of BertEmbedder failed:\n{content}")
                for start, vectors, is_cut in content:
                    progress(len(vectors))
                    yield first + number * chunk_size + start, vectors, is_cut
    finally:
        worker.stop_multi_process_pool(pool)
