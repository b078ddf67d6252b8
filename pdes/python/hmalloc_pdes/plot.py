"""Plots of sweeps, by matplotlib."""


def plot(frame, x, y, by=None, ax=None):
    """Draws y over x, a line for each value of `by`: the mean of the runs with the same x, and between the least and the
    most of them a band.  Returns the axes."""
    import matplotlib.pyplot as pyplot

    if ax is None:
        _, ax = pyplot.subplots()
    for name, part in frame.groupby(by) if by else [(None, frame)]:
        runs = part.groupby(x)[y]
        mean, least, most = runs.mean(), runs.min(), runs.max()
        [line] = ax.plot(mean.index, mean, marker="o", label=None if by is None else f"{by} {name}")
        if (least < most).any():
            ax.fill_between(mean.index, least, most, color=line.get_color(), alpha=0.2, linewidth=0)
    ax.set(xlabel=x, ylabel=y)
    if by:
        ax.legend()
    return ax
