"""Memory that BertEmbedder adds for many short texts, and for one long text.

Run by hand, on Linux::

    python benchmarks/bench_embedder_memory.py [--texts 1000000]

The encoder is random and tiny, since its own memory does not depend on the number of texts.
"""

import argparse
import tempfile
import threading
import time
import warnings
from pathlib import Path

from skflow.embedders import BertEmbedder


def make_encoder(directory):
    """Save a random BERT of 2 layers and 32 features with a vocabulary of letters."""
    import transformers as hf

    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + letter for letter in letters)]
    vocabulary = directory / "vocab.txt"
    vocabulary.write_text("\n".join(tokens), encoding="utf-8")
    hf.BertTokenizerFast(str(vocabulary), model_max_length=64).save_pretrained(directory)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    hf.BertModel(hf.BertConfig(vocab_size=len(tokens), **sizes)).save_pretrained(directory)
    return directory


def anonymous():
    """Return the memory of this process in MB, files that it maps apart."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


class Peak:
    """Largest memory within a with block, over what there was before, in MB."""

    def __enter__(self):
        self.before, self.added, self._stop = anonymous(), 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self):
        while not self._stop.wait(0.02):
            self.added = max(self.added, anonymous() - self.before)

    def __exit__(self, *error):
        self._stop.set()
        self._thread.join()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=1_000_000)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*texts were truncated")
    with tempfile.TemporaryDirectory() as folder:
        embedder = BertEmbedder(make_encoder(Path(folder)), layers=0)
        embedder.fit_transform(["a"])
        with Peak() as peak:
            embedder.transform(["the cat " * 1_250_000])
        print(f"one text of 10 MB: {peak.added:.0f} MB more at the peak")
        for n in (args.texts // 10, args.texts):
            texts = [f"cat {i}" for i in range(n)]
            for cache in (None, Path(folder) / f"{n}.sqlite"):
                embedder.set_params(cache=cache)
                start = time.perf_counter()
                with Peak() as peak:
                    vectors = embedder.transform(texts)
                elapsed = time.perf_counter() - start
                own = vectors.nbytes / 2**20
                print(
                    f"{n} texts, {'with' if cache else 'without'} cache: {peak.added:.0f} MB more at the "
                    f"peak, {own:.0f} MB of them the vectors, "
                    f"{(peak.added - own) * 2**20 / n:.0f} bytes a text beside them; {elapsed:.0f} s",
                    flush=True,
                )
                del vectors


if __name__ == "__main__":
    main()
