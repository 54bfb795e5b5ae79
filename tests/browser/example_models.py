"""Two models worth a report, on made-up data with categories: house prices, and what their owners do."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder

from kstonet import KStoNetClassifier, KStoNetRegressor

CATEGORIES = ["district", "heating", "garden"]


def houses(n, random_state):
    rng = np.random.default_rng(random_state)
    area = rng.gamma(12.0, 8.0, n).round(1)
    frame = pd.DataFrame(
        {
            "area": area,
            "age": rng.integers(0, 110, n),
            "rooms": np.clip((area / 24 + rng.normal(0, 0.6, n)).round(), 1, 9).astype(int),
            "distance": rng.gamma(2.0, 2.0, n).round(2),
            "district": rng.choice(["harbour", "old town", "north", "hills", "station"], n, p=[0.2, 0.15, 0.3, 0.15, 0.2]),
            "heating": rng.choice(["gas", "district", "heat pump"], n, p=[0.5, 0.3, 0.2]),
            "garden": rng.random(n) < 0.4,
        }
    )
    return frame, rng


def prices(n=1200, random_state=0):
    """Old and new houses are expensive, those in between are not; what a house can fetch has a floor and a ceiling."""
    frame, rng = houses(n, random_state)
    place = frame.district.map({"harbour": 2.4, "old town": 2.9, "north": 1.6, "hills": 3.2, "station": 1.9})
    worth = (frame.area - 96) / 19 + place - 3.75 + 3.6 * np.abs(frame.age / 110 - 0.5)
    extra = 60.0 * frame.garden + 80.0 * np.exp(-frame.distance / 2.0)
    return frame, (300.0 + 180.0 * np.tanh(worth) + extra + rng.normal(0.0, 22.0, n)).round(1).rename("price")


def decisions(n=1200, random_state=1):
    """Houses of middle age are renovated, above all with gas; small and large ones are sold."""
    frame, rng = houses(n, random_state)
    renovate = 3.0 - ((frame.age - 60) / 14) ** 2 + 2.0 * (frame.heating == "gas")
    sell = ((frame.area - 95) / 16) ** 2 - 3.0 + 2.0 * (frame.district == "hills")
    worth = np.column_stack([np.zeros(n), 2.0 * renovate, 2.0 * sell]) + rng.gumbel(size=(n, 3))
    return frame, pd.Series(np.array(["keep", "renovate", "sell"])[worth.argmax(axis=1)], name="decision")


def reported(model, frame, y, n_train, **kept):
    """Arguments of a report on the rows after the first ``n_train``, for a model fitted on those."""
    train, test = slice(0, n_train), slice(n_train, None)
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), CATEGORIES), remainder="passthrough").fit(frame)
    model.fit(encoder.transform(frame[train]), y[train])
    given = {"encode": encoder.transform, "X_train": frame[train], "y_train": y[train], "dated": False, **kept}
    return model, frame[test], y[test], given


def regression(n=1200, n_train=700, **settings):
    return reported(
        KStoNetRegressor(tuning="none", activation="tanh", C=3, **{"max_iter": 80, "random_state": 0} | settings),
        *prices(n),
        n_train,
        title="House prices",
    )


def classification(n=1200, n_train=700, **settings):
    model = KStoNetClassifier(tuning="none", activation="tanh", C=1, **{"max_iter": 80, "random_state": 0} | settings)
    return reported(model, *decisions(n), n_train, title="What owners do")
