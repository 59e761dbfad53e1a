"""Sentence pairs with a similarity score, and what was published about them."""

from ._fetch import fetch_sts
from ._home import get_data_home
from ._mini import load_mini_sts
from ._published import load_published_sts
from ._sts import load_sts

__all__ = ["fetch_sts", "get_data_home", "load_mini_sts", "load_published_sts", "load_sts"]
