// Sorting and filtering of the table of the hardest rows.

function cellValue(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
}

// Numbers by size, texts by the alphabet; what is no number comes last.
function compareCells(a, b) {
  if (typeof a === "number" && typeof b === "number") {
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return a - b;
  }
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function sortTable(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const before = heads[column].getAttribute("aria-sort");
  const way = before === "descending" ? "ascending" : "descending"; // the largest first: these rows are about extremes
  heads.forEach((head, k) => head.setAttribute("aria-sort", k === column ? way : "none"));
  const sign = way === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => sign * compareCells(cellValue(a, column), cellValue(b, column)));
  table.tBodies[0].append(...rows);
}

// "age > 40" filters by one column, null where there is none of that name; any other text is searched for in the whole row.
function filterOf(text, names) {
  const condition = text.match(/^\s*(.+?)\s*(<=|>=|=|<|>)\s*(\S.*?)\s*$/);
  const column = condition ? names.indexOf(condition[1].toLowerCase()) : -1;
  if (condition && column < 0) return null;
  if (column < 0) {
    const wanted = text.trim().toLowerCase();
    return (row) => row.textContent.toLowerCase().includes(wanted);
  }
  const [, , sign, given] = condition;
  return (row) => {
    const value = cellValue(row, column);
    const order = compareCells(typeof value === "number" ? value : value.toLowerCase(), typeof value === "number" ? Number(given) : given.toLowerCase());
    return { "<": order < 0, "<=": order <= 0, "=": order === 0, ">=": order >= 0, ">": order > 0 }[sign];
  };
}

function startTable(section) {
  const table = section.querySelector("table.sortable");
  const filter = section.querySelector("input.filter");
  const flagged = section.querySelector("input.flagged");
  const shown = section.querySelector("output.shown");
  const names = [...table.tHead.rows[0].cells].map((head) => head.textContent.toLowerCase());
  const refresh = () => {
    const found = filterOf(filter.value, names);
    const wanted = found ?? (() => false);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) row.hidden = !wanted(row) || Boolean(flagged?.checked && !("flag" in row.dataset));
    const left = rows.filter((row) => !row.hidden).length;
    if (!found) {
      shown.textContent = `No column has that name; the columns are ${names.join(", ")}.`;
      return;
    }
    shown.textContent = left === rows.length ? `${left} rows` : `${left} of ${rows.length} rows`;
  };
  filter.addEventListener("input", refresh);
  flagged?.addEventListener("change", refresh);
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => sortTable(table, column));
  });
}
