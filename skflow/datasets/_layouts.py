"""Where the files of a task are: SentEval's directories, the organizers' own, GLUE's, and the hub's."""

from dataclasses import dataclass

TASKS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")

# Every file that makes up a task, in SentEval's order: the checksum of its first pair
# (`_parsing.fingerprint`) and its number of pairs, annotated or not.
OFFICIAL = {
    "sts12": {
        "MSRpar": ("55111801", 750),
        "MSRvid": ("44c32875", 750),
        "SMTeuroparl": ("e5afd2f9", 459),
        "surprise.OnWN": ("d68066a4", 750),
        "surprise.SMTnews": ("3f73c68b", 399),
    },
    "sts13": {
        "FNWN": ("19f7e2c6", 189),
        "headlines": ("1a43a39c", 750),
        "OnWN": ("e11409d5", 561),
    },
    "sts14": {
        "deft-forum": ("482d244d", 450),
        "deft-news": ("cfbacec1", 300),
        "headlines": ("7f0d0534", 750),
        "images": ("3e3b0f14", 750),
        "OnWN": ("bf7523e9", 750),
        "tweet-news": ("630cf9ad", 750),
    },
    "sts15": {
        "answers-forums": ("e2cf29c4", 375),
        "answers-students": ("4c0945c5", 750),
        "belief": ("2c424bf3", 375),
        "headlines": ("b650694b", 750),
        "images": ("a0e316e9", 750),
    },
    "sts16": {
        "answer-answer": ("39a3892d", 1572),
        "headlines": ("6e37588d", 1498),
        "plagiarism": ("44e13e60", 1271),
        "postediting": ("8050b465", 3287),
        "question-question": ("a55021e3", 1555),
    },
    "stsb": {
        "train": ("414cf690", 5749),
        "dev": ("44c32875", 1500),
        "test": ("d7e7eef6", 1379),
    },
    "sickr": {
        "train": ("ad86bd9d", 4500),
        "dev": ("f072dce8", 500),
        "test": ("1fe600d3", 4927),
    },
}

# What the organizers' archives of STS 2012 to 2016 unpack to.
_SEMEVAL_DIRECTORIES = {
    "sts12": "test-gold",
    "sts13": "test-gs",
    "sts14": "sts-en-test-gs-2014",
    "sts15": "test_evaluation_task2a",
    "sts16": "sts2016-english-with-gs-v1.0",
}
_SICK_COLUMNS = ("sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")
# Of the one file that the authors of SICK publish; its last column tells the splits apart.
_WHOLE_SICK_COLUMNS = ("sentence_A", "sentence_B", "relatedness_score", "entailment_label", "SemEval_set")
SICK_SETS = {"train": "TRAIN", "dev": "TRIAL", "test": "TEST"}
_GLUE_COLUMNS = ("sentence1", "sentence2", "score", "genre")

_HUB_DIRECTORIES = ("stsb", "STS-B", "glue/stsb", "STSBenchmark", "stsbenchmark", "stsbenchmark-sts")
_HUB_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_SHARD = "{}-00000-of-00001.parquet"


@dataclass(frozen=True)
class Layout:
    """One way in which the files of a task are named.

    Parameters
    ----------
    files : dict of str to tuple of str
        Subset (STS 2012 to 2016) or split (STS-B, SICK) -> names of its file, or of its two files, one of
        sentences and one of gold scores.
    directories : tuple of str
        Where they may be, the most specific first.
    columns : tuple of str, default=()
        Where the files have a header line: its names of sentence 1, sentence 2, score and label, and of the
        split where one file has all.
    is_of_hub : bool, default=False
        Whether the files are tables as data sets of the Hugging Face hub hold them.
    """

    files: dict
    directories: tuple
    columns: tuple = ()
    is_of_hub: bool = False

    def n_in(self, directory):
        """Return how many of the files are in a directory."""
        return sum((directory / name).is_file() for names in self.files.values() for name in names)


def layouts(task):
    """Return the layouts that a task's files are known in."""
    if task == "stsb":
        return (
            Layout(
                {split: (f"sts-{split}.csv",) for split in ("train", "dev", "test")},
                ("STS/STSBenchmark", "STSBenchmark", "STS/stsbenchmark", "stsbenchmark", "stsb"),
            ),
            # GLUE keeps the scores of its test split to itself.
            Layout(
                {split: (f"{split}.tsv",) for split in ("train", "dev")},
                ("STS-B", "glue_data/STS-B", "GLUE/STS-B", "glue/STS-B", "stsb"),
                _GLUE_COLUMNS,
            ),
            *(
                Layout(
                    {split: (pattern.format(name),) for split, name in splits.items()},
                    _HUB_DIRECTORIES,
                    is_of_hub=True,
                )
                for place in ("", "data/")
                for pattern in (place + "{}.csv", place + "{}.parquet", place + _SHARD)
                for splits in (_HUB_SPLITS, {**_HUB_SPLITS, "dev": "dev"})
            ),
        )
    if task == "sickr":
        files = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
        return (
            Layout({split: (name,) for split, name in files.items()}, ("SICK", "sick"), _SICK_COLUMNS),
            Layout(dict.fromkeys(SICK_SETS, ("SICK.txt",)), ("SICK", "sick"), _WHOLE_SICK_COLUMNS),
        )
    year = task.removeprefix("sts")
    archive = _SEMEVAL_DIRECTORIES[task]
    names = (f"STS{year}-en-test", f"STS20{year}-en-test/{archive}", f"STS20{year}-en-test", archive)
    names += (f"STS20{year}", f"STS{year}", task)
    directories = (*(f"STS/{name}" for name in names), *names)
    return tuple(
        Layout({s: (f"{prefix}.input.{s}.txt", f"{prefix}.gs.{s}.txt") for s in OFFICIAL[task]}, directories)
        for prefix in ("STS", f"STS20{year}")
    )


def find_files(task, home):
    """Return the directory and the layout of a task's files under `home`, or None.

    `home` is a SentEval directory, one that `fetch_sts` filled, one that holds the organizers' or GLUE's
    directories, or such a directory itself. A layout counts as found where at least one of its files is
    there, so that a missing file is an error and not a smaller task.
    """
    for place in (False, True):  # file names alone do not tell the years apart: `home` itself comes last
        for layout in layouts(task):
            for base in (home, home / "senteval"):
                for name in (".",) if place else layout.directories:
                    if layout.n_in(base / name):
                        # Several layouts name some files alike: the one with most of them is meant.
                        return base / name, max(layouts(task), key=lambda one: one.n_in(base / name))
    return None
