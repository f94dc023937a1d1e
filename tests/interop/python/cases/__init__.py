"""The cases, by subject. A case is a function of a Scene; what fails raises."""


def case(*needs):
    """Marks a case, and names what it needs: of the client (SyncApi.offers), or `openssl`."""

    def mark(function):
        function.needs = needs
        return function

    return mark


def raised_by(function, *args):
    """The exception that a call ends with. Not ending with one is a failure."""
    try:
        outcome = function(*args)
    except Exception as exception:
        return exception
    raise AssertionError(f"returned {outcome!r}, and should have raised")
