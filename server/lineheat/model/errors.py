"""What Lineheat says when it cannot do a thing."""


class LineheatError(Exception):
    """One line for people: what happened, to which thing, what to do.

    'slug' names the heading in the README's "Messages" that says more.
    """

    def __init__(self, slug: str, message: str) -> None:
        super().__init__(" ".join(message.split()))
        self.slug = slug
