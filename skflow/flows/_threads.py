"""How many threads torch computes on."""

import concurrent.futures
import threading

import torch


class _OneThread:
    """Context manager within which torch uses one thread a kernel.

    The kernels of a flow are too small to be worth waking a second thread for, and where the processor is
    busy a kernel on two threads waits for the slower one. It also makes results independent of how many
    threads there are.

    Each thread has its own number, but new ones take over the last that was set anywhere: while somebody is
    inside, that is no guide to what there was. Hence the count of users.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._n_users = 0
        self._n_threads = 1

    def __enter__(self):
        with self._lock:
            if self._n_users == 0:
                self._n_threads = torch.get_num_threads()
            self._n_users += 1
            torch.set_num_threads(1)
            return self._n_threads

    def __exit__(self, *error):
        with self._lock:
            self._n_users -= 1
            torch.set_num_threads(self._n_threads)


one_thread = _OneThread()


def for_each(function, items):
    """Call `function` for each of `items`, on as many threads as torch would use on one kernel.

    Parameters
    ----------
    function : callable
        Computes with torch, which lets other threads run meanwhile.
    items : sequence
    """
    with one_thread as n_threads:
        if n_threads == 1 or len(items) <= 1:
            for item in items:
                function(item)
            return
        n_workers = min(n_threads, len(items))
        executor = concurrent.futures.ThreadPoolExecutor
        with executor(n_workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            for _ in pool.map(function, items):
                pass
