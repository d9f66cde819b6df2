"""Enough of pandas to draw a sample of rows as pandas does: from NumPy's global generator, or one of its own."""

import numpy


class DataFrame:
    def __init__(self, columns):
        self.columns = {name: numpy.asarray(values) for name, values in columns.items()}

    def __getattr__(self, name):
        return self.columns[name]

    def sample(self, frac, replace=False, random_state=None):
        draw = numpy.random if random_state is None else numpy.random.RandomState(random_state)
        length = len(next(iter(self.columns.values())))
        rows = draw.choice(length, size=int(length * frac), replace=replace)
        return DataFrame({name: values[rows] for name, values in self.columns.items()})
