"""ROUGE-1, ROUGE-2 and ROUGE-L as F1 (Lin, 2004), as the package rouge-score computes them without stemming."""

import re
from collections import Counter


def rouge(answer, reference):
    """The three scores of an answer, from 0 to 1."""
    ours, theirs = words_of(answer), words_of(reference)
    return {
        "rouge1": overlap(ours, theirs, 1),
        "rouge2": overlap(ours, theirs, 2),
        "rougeL": f1(longest_common(ours, theirs), len(ours), len(theirs)),
    }


def words_of(text):
    """Letters and digits of any script, in lower case."""
    return re.findall(r"[^\W_]+", text.lower())


def overlap(ours, theirs, size):
    """F1 of the n-grams of a size."""
    counts = [Counter(tuple(words[i : i + size]) for i in range(len(words) - size + 1)) for words in (ours, theirs)]
    return f1((counts[0] & counts[1]).total(), counts[0].total(), counts[1].total())


def longest_common(ours, theirs):
    """Length of the longest common subsequence."""
    row = [0] * (len(theirs) + 1)
    for word in ours:
        before = 0
        for place, other in enumerate(theirs, 1):
            before, row[place] = (row[place], (before + 1 if word == other else max(row[place], row[place - 1])))
    return row[-1]


def f1(common, ours, theirs):
    """Harmonic mean of precision and recall."""
    return 2 * common / (ours + theirs) if common else 0.0
