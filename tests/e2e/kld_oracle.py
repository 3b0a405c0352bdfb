"""The range of least Kullback-Leibler divergence in NumPy, apart from npuc's own.

After the algorithm as published: S. Migacz, 8-bit inference with TensorRT (GTC 2017), in the form
of NVIDIA's pytorch-quantization (histogram.py, method "entropy"). Its histogram is of absolute
values; the bin at 0 counts as its neighbour; a candidate keeps the first `count` bins, with all
beyond them added to the last, and compares them with the same bins (nothing added) in 2^bits
levels, each level's mass spread evenly over its bins that are not empty. Where the levels are 0 and
the kept bins are not, the divergence is infinite. Of equals the widest wins.
"""

import numpy as np

THRESHOLDS = 128  # that npuc tries; the published one tries every bin


def absolute_histogram(exponent, first, counts):
    """(counts of |x|, width of a bin); bin i of the histogram is [first + i, ...) * 2^exponent."""
    places = first + np.arange(len(counts))
    places = np.where(places >= 0, places, -1 - places)
    return np.bincount(places, np.asarray(counts, float)), 2.0 ** exponent


def divergence(bins, count, levels):
    """sum p log(p / q) of the candidate that keeps `count` bins."""
    kept = bins[:count]
    filled = kept > 0
    level = np.digitize(np.arange(count), np.linspace(0, count, levels + 1)) - 1
    mass = np.bincount(level[filled], kept[filled], levels)
    members = np.bincount(level[filled], minlength=levels)
    q = np.where(filled, mass[level] / np.maximum(members[level], 1), 0)
    p = kept.copy()
    p[-1] += bins[count:].sum()
    if q.sum() == 0 or np.any((p > 0) & (q == 0)):
        return np.inf
    p, q = p / p.sum(), q / q.sum()
    there = p > 0
    return float(np.sum(p[there] * np.log(p[there] / q[there])))


def threshold(counts, width, bits, is_unsigned, every_bin=False):
    """|x| from which on values are clipped."""
    bins = np.array(counts, float)
    bins[0] = bins[1]
    levels = min(2 ** (bits if is_unsigned else bits - 1), len(bins) // 2)
    stride = 1 if every_bin else max((len(bins) - levels) // THRESHOLDS, 1)
    tried = list(range(levels, len(bins) + 1, stride))
    tried[-1] = len(bins)
    found = [divergence(bins, count, levels) for count in tried]
    best = len(found) - 1 - int(np.argmin(found[::-1]))
    return tried[best] * width
