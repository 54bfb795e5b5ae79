"""``python tests/browser/screenshots.py``: the pictures of the report in docs/images."""

import tempfile
from pathlib import Path

from browsing import browser, picture, prefer, resize, settle
from example_models import decisions, prices, reported

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.report import write_report

FOLDER = Path(__file__).parents[2] / "docs" / "images"


def main():
    FOLDER.mkdir(exist_ok=True)
    models = {
        "regression": (KStoNetRegressor(random_state=0), *prices(), 700, "House prices"),
        "classification": (KStoNetClassifier(random_state=0), *decisions(), 700, "What owners do"),
    }
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        for name, (model, frame, target, n_train, title) in models.items():
            model, X, y, given = reported(model, frame, target, n_train, title=title)
            page = Path(folder) / f"{name}.html"
            write_report(model, X, y, page, **given)
            for kind, width, height, scheme in (
                ("light", 1280, 1600, "light"),
                ("dark", 1280, 1600, "dark"),
                ("narrow", 390, 1700, "light"),
            ):
                resize(driver, width)
                prefer(driver, scheme)
                driver.get(page.as_uri())
                settle(driver)
                picture(driver, FOLDER / f"report-{name}-{kind}.png", height=height)


if __name__ == "__main__":
    main()
