"""
A report in one file
====================

:func:`kstonet.report.write_report` writes one HTML page about a fitted model and some rows: scores beside simpler models, the
coverage of intervals, the rows with the largest errors, feature effects, the training and warnings. It opens without a network
and can be sent by mail.
"""

# %%
# Prices of flats, as in :ref:`sphx_glr_auto_examples_plot_pipeline.py`.
import html
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder

from kstonet import KStoNetRegressor
from kstonet.report import write_report

# sphinx_gallery_thumbnail_path = "images/report-regression-light.png"

rng = np.random.default_rng(0)
flats = pd.DataFrame(
    {
        "area": rng.gamma(6.0, 15.0, size=500).round(1),
        "age": rng.integers(0, 90, size=500),
        "city": rng.choice(["Bern", "Genève", "Zürich"], size=500),
    }
)
per_square_metre = flats["city"].map({"Bern": 6.5, "Genève": 9.0, "Zürich": 10.5})
price = per_square_metre * flats["area"] * (1 - 0.004 * flats["age"]) + 35 * rng.normal(size=500)
price = price.rename("price, thousand francs")

columns = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
model = KStoNetRegressor(random_state=0).fit(columns.fit_transform(flats[:350]), price[:350])

# %%
# ``encode`` turns the table into the numbers of the model, so that the page shows the columns of the table. With ``X_train``
# and ``y_train`` the simpler models are trained on the same rows as the network.
path = Path(tempfile.mkdtemp()) / "flats.html"
write_report(
    model,
    flats[350:],
    price[350:],
    path,
    title="Prices of flats",
    encode=columns.transform,
    X_train=flats[:350],
    y_train=price[:350],
    dated=False,
)
print(f"{path.name}: {path.stat().st_size // 1000} kB")

# %%
# This is the page itself:


class Page:
    """An HTML file, shown in a frame where pages can be shown."""

    def __init__(self, path):
        self.text = path.read_text(encoding="utf-8")

    def _repr_html_(self):
        return f'<iframe class="report" title="the report" srcdoc="{html.escape(self.text)}"></iframe>'


Page(path)
