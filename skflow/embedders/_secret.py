"""Parameters that must not leak."""

import copy


class Secret(str):
    """A string that shows as asterisks and pickles as None.

    It compares equal to the string, and survives :func:`sklearn.base.clone` as it is.

    Examples
    --------
    >>> import pickle
    >>> from skflow.embedders._secret import Secret
    >>> token = Secret("hf_abc")
    >>> token
    '***'
    >>> token == "hf_abc", pickle.loads(pickle.dumps([token]))
    (True, [None])
    """

    def reveal(self):
        """Return the plain string."""
        return str.__str__(self)

    def __repr__(self):
        return "'***'"

    def __str__(self):
        return "***"

    def __format__(self, spec):
        return format("***", spec)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return nothing, ()


def nothing():
    """Return None: what a pickled :class:`Secret` becomes.

    ``type(None)`` would do for the pickler in C alone; joblib hashes with the one in Python.
    """
    return None


class SecretParameter:
    """Attribute of an estimator that keeps a string as a :class:`Secret`, other values as they are."""

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        try:
            return instance.__dict__[self._name]
        except KeyError:
            raise AttributeError(self._name) from None

    def __set__(self, instance, value):
        secret = isinstance(value, str) and not isinstance(value, Secret)
        instance.__dict__[self._name] = Secret(value) if secret else value


class KeepsSecrets:
    """Mixin of estimators whose state, in whatever format, has None in place of secrets.

    ``copy`` and ``deepcopy`` keep them. To be placed left of whatever makes the state.
    """

    def __getstate__(self):
        state = super().__getstate__()
        return {name: None if isinstance(value, Secret) else value for name, value in state.items()}

    def __copy__(self):
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        return new

    def __deepcopy__(self, memo):
        memo[id(self)] = new = type(self).__new__(type(self))
        vars(new).update(copy.deepcopy(vars(self), memo))
        return new
