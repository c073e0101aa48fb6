// One figure: a title that says what is to be seen, controls, the chart, its numbers as a table and as a file.

const figures = new Map();
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const settingColor = (setting) => style("c" + (setting % 8));

// Named choices of which one holds, as buttons.
function choices(name, options, chosen, choose) {
  const buttons = Object.entries(options).map(([key, text]) =>
    element("button", {type: "button", "aria-pressed": String(key === chosen), "data-choice": key, onclick: () => choose(key)}, text));
  return element("span", {class: "group", role: "group", "aria-label": name}, element("span", {class: "name"}, name), buttons);
}

function swatch(color) {
  const box = element("span", {class: "swatch", "aria-hidden": "true"});
  box.style.background = color;
  return box;
}

function tip(title, rows, text) {
  return element("div", {class: "tip"}, element("b", {}, title),
                 rows.map(([name, value, color]) => element("div", {class: "row"},
                          element("span", {}, color ? swatch(color) : "", name), element("span", {}, value))),
                 text ? element("div", {}, text) : "");
}

function axisStyle(extra) {
  return {nameLocation: "middle", nameGap: 30, nameTextStyle: {color: style("soft"), fontSize: 12},
          axisLine: {lineStyle: {color: style("line")}}, axisTick: {show: false},
          axisLabel: {color: style("soft"), fontSize: 11.5, hideOverlap: true},
          splitLine: {lineStyle: {color: style("line")}}, ...extra};
}

function baseOption() {
  return {animation: false, textStyle: {fontFamily: getComputedStyle(document.body).fontFamily, color: style("ink")},
          aria: {enabled: false},
          tooltip: {confine: true, backgroundColor: style("card"), borderColor: style("line"), padding: [8, 12],
                    textStyle: {color: style("ink"), fontSize: 13}, extraCssText: "box-shadow: 0 4px 16px rgba(0,0,0,.14)"}};
}

// Wheel with Ctrl, pinch, and the keys below; a slider where there is much to look at.
function zoom(count, slider = 40, axis = "xAxisIndex", index = 0) {
  const all = [{id: "zoom", type: "inside", [axis]: index, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false,
                preventDefaultMouseMove: false}];
  if (count > slider)
    all.push({id: "slider", type: "slider", [axis]: index, filterMode: "none", height: 16, bottom: 4, showDetail: false, brushSelect: false,
              borderColor: style("line"), fillerColor: style("line"), handleStyle: {color: style("faint")},
              dataBackground: {lineStyle: {opacity: 0}, areaStyle: {opacity: 0}}});
  return all;
}

function zoomBy(chart, change) {
  const now = chart.getOption().dataZoom?.[0];
  if (!now) return;
  const [start, end] = change(now.start, now.end);
  chart.dispatchAction({type: "dataZoom", dataZoomIndex: 0, start: Math.max(0, start), end: Math.min(100, end)});
}

// As much of a chart in sight as there was of the one that it takes the place of. A slider shows what "zoom" does.
function zoomedAs(chart, zooms) {
  const before = new Map((chart?.getOption().dataZoom ?? []).map((each) => [each.id, each]));
  return (zooms ?? []).map((each) => {
    const last = before.get(each.id === "slider" ? "zoom" : each.id);
    if (!last) return each;
    return "endValue" in each ? {...each, startValue: last.startValue, endValue: last.endValue} : {...each, start: last.start, end: last.end};
  });
}

// What in a part of the page has the focus, as a selector that finds it again in what is drawn in its place.
function focusIn(part) {
  const at = document.activeElement;
  if (!part.contains(at)) return null;
  if (at.dataset.choice) return `[data-choice="${CSS.escape(at.dataset.choice)}"]`;
  return [".chart", ".csv", ".copy", "summary", ".scroll", ".wide", "#run"].find((selector) => at.matches(selector)) ?? null;
}

const focusOn = (part, selector) => selector && part.querySelector(selector)?.focus({preventScroll: true});

const KEYS = {
  "+": (from, to) => [from + (to - from) / 4, to - (to - from) / 4],
  "-": (from, to) => [from - (to - from) / 2, to + (to - from) / 2],
  ArrowLeft: (from, to) => [from - Math.min(from, (to - from) / 4), to - Math.min(from, (to - from) / 4)],
  ArrowRight: (from, to) => [from + Math.min(100 - to, (to - from) / 4), to + Math.min(100 - to, (to - from) / 4)],
  0: () => [0, 100],
};

const ZOOM_KEYS = "Keys: + and − zoom, the arrows move, 0 shows all.";

const SHOWN_ROWS = 400;

function fillTable(details, table) {
  if (!details.open || details.querySelector("table")) return;
  const text = table.rows.length ? table.rows[0].map((cell) => typeof cell === "string") : [];
  const cell = (value, at) => element("td", {class: text[at] ? "text" : null},
                                      value === null || value === undefined ? "" : typeof value === "number" ? digits(value, 6) : String(value));
  details.append(element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "numbers"},
    element("table", {}, element("thead", {}, element("tr", {}, table.columns.map((name) => element("th", {scope: "col"}, name)))),
            element("tbody", {}, table.rows.slice(0, SHOWN_ROWS).map((row) => element("tr", {}, row.map(cell)))))));
  if (table.rows.length > SHOWN_ROWS)
    details.append(element("p", {class: "lead"}, `The first ${SHOWN_ROWS} of ${table.rows.length} rows; the file has them all.`));
}

// `view` gives, whenever asked: title, takeaway, controls, legend, height, option, table, missing (why there is no chart).
function addFigure(parent, id, view) {
  const figure = element("figure", {id: "figure-" + id});
  parent.append(figure);
  const entry = {id, figure, chart: null, draw};
  figures.set(id, entry);
  draw();
  return entry;

  function draw() {
    const focused = focusIn(figure), open = figure.querySelector("details")?.open, scrolled = figure.querySelector(".scroll")?.scrollTop;
    const now = view(draw), zooms = zoomedAs(entry.chart, now.option?.dataZoom);
    entry.chart?.dispose();
    entry.chart = null;
    const caption = element("figcaption", {}, element("h3", {}, now.title), now.takeaway ? element("p", {}, now.takeaway) : "");
    figure.replaceChildren(caption);
    if (now.controls?.length) figure.append(element("div", {class: "controls"}, now.controls));
    if (now.missing) figure.append(element("p", {class: "note"}, now.missing));
    if (now.legend?.length) figure.append(element("div", {class: "legend"}, now.legend));
    if (now.option) {
      const box = element("div", {class: "chart", role: "img", tabindex: "0",
                                  "aria-label": now.title + ". " + (now.takeaway || "") + " The numbers are in the table below the chart." + (zooms.length ? " " + ZOOM_KEYS : "")});
      box.style.height = (now.height || 340) + "px";
      figure.append(box);
      entry.chart = echarts.init(box, null, {renderer: "canvas"});
      entry.chart.setOption({...baseOption(), ...now.option, dataZoom: zooms, tooltip: {...baseOption().tooltip, ...now.option.tooltip}});
      box.addEventListener("keydown", (event) => {
        if (!KEYS[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
        zoomBy(entry.chart, KEYS[event.key]);
        event.preventDefault();
      });
      now.ready?.(entry.chart);
    }
    if (now.table) {
      const details = element("details", {ontoggle: () => fillTable(details, now.table)}, element("summary", {}, "Numbers as a table"));
      figure.append(element("div", {class: "foot"}, details,
        element("button", {type: "button", class: "csv", "aria-label": "Download the numbers of: " + now.title,
                           onclick: () => download("accordion-" + id + ".csv", csvText(now.table))}, "CSV")));
      details.open = Boolean(open);
      fillTable(details, now.table);
      if (scrolled) figure.querySelector(".scroll").scrollTop = scrolled;
    }
    entry.table = now.table;
    focusOn(figure, focused);
  }
}

function eachChart(act) {
  for (const figure of figures.values()) if (figure.chart) act(figure.chart);
}
