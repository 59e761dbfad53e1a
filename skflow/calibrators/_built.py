"""What transforms build from fitted arrays, kept from one call to the next."""

import threading

MAX_ENTRIES = 8


class Built:
    """Products of fitted arrays, such as a torch module, each built when first asked for.

    It is made in `fit` and in unpickling, since `transform` may add nothing to an estimator, and belongs to
    no state. An entry holds while the very arrays that it was built from are in use: other arrays make it
    anew, while writing into an array goes unnoticed. Threads share what is here: nothing may change it.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._entries = {}

    def get(self, key, sources, build):
        """Return ``build()``, or what it returned the last time for this key and these sources.

        Parameters
        ----------
        key : tuple
            Hashable; what is built, and the plain values that it depends on.
        sources : sequence
            The arrays that it is built from, compared by identity.
        build : callable
        """
        sources = tuple(sources)
        with self._lock:
            known, value = self._entries.get(key, ((), None))
            if len(known) != len(sources) or any(a is not b for a, b in zip(known, sources, strict=True)):
                self._entries.pop(key, None)
                value = build()
                self._entries[key] = sources, value
                while len(self._entries) > MAX_ENTRIES:
                    self._entries.pop(next(iter(self._entries)))
            return value
