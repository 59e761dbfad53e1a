"""What Hugging Face's libraries show while something loads."""

import logging
import threading

import pytest

from skflow.embedders import BertEmbedder
from skflow.embedders._silence import quiet


def settings():
    from huggingface_hub import utils as hub
    from transformers.utils import logging as transformers

    return (
        transformers.get_verbosity(),
        transformers.is_progress_bar_enabled(),
        hub.are_progress_bars_disabled(),
        logging.getLogger("sentence_transformers").level,
    )


def test_restored_after_threads_have_loaded_and_embedded(tiny_bert, tiny, declare):
    before = settings()
    paths = [tiny_bert, tiny("electra"), declare()]  # of which two stay in memory
    errors = []

    def work(number):
        try:
            for i in range(20):
                BertEmbedder(paths[(number + i) % 3]).transform(["the cat", f"a dog {i}"])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert settings() == before


def test_the_last_to_leave_restores():
    before = settings()
    first, second = quiet(), quiet()
    first.__enter__()
    silent = settings()
    assert silent != before
    second.__enter__()
    first.__exit__(None, None, None)
    assert settings() == silent
    second.__exit__(None, None, None)
    assert settings() == before


def test_restored_after_an_error():
    before = settings()
    with pytest.raises(KeyError), quiet():
        raise KeyError
    assert settings() == before


def test_computing_silences_nothing(tiny_bert, monkeypatch):
    import transformers

    embedder = BertEmbedder(tiny_bert).fit(["a"])
    before, seen = settings(), []
    original = transformers.BertModel.forward

    def forward(self, *args, **kwargs):
        seen.append(settings())
        return original(self, *args, **kwargs)

    monkeypatch.setattr(transformers.BertModel, "forward", forward)
    embedder.transform(["the cat"])
    assert set(seen) == {before}
