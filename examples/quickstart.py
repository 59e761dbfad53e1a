"""Run ``python -m skflow.examples.quickstart``, which needs no copy of the repository."""

import sys

from skflow.examples.quickstart import main

if __name__ == "__main__":
    sys.exit(main())
