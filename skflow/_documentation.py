"""Links from scikit-learn's HTML representation of an estimator to its page in this documentation."""

from importlib import metadata

_DISTRIBUTION = "scikit-bertflow"


class DocumentationLink:
    """Mixin of all estimators, to be placed left of scikit-learn's BaseEstimator."""

    _doc_link_module = "skflow"

    @property
    def _doc_link_template(self) -> str:
        try:
            urls = metadata.metadata(_DISTRIBUTION).get_all("Project-URL") or []
        except metadata.PackageNotFoundError:  # a source tree that is not installed
            urls = []
        address = dict(url.split(", ", 1) for url in urls).get("Documentation", "")
        return address + "/en/latest/generated/{estimator_module}.{estimator_name}.html"
