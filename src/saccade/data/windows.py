"""Windows over a long row of tokens, which overlap so that every predicted token has a past."""


def window_starts(count: int, length: int, stride: int) -> list[tuple[int, int]]:
    """Where the windows begin that together predict `count` tokens once, and the first token that each predicts.

    A window reads up to `length` tokens. All but the first predict their last `stride` tokens only: with
    stride < length each of these has a longer past.
    """
    if not 1 <= stride <= length:
        raise ValueError(f"a stride of 1 to {length} predicts every token of such windows, not {stride}")
    starts = [0, *range(stride, count - (length - stride), stride)] if count > 0 else []
    return [(start, start + length - stride if start else 0) for start in starts]
