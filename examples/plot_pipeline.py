"""
Mixed columns in a pipeline
===========================

A table with numbers, categories and missing values goes through a
:class:`~sklearn.compose.ColumnTransformer` into the network. The pipeline is cross-validated, searched and
stored as one object.
"""

# %%
# Prices of flats: the area, the age (sometimes unknown), the city and whether there is a balcony.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder

from kstonet import KStoNetRegressor
from kstonet.pipeline import make_pipeline
from kstonet.plotting import IntervalDisplay

rng = np.random.default_rng(0)
n = 400
flats = pd.DataFrame(
    {
        "area": rng.gamma(6.0, 15.0, size=n).round(1),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 90, size=n)),
        "city": rng.choice(["Bern", "Genève", "Zürich"], size=n),
        "balcony": rng.random(n) < 0.5,
    }
)
per_square_metre = flats["city"].map({"Bern": 6.5, "Genève": 9.0, "Zürich": 10.5})
price = per_square_metre * flats["area"] * (1 - 0.004 * flats["age"].fillna(45)) + 25 * flats["balcony"]
price = (price + 35 * rng.normal(size=n)).rename("price, thousand francs")
train, test, y_train, y_test = train_test_split(flats, price, random_state=0)

# %%
# The network standardises its inputs itself, so no scaler is needed.
columns = make_column_transformer(
    (SimpleImputer(strategy="median", add_indicator=True), ["area", "age"]),
    (OneHotEncoder(drop="if_binary"), ["city", "balcony"]),
)
pipeline = make_pipeline(columns, KStoNetRegressor(random_state=0))
pipeline.fit(train, y_train)
print(f"R² on {len(test)} new flats: {pipeline.score(test, y_test):.3f}")

# %%
# The pipelines of :mod:`kstonet.pipeline` are those of scikit-learn, with the intervals of their last step.
mean, std = pipeline.predict(test, return_std=True)
interval = pipeline.predict_interval(test, 0.95)
shown = test.head(5).assign(mean=mean[:5], std=std[:5], low=interval[:5, 0], high=interval[:5, 1], price=y_test.head(5))
print(shown.round(1).to_string(index=False))

# %%
# The displays accept pipelines.
display = IntervalDisplay.from_estimator(pipeline, test, y_test, coverage=(0.5, 0.95), sort="prediction", n_points=40)
display.figure_.set_size_inches(8, 4.5)
plt.show()
