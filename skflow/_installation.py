"""Another distribution owns the name skflow on PyPI, and installs into the same folder."""

from pathlib import Path

# Modules of skflow 0.1.0 (2016, TensorFlow) that this package does not have.
FOREIGN = ("trainer.py", "models.py", "estimators/dnn.py")


def check_installation(package=Path(__file__).parent):
    """Raise ImportError where files of the other distribution lie among ours."""
    found = [name for name in FOREIGN if (package / name).exists()]
    if found:
        raise ImportError(
            f"{str(package)!r} holds {', '.join(found)} of another project, the TensorFlow package skflow. "
            "Remove both and install this one again: pip uninstall skflow scikit-bertflow && "
            "pip install scikit-bertflow"
        )


check_installation()
