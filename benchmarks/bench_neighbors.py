"""Time the exact neighbors of `frequency_bias` against scikit-learn's brute force, and their memory.

Both find the 7 nearest of 30,000 random vectors of 768 features for every one of them; the one here finds the
7 largest dot products as well. Run it on an idle machine::

    python benchmarks/bench_neighbors.py [--vectors 30000] [--repeats 3]
"""

import argparse
import resource
import statistics
import time

import numpy as np
from sklearn.neighbors import NearestNeighbors

from skflow.inspection._neighbors import neighbor_profile


def here(X):
    return neighbor_profile(X, np.arange(len(X)), 7)[0]


def scikit_learn(X):
    return NearestNeighbors(algorithm="brute").fit(X).kneighbors(X, 8)[0][:, 1:]


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--vectors", type=int, default=30_000)
parser.add_argument("--features", type=int, default=768)
parser.add_argument("--repeats", type=int, default=3)
args = parser.parse_args()

X = np.random.default_rng(0).standard_normal((args.vectors, args.features), dtype=np.float32)
seconds = {here: [], scikit_learn: []}
for _ in range(args.repeats):
    found = []
    for function, times in seconds.items():
        start = time.perf_counter()
        found.append(function(X))
        times.append(time.perf_counter() - start)
        if function is here and len(times) == 1:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"peak memory of the process so far: {peak:.0f} MB, vectors: {X.nbytes / 2**20:.0f} MB")
print(f"largest difference of a distance: {np.abs(found[0] - found[1]).max():.1e}")
for function, times in seconds.items():
    print(f"{function.__name__:14s} median of {args.repeats}: {statistics.median(times):.1f} s")
