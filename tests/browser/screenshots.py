"""``python tests/browser/screenshots.py``: the pictures of the report in docs/images."""

import tempfile
from pathlib import Path

from browsing import browser, picture, prefer, resize, settle
from example_models import classification, regression

from kstonet.report import write_report

FOLDER = Path(__file__).parents[2] / "docs" / "images"


def main():
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        for name, make in (("regression", regression), ("classification", classification)):
            model, X, y, given = make()
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
