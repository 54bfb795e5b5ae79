"""
A string kernel
===============

With ``kernel="precomputed"`` the network needs no features, only the similarity of every pair of objects. Here the objects are
strings, which are similar if they share many short substrings: the *spectrum kernel*.
"""

# %%
# Artificial binding sites. A sequence binds strongly if it contains GATA or TTGC, and more strongly with both.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from kstonet import KStoNetRegressor
from kstonet.metrics import coverage, mean_width

rng = np.random.default_rng(0)


def sequences(n):
    """Random sequences of 60 letters; some of the pieces are put in on purpose."""
    letters = rng.choice(list("ACGT"), size=(n, 60))
    for row in letters:
        for piece in rng.choice(["GATA", "TTGC"], size=rng.integers(0, 4)):
            start = rng.integers(0, 57)
            row[start : start + 4] = list(piece)
    return ["".join(row) for row in letters]


def strength(strings):
    """Binding strength: it saturates with the number of pieces."""
    return np.array([3 * np.tanh(0.6 * s.count("GATA") + 0.4 * s.count("TTGC")) for s in strings])


def draw(n):
    """Sequences, and their strength as it is measured."""
    strings = sequences(n)
    return strings, strength(strings) + 0.2 * rng.normal(size=n)


train, y_train = draw(300)
calibration, y_calibration = draw(100)
test, y_test = draw(300)

# %%
# The kernel: inner products of the counts of all substrings of four letters, normalised to length one. Intervals need the same
# k(x, x) for all strings, because that of a new string is not known.
counter = CountVectorizer(analyzer="char", ngram_range=(4, 4), lowercase=False).fit(train)


def spectrum(A, B):
    """k(a, b) for all pairs of strings."""
    a, b = counter.transform(A).toarray().astype(float), counter.transform(B).toarray().astype(float)
    return (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T


# %%
# ``fit`` takes the square matrix of the training strings, ``predict`` the values of new strings against them.
model = KStoNetRegressor(kernel="precomputed", tuning="none", C=1.0, max_iter=20, random_state=0)
model.fit(spectrum(train, train), y_train)
K_test = spectrum(test, train)
print(f"R² on 300 new strings: {model.score(K_test, y_test):.3f}")

# %%
# With this kernel every string is far from all others. Intervals that are calibrated on the training rows alone are then too
# narrow. Calibration on a hundred strings that were set aside corrects them.
for name in ("as trained", "calibrated"):
    if name == "calibrated":
        model.calibrate(spectrum(calibration, train), y_calibration)
    interval = model.predict_interval(K_test, 0.9)
    print(f"90 % intervals, {name}: cover {coverage(y_test, interval):.1%}, mean width {mean_width(interval):.2f}")

# %%
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
mean = model.predict(K_test)
pieces = np.array([s.count("GATA") + s.count("TTGC") for s in test])
ax.errorbar(mean, y_test, xerr=mean - interval[:, 0], fmt="none", ecolor="#DDDDDD", zorder=0)
points = ax.scatter(mean, y_test, c=pieces, cmap="viridis", s=18)
ax.axline((0, 0), slope=1, color="#444444", linestyle=":", linewidth=1)
figure.colorbar(points, label="pieces in the string", ticks=range(pieces.max() + 1))
ax.set(xlabel="predicted strength, with its 90 % interval", ylabel="observed strength")
plt.show()
