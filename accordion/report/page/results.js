// What was compared: the table, its sentence, and how results came about.

const results = {metric: null, abscissa: "epoch", hidden: new Set()};  // Settings by their numbers.

function ratioText(ratio) {
  return isNumber(ratio) ? ` (${digits(ratio, ratio < 10 ? 3 : 2)}×)` : "";
}

// "−0.28 ± 0.49"
function differenceText(mean, student95, text) {
  if (!isNumber(mean)) return "–";
  return (mean < 0 ? "−" : "+") + text(Math.abs(mean)) + (isNumber(student95) ? " ± " + text(student95) : "");
}

function comparisonTable(data) {
  const rows = data.comparison.rows, accuracy = rows[0].metric === "test_accuracy", scale = accuracy ? 100 : 1;
  const value = (number) => (number * scale).toFixed(2);
  const columns = ["Setting", accuracy ? "Test accuracy, %" : "Test perplexity", "95 % interval", "Paired difference", "Training loss",
                   "Sent per worker", "Extra", "Time"];
  const cells = (row) => {
    if (!row.runs) return ["no run finished", ...columns.slice(2).map(() => "")];
    const loss = (number) => number.toFixed(3);
    return [value(row.mean), isNumber(row.student95) ? "± " + value(row.student95) : "–",
            differenceText(row.paired_difference, row.paired_student95, value),
            isNumber(row.train_loss) ? [loss(row.train_loss), isNumber(row.train_loss_difference)
              ? element("small", {}, ` (${differenceText(row.train_loss_difference, row.train_loss_student95, loss)})`) : ""] : "–",
            bytes(row.wire_bytes) + ratioText(row.wire_ratio), isNumber(row.extra_share) ? row.extra_share.toFixed(2) : "–",
            seconds(row.seconds) + ratioText(row.seconds_ratio)];
  };
  const extra = rows.some((row) => isNumber(row.extra_share));
  return [element("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Comparison"}, element("table", {id: "comparison"},
    element("thead", {}, element("tr", {}, columns.map((name) => element("th", {scope: "col"}, name)))),
    element("tbody", {}, rows.map((row, at) => element("tr", {},
      element("td", {}, swatch(settingColor(at)), row.setting, element("small", {}, row.runs < row.seeds.length
        ? ` (${row.runs} of ${row.seeds.length} runs)` : ` (${plural(row.runs, "run")})`)),
      cells(row).map((content) => element("td", {}, content))))))),
    extra ? element("p", {class: "lead"}, "Extra: of what the first setting sends beyond the one that sends least, the share that this one sends.") : ""];
}

// The sentence has a clause for each setting but the first.
function comparisonSentence(data) {
  const sentence = data.comparison.sentence;
  if (!sentence) return "";
  const names = data.comparison.rows.slice(1).map((row) => row.setting);
  let rest = sentence.replace(/\.$/, "");
  return element("ul", {class: "takeaway", id: "sentence"}, names.map((name, at) => {
    const next = at + 1 < names.length ? rest.indexOf("; " + names[at + 1] + ": ") : -1;
    const clause = next < 0 ? rest : rest.slice(0, next);
    rest = next < 0 ? "" : rest.slice(next + 2);
    return element("li", {}, element("b", {}, name), clause.slice(name.length), ".");
  }));
}

// "Test accuracy: mild 83.51 %, strong 78.24 %"
function resultTitle(series, metric) {
  const ends = series.filter((each) => each.points.length).map((each) => {
    const last = METRICS[metric].text(each.points[each.points.length - 1].mean);
    return series.length > 1 ? `${each.name} ${last}` : last;
  });
  return METRICS[metric].name + ": " + ends.slice(0, 6).join(", ") + (ends.length > 6 ? ", …" : "") + " at the end";
}

function resultView(data, redraw) {
  const metrics = metricsOf(data);
  if (!metrics.length) return {title: "Results", missing: "No epoch has been recorded yet, so there is no result to show."};
  const metric = metrics.includes(results.metric) ? results.metric : metrics[0], kind = results.abscissa;
  const series = resultSeries(data, metric, kind), seeds = series.some((each) => each.points.some((point) => point.runs > 1));
  const {scale, unit} = METRICS[metric], shown = series.filter((each) => !results.hidden.has(each.setting));
  const count = Math.max(1, ...series.map((each) => (each.points.at(-1)?.epoch ?? 0) + 1));
  const choose = (key) => (value) => { results[key] = value; redraw(); };
  const tested = metrics.some((name) => name.startsWith("test_"));
  return {
    title: resultTitle(series, metric),
    takeaway: `Over ${ABSCISSAS[kind].axis}.` + (seeds ? " Lines are means over seeds, bands reach from the lowest seed to the highest." : ""),
    missing: tested ? "" : "These records have no test results: the training loss is what there is to show.",
    controls: [choices("Over", Object.fromEntries(Object.entries(ABSCISSAS).map(([key, each]) => [key, each.name])), kind, choose("abscissa")),
               metrics.length > 1 ? choices("Show", Object.fromEntries(metrics.map((name) => [name, METRICS[name].name])), metric, choose("metric")) : ""],
    legend: series.length < 2 ? [] : series.map((each) => element("button", {
      type: "button", "aria-pressed": String(!results.hidden.has(each.setting)), "data-choice": "setting-" + each.setting,
      onclick: () => { results.hidden.has(each.setting) ? results.hidden.delete(each.setting) : results.hidden.add(each.setting); redraw(); },
    }, swatch(settingColor(each.setting)), each.name)),
    height: 380,
    option: {
      grid: {left: 64, right: 34, top: 18, bottom: count > 40 ? 74 : 50},
      xAxis: axisStyle({type: "value", name: ABSCISSAS[kind].axis, min: kind === "epoch" ? 1 : 0, minInterval: kind === "epoch" ? 1 : 0,
                        max: kind === "epoch" ? Math.max(2, count) : null, splitLine: {show: false}, axisLabel: {...axisStyle().axisLabel, formatter: ABSCISSAS[kind].text}}),
      yAxis: axisStyle({type: "value", scale: true, axisLabel: {...axisStyle().axisLabel, formatter: (value) => digits(value, 4) + (unit ? " " + unit : "")}}),
      dataZoom: zoom(count),
      tooltip: {trigger: "axis", formatter: (items) => resultTip(shown, items, metric, kind)},
      series: shown.flatMap((each) => [...(seeds ? [bandOf(each, scale)] : []), lineOf(each, scale, count)]),
    },
    table: {columns: ["setting", "epoch", ABSCISSAS[kind].axis, metric + " mean", "lowest", "highest", "runs"],
            rows: series.flatMap((each) => each.points.map((point) => [each.name, point.epoch, point.x, point.mean, point.low, point.high, point.runs]))},
  };
}

function lineOf(each, scale, count) {
  return {id: "line-" + each.setting, name: each.name, type: "line", z: 3, symbol: "circle", symbolSize: 5, showSymbol: count <= 25,
          color: settingColor(each.setting), lineStyle: {width: 2.2}, emphasis: {disabled: true},
          data: each.points.map((point) => [point.x, point.mean * scale])};
}

// All of a band is one shape, drawn with its first point.
function bandOf(each, scale) {
  const points = each.points;
  return {id: "band-" + each.setting, name: each.name, type: "custom", z: 2, silent: true, clip: true, encode: {x: 0, y: [1, 2], tooltip: []},
          data: points.map((point) => [point.x, point.low * scale, point.high * scale]),
          renderItem: (params, api) => {
            if (params.dataIndex !== 0) return null;
            const corner = (point, side) => api.coord([point.x, point[side] * scale]);
            return {type: "polygon", shape: {points: [...points.map((point) => corner(point, "high")), ...points.map((point) => corner(point, "low")).reverse()]},
                    style: {fill: settingColor(each.setting), opacity: 0.16}};
          }};
}

function resultTip(shown, items, metric, kind) {
  const x = items[0]?.axisValue;
  const rows = [];
  for (const each of shown) {
    const point = each.points.reduce((best, next) => (!best || Math.abs(next.x - x) < Math.abs(best.x - x) ? next : best), null);
    if (!point) continue;
    const range = point.runs > 1 ? ` (${METRICS[metric].text(point.low)} to ${METRICS[metric].text(point.high)})` : "";
    rows.push([each.name + (kind === "epoch" ? "" : ` at ${ABSCISSAS[kind].text(point.x)}`), METRICS[metric].text(point.mean) + range, settingColor(each.setting)]);
  }
  return tip((kind === "epoch" ? "After epoch " : "About ") + ABSCISSAS[kind].text(x), rows);
}
