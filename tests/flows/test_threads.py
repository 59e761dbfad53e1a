"""One thread a kernel, and back to as many as there were."""

import threading

import pytest
import torch

from skflow.flows._threads import for_each, one_thread


@pytest.fixture(autouse=True)
def two_threads():
    n_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    assert torch.get_num_threads() == 2
    torch.set_num_threads(n_threads)


def test_inside():
    with one_thread as n_threads:
        assert n_threads == 2
        assert torch.get_num_threads() == 1


def test_after_an_error():
    def fail(item):
        raise KeyError(item)

    with pytest.raises(KeyError):
        for_each(fail, [1, 2, 3])


def test_concurrent_uses_that_end_in_the_order_they_began():
    inside, may_leave = threading.Event(), threading.Event()

    def use():
        with one_thread:
            inside.set()
            may_leave.wait(10)

    thread = threading.Thread(target=use)
    with one_thread:
        thread.start()
        assert inside.wait(10)
    may_leave.set()
    thread.join()


@pytest.mark.parametrize("n_items", [0, 1, 5])
def test_every_item_once_on_one_thread_a_kernel(n_items):
    seen = []
    for_each(lambda item: seen.append((item, torch.get_num_threads())), range(n_items))
    assert sorted(seen) == [(item, 1) for item in range(n_items)]
