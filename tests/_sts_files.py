"""A small SentEval directory of made-up pairs, every file of the seven tasks in it."""

from pathlib import Path

SUBSETS = {
    "sts12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "sts13": ("FNWN", "headlines", "OnWN"),
    "sts14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "sts15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "sts16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
GLUE_HEADER = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"
ANIMALS = ("cat", "dog", "owl", "hen", "cow", "pig", "ant")


def pairs(subset, n):
    """Return n made-up pairs of a subset with their scores, falling with what the sentences share."""
    made = []
    for i in range(n):
        words = [f"the {ANIMALS[(i + k) % len(ANIMALS)]} {k}" for k in range(5)]
        other = words[: 5 - i % 5] + [f"no {ANIMALS[(i + k) % len(ANIMALS)]} {k + i}" for k in range(i % 5)]
        made.append((f"{subset} {' '.join(words)}", f"{subset} {' '.join(other)}", 5.0 - i % 5))
    return made


def write(path, lines, end="\n"):
    """Write lines to a file, making its directories."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def write_semeval(directory, subset, made, prefix="STS"):
    """Write a SemEval file of sentences and one of scores; a score of None is left empty."""
    write(Path(directory, f"{prefix}.input.{subset}.txt"), [f"{a}\t{b}" for a, b, _ in made])
    write(Path(directory, f"{prefix}.gs.{subset}.txt"), ["" if s is None else f"{s}" for *_, s in made])


def stsb_lines(made, split):
    return [f"main-news\tpaper\t{split}\t{i:04}\t{s}\t{a}\t{b}" for i, (a, b, s) in enumerate(made)]


def sick_lines(made):
    return [SICK_HEADER, *(f"{i}\t{a}\t{b}\t{max(s, 1)}\tNEUTRAL" for i, (a, b, s) in enumerate(made))]


def glue_lines(made):
    rows = [
        f"{i}\tmain-news\tpaper\t2012\t{i}\tnone\tnone\t{a}\t{b}\t{s}" for i, (a, b, s) in enumerate(made)
    ]
    return [GLUE_HEADER, *rows]


def write_senteval(directory, n=6):
    """Write all seven tasks with n pairs in each file, one more in each next subset; return the directory."""
    directory = Path(directory)
    for task, subsets in SUBSETS.items():
        for extra, subset in enumerate(subsets):
            write_semeval(directory / f"STS/STS{task[3:]}-en-test", subset, pairs(subset, n + extra))
    for split in ("train", "dev", "test"):
        write(directory / f"STS/STSBenchmark/sts-{split}.csv", stsb_lines(pairs(split, n), split))
    for name in ("train", "trial", "test_annotated"):
        write(directory / f"SICK/SICK_{name}.txt", sick_lines(pairs(name, n)))
    return directory
