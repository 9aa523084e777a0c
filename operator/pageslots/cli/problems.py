"""What a user can put right."""


class UsageProblem(Exception):  # noqa: N818 - what the user gave is the problem, told in sentences
    """Unusable input; one sentence each."""

    def __init__(self, *sentences: str) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences
