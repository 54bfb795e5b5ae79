// The page comes to life: charts, the table, the theme.

function startChart(figure) {
  const plot = figure.querySelector(".plot");
  const variants = JSON.parse(figure.querySelector("script").textContent);
  let drawn = 0;
  let spec = variants[0];
  const draw = () => {
    drawn = plot.clientWidth;
    drawChart(plot, spec);
  };
  figure.choose = (name) => {
    spec = variants.find((variant) => variant.name === name);
    draw();
  };
  draw();
  new ResizeObserver(() => {
    if (plot.clientWidth !== drawn) draw();
  }).observe(plot);
}

function startChooser(select) {
  const figures = select.closest(".control").nextElementSibling.querySelectorAll("figure.chart");
  select.addEventListener("change", () => figures.forEach((figure) => figure.choose(select.value)));
}

function startTheme(button) {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  dark.addEventListener("change", label);
  button.hidden = false;
  label();
}

document.querySelectorAll("figure.chart").forEach(startChart);
document.querySelectorAll("select.chooser").forEach(startChooser);
startTable(document.getElementById("hardest"));
startTheme(document.getElementById("theme"));
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => details.setAttribute("open", "")));
