"""The report in a real browser: drawn, alive, readable, silent on the network."""

import shutil

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("selenium", reason="needs selenium: pip install kstonet[browser]")

from browsing import browser, chromium, prefer, requests, resize, settle
from example_models import classification, regression
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from kstonet import KStoNetRegressor
from kstonet.report import write_report

pytestmark = pytest.mark.skipif(
    chromium() is None or shutil.which("chromedriver") is None,
    reason="needs Chromium and its driver: apt-get install chromium chromium-driver",
)
QUICK = {"max_iter": 12, "n_average": 4, "n_imputation_steps": 5}
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def driver():
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, make in (("regression", regression), ("classification", classification)):
        model, X, y, given = make(420, 220, **QUICK)
        write_report(model, X, y, folder / f"{name}.html", **given)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=[HOSTILE, f"{HOSTILE} too"], index=[f"{HOSTILE}{i}" for i in range(60)])
    y = pd.Series(rng.normal(size=60), name=HOSTILE, index=X.index)
    model = KStoNetRegressor(tuning="none", random_state=0, **QUICK).fit(X[:40], y[:40])
    write_report(model, X[40:], y[40:], folder / "hostile.html", title=HOSTILE)
    return folder


def opened(driver, path):
    """A fresh page on a wide screen in the light."""
    resize(driver, 1280)
    prefer(driver, "light")
    driver.get(path.as_uri())
    settle(driver)
    return driver


@pytest.fixture(params=["regression", "classification"])
def page(request, driver, pages):
    return opened(driver, pages / f"{request.param}.html")


def script(driver, text, *arguments):
    return driver.execute_script(text, *arguments)


def complaints(driver):
    return [entry["message"] for entry in driver.get_log("browser")]


def rows(driver):
    return driver.find_elements(By.CSS_SELECTOR, "#hardest tbody tr:not([hidden])")


def column(driver, name):
    """Values of a column of the table, of the rows that are shown."""
    return script(
        driver,
        """const table = document.querySelector("#hardest table");
        const k = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === arguments[0]);
        return [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[k])
          .map((cell) => cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value))""",
        name,
    )


@pytest.mark.parametrize("name", ["regression", "classification", "hostile"])
def test_nothing_is_asked_for_and_nothing_fails(driver, pages, name):
    path = pages / f"{name}.html"
    requests(driver), complaints(driver)  # what came before does not count
    opened(driver, path)
    assert [url for url in requests(driver) if not url.startswith("data:")] == [path.as_uri()]
    assert complaints(driver) == []


def test_hostile_names_are_shown_and_not_run(driver, pages):
    opened(driver, pages / "hostile.html")
    assert script(driver, "return window.hacked") is None
    assert script(driver, "return document.images.length") == 0
    assert driver.find_element(By.TAG_NAME, "h1").text == HOSTILE
    assert HOSTILE in script(driver, "return [...document.querySelectorAll('figcaption')].map((node) => node.textContent)")
    chart = driver.find_element(By.CSS_SELECTOR, "#scores svg")
    hover(driver, chart, "circle.point")
    assert HOSTILE in script(driver, "return document.getElementById('tooltip').textContent")
    assert script(driver, "return window.hacked") is None


def test_every_chart_is_drawn_inside_its_frame(page):
    for width in (1280, 390):
        resize(page, width)
        settle(page)
        charts = script(
            page,
            """return [...document.querySelectorAll("figure.chart")].map((figure) => {
              const svg = figure.querySelector("svg");
              const frame = svg?.getBoundingClientRect();
              const boxes = [...svg?.querySelectorAll(".mark") ?? []].map((mark) => mark.getBoundingClientRect());
              return {
                title: figure.textContent.slice(0, 60), alt: svg?.getAttribute("aria-label"), marks: boxes.length,
                outside: boxes.filter((box) => box.left < frame.left - 1 || box.right > frame.right + 1
                  || box.top < frame.top - 1 || box.bottom > frame.bottom + 1).length,
                nan: (svg?.outerHTML ?? "NaN").includes("NaN"),
                texts: [...svg?.querySelectorAll("text") ?? []].filter((text) => {
                  const box = text.getBoundingClientRect();
                  return box.left < frame.left - 1 || box.right > frame.right + 9;
                }).map((text) => text.textContent),
              };
            })""",
        )
        assert len(charts) >= 12
        for chart in charts:
            assert chart["marks"] > 0, chart
            assert chart["outside"] == 0, chart
            assert chart["alt"], chart
            assert not chart["nan"], chart
            assert chart["texts"] == [], chart


def hover(driver, chart, mark):
    script(driver, "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", chart)
    settle(driver)
    ActionChains(driver).move_to_element(chart.find_element(By.CSS_SELECTOR, mark)).perform()
    settle(driver)


def test_a_tooltip_answers_the_pointer_and_the_keys(page):
    tooltip = page.find_element(By.ID, "tooltip")
    chart = page.find_element(By.CSS_SELECTOR, "#effects svg")
    assert not tooltip.is_displayed()
    hover(page, chart, "rect.bar")
    assert "rise of the" in tooltip.text
    box = script(page, "const box = arguments[0].getBoundingClientRect(); return [box.left, box.right, box.top]", tooltip)
    assert box[0] >= 0
    assert box[1] <= 1280
    assert box[2] >= 0
    ActionChains(page).move_to_element(page.find_element(By.CSS_SELECTOR, "#effects h2")).perform()
    assert not tooltip.is_displayed()
    path = page.find_element(By.CSS_SELECTOR, "#training svg")
    script(page, "arguments[0].focus()", path)
    ActionChains(page).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT).perform()
    assert "iteration 2" in tooltip.text
    ActionChains(page).send_keys(Keys.END).perform()
    assert "iteration 12" in tooltip.text
    ActionChains(page).send_keys(Keys.ESCAPE).perform()
    assert not tooltip.is_displayed()


def test_the_table_sorts_by_numbers_and_by_texts(page):
    heads = page.find_elements(By.CSS_SELECTOR, "#hardest th button")
    for name in ("age", "district", "std. residual"):
        head = next(each for each in heads if each.get_attribute("textContent") == name)
        script(page, "arguments[0].click()", head)
        falling = column(page, name)
        assert falling == sorted(falling, reverse=True)
        script(page, "arguments[0].click()", head)
        assert column(page, name) == sorted(falling)
        assert head.find_element(By.XPATH, "..").get_attribute("aria-sort") == "ascending"
    assert len(page.find_elements(By.CSS_SELECTOR, "#hardest th[aria-sort='ascending']")) == 1


def test_the_table_filters_by_text_condition_and_switch(page):
    box = page.find_element(By.CSS_SELECTOR, "input.filter")
    every = len(rows(page))
    box.send_keys("harbour")
    assert 0 < len(rows(page)) < every
    assert set(column(page, "district")) == {"harbour"}
    assert page.find_element(By.CSS_SELECTOR, "output.shown").text == f"{len(rows(page))} of {every} rows"
    box.clear()
    box.send_keys("Age >= 60")
    ages = column(page, "age")
    assert 0 < len(ages) < every
    assert min(ages) >= 60
    box.clear()
    box.send_keys("district = hills")
    assert set(column(page, "district")) == {"hills"}
    box.clear()
    box.send_keys("colour = red")
    assert "No column has that name; the columns are" in page.find_element(By.CSS_SELECTOR, "output.shown").text
    box.clear()
    box.send_keys(Keys.SPACE, Keys.BACKSPACE)
    assert len(rows(page)) == every
    page.find_element(By.CSS_SELECTOR, "input.flagged").click()
    flagged = len(rows(page))
    assert 0 < flagged < every
    if "Confusion matrix" in page.page_source:
        assert all(a != b for a, b in zip(column(page, "observed"), column(page, "predicted"), strict=True))
    else:
        pairs = zip(column(page, "observed"), column(page, "95 % from"), column(page, "to"), strict=True)
        assert all(not low <= y <= high for y, low, high in pairs)


def test_the_theme_follows_the_reader_and_the_button(page):
    def paper():
        return script(page, "return getComputedStyle(document.body).backgroundColor")

    light = paper()
    button = page.find_element(By.ID, "theme")
    assert button.text == "Dark"
    button.click()
    dark = paper()
    assert dark != light
    assert button.text == "Light"
    button.click()
    assert paper() == light
    prefer(page, "dark")
    page.refresh()
    assert paper() == dark
    assert page.find_element(By.ID, "theme").text == "Light"
    prefer(page, "dark", media="print")
    assert paper() == light  # paper is white


def test_one_choice_changes_all_curves(driver, pages):
    opened(driver, pages / "classification.html")
    labels = "return [...document.querySelectorAll('#effects .grid svg')].map((svg) => svg.getAttribute('aria-label'))"
    assert all("probability of keep" in label for label in script(driver, labels))
    driver.find_element(By.CSS_SELECTOR, "select.chooser").send_keys("probability of sell")
    settle(driver)
    assert len(script(driver, labels)) == 6
    assert all("probability of sell" in label for label in script(driver, labels))


@pytest.mark.parametrize("width", [320, 390, 768, 1024])
def test_no_screen_scrolls_sideways(page, width):
    resize(page, width)
    settle(page)
    assert script(page, "return document.documentElement.scrollWidth") == width
    assert script(
        page, "return [...document.querySelectorAll('svg')].every((svg) => svg.getBoundingClientRect().right <= innerWidth)"
    )


def test_words_are_read_on_a_phone_and_wide_tables_show_that_they_scroll(page):
    resize(page, 390)
    settle(page)
    widths = "return [...document.querySelectorAll('#scores td:last-child:not(.number)')].map((cell) => cell.offsetWidth)"
    assert min(script(page, widths), default=999) >= 14 * 12  # many words of a size, not a word a line
    wide = "return [...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth)"
    shadows = f"{wide}.map((box) => getComputedStyle(box).backgroundImage)"
    assert len(script(page, shadows)) > 0
    assert all("gradient" in shadow for shadow in script(page, shadows))


CONTRAST = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const rgb = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const light = (colour) => {
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = rgb(colour).slice(0, 3).map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
const behind = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (rgb(colour)[3] === 255) return colour;
  }
};
const shown = [...document.querySelectorAll("body *")].filter((node) => node.checkVisibility()
  && [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()));
return shown.map((node) => {
  const style = getComputedStyle(node);
  return [ratio(node.closest("svg") ? style.fill : style.color, behind(node)), node.outerHTML.slice(0, 120)];
}).filter(([found]) => found < 4.5);
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out(page, scheme):
    prefer(page, scheme)
    page.refresh()
    settle(page)
    assert script(page, CONTRAST) == []


def test_the_page_can_be_read_without_seeing_it(page):
    headings = script(page, "return [...document.querySelectorAll('h1, h2, h3')].map((node) => node.tagName)")
    assert headings[0] == "H1"
    assert set(headings[1:]) == {"H2"}
    unnamed = """return [...document.querySelectorAll("button, input, select, section, nav, svg, [tabindex]")].filter((node) =>
      !(node.getAttribute("aria-label") || node.textContent.trim() || node.labels?.length
        || document.getElementById(node.getAttribute("aria-labelledby")))).length"""
    assert script(page, unnamed) == 0
    assert script(page, "return [...document.querySelectorAll('table')].every((table) => table.caption)")
    assert script(page, "return document.documentElement.lang") == "en"
    assert script(page, "return [...document.querySelectorAll('nav a')].every((a) => document.querySelector(a.hash))")


def test_it_prints(page):
    pdf = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(pdf) > 50_000
