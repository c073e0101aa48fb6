// Layer by layer: gradient norms with critical regimes, the map of levels, bytes.

const layerChoice = {shown: "largest", log: "log", bytes: "largest"};
const FEW = 8;

// Those that are worth a line of their own: large ones, for they are what is compressed.
function largest(run, count = FEW) {
  const order = run.layers.map((layer, at) => at).sort((a, b) => run.layers[b].elements - run.layers[a].elements || a - b);
  return order.slice(0, count).sort((a, b) => a - b).map((at) => run.layers[at]);
}

function layersShown(run) {
  if (layerChoice.shown === "all") return run.layers;
  const one = run.layers.find((layer) => layer.name === layerChoice.shown);
  return one ? [one] : largest(run);
}

function layerPicker(run, redraw) {
  const picker = element("select", {"aria-label": "Layers shown", "data-choice": "layers", onchange: (event) => { layerChoice.shown = event.target.value; redraw(); }},
    element("option", {value: "largest"}, run.layers.length > FEW ? `${FEW} largest layers` : "all layers"),
    run.layers.length > FEW && run.layers.length <= 300 ? element("option", {value: "all"}, `all ${run.layers.length} layers`) : "",
    run.layers.map((layer) => element("option", {value: layer.name}, layer.name)));
  picker.value = layerChoice.shown;
  if (!picker.value) picker.value = "largest";
  return picker;
}

function normTitle(run, shares) {
  const touched = shares.filter((share) => share > 0).length;
  return "Gradient norms" + (run.critical_known ? `: critical in ${touched} of ${plural(shares.length, run.points.unit)}` : " of the layers");
}

function normView(run, redraw) {
  const layers = layersShown(run), shares = run.critical_known ? criticalShares(run, layers) : [], log = layerChoice.log === "log";
  const title = normTitle(run, shares);
  if (!layers.some((layer) => layer.norm.some(isNumber))) return {title: "Gradient norms", missing: "This record has no gradient norms: they are kept where a controller, or the record, asks for them."};
  const count = run.points.at.length, colour = (at) => (layers.length <= FEW ? settingColor(at) : style("c" + (at % 8)));
  const areas = stretches(shares).map(([from, to, share]) => [
    {xAxis: from - 0.5, itemStyle: {color: style("regime"), opacity: 0.08 + 0.22 * share}}, {xAxis: to + 0.5}]);
  const point = (layer) => layer.norm.map((norm, at) => [at, isNumber(norm) && (!log || norm > 0) ? norm : null]);
  return {
    title, takeaway: run.critical_known ? "Shaded are critical regimes: the darker, the more of the layers shown are in one." : "This run's controller names no critical regimes.",
    controls: [layerPicker(run, redraw), choices("Scale", {log: "logarithmic", linear: "linear"}, layerChoice.log, (key) => { layerChoice.log = key; redraw(); })],
    legend: layers.length > FEW ? [] : layers.map((layer, at) => element("span", {class: "entry"}, swatch(colour(at)), layer.name)),
    height: 360,
    option: {
      grid: {left: 64, right: 20, top: 14, bottom: count > 40 ? 74 : 50},
      xAxis: axisStyle({type: "value", name: run.points.unit, min: -0.5, max: count - 0.5, minInterval: 1, splitLine: {show: false},
                        axisLabel: {...axisStyle().axisLabel, formatter: (at) => (Number.isInteger(at) ? String(run.points.at[at] ?? "") : "")}}),
      yAxis: axisStyle({type: log ? "log" : "value", axisLabel: {...axisStyle().axisLabel, formatter: (value) => digits(value, 3)}}),
      dataZoom: zoom(count),
      tooltip: {trigger: "axis", formatter: (items) => {
        const at = Math.round(items[0]?.axisValue ?? 0);
        const rows = layers.slice(0, 14).map((layer, place) => [layer.name, digits(layer.norm[at], 4), colour(place)]);
        return tip(`${capital(run.points.unit)} ${run.points.at[at]}`, rows, layers.length > 14 ? `and ${layers.length - 14} more` : "");
      }},
      series: [...layers.map((layer, at) => ({id: "norm-" + at, name: layer.name, type: "line", color: colour(at), symbol: "circle", symbolSize: 4, showSymbol: count <= 25,
                lineStyle: {width: layers.length > FEW ? 1 : 1.8}, connectNulls: false, emphasis: {disabled: true}, data: point(layer)})),
               {id: "regimes", type: "line", data: [], silent: true, markArea: {silent: true, data: areas}}],
    },
    table: {columns: [run.points.unit, "layer", "norm", "critical"],
            rows: layers.flatMap((layer) => run.points.at.map((point, at) => [point, layer.name, layer.norm[at], criticalText(run.states[layer.state[at]])]))},
  };
}

const criticalText = (state) => (!state || state.critical === null ? "" : state.critical ? "yes" : "no");

// From deep to pale as less is sent.
function levelColors(kinds) {
  const levels = kinds.filter((kind) => kind.level !== undefined), colors = new Map();
  levels.forEach((kind, at) => colors.set(kind.key, levels.length < 2 ? style("mild") : mix(style("mild"), style("strong"), at / (levels.length - 1))));
  colors.set("dense", style("dense"));
  colors.set("plain", style("plain"));
  return colors;
}

function mix(from, to, share) {
  const part = (color, at) => parseInt(color.slice(1 + 2 * at, 3 + 2 * at), 16);
  return "#" + [0, 1, 2].map((at) => Math.round(part(from, at) * (1 - share) + part(to, at) * share).toString(16).padStart(2, "0")).join("");
}

function mapTitle(run, kinds) {
  const counts = new Map();
  let all = 0;
  for (const layer of run.layers) for (const state of layer.state) {
    const kind = kindOf(run.states[state]);
    if (!kind || kind.key === "plain") continue;
    counts.set(kind.key, (counts.get(kind.key) || 0) + 1);
    ++all;
  }
  if (!all) return "Levels: no layer was compressed";
  const shares = kinds.filter((kind) => counts.has(kind.key)).map((kind) => `${percent(counts.get(kind.key) / all)} ${kind.name}`);
  return "Levels: " + shares.slice(0, 3).join(", ") + (shares.length > 3 ? ", …" : "");
}

// Neighbouring points at which a layer was in the same state are one box: [first, last, layer, kind].
function boxesOf(run, place) {
  const boxes = [];
  run.layers.forEach((layer, y) => layer.state.forEach((state, x) => {
    const kind = kindOf(run.states[state]), last = boxes[boxes.length - 1];
    if (!kind) return;
    if (last && last[2] === y && last[1] === x - 1 && layer.state[x - 1] === state) last[1] = x;
    else boxes.push([x, x, y, place.get(kind.key)]);
  }));
  return boxes;
}

function drawBox(params, api, color, gap) {
  const [x, y] = api.coord([api.value(0), api.value(2)]), [end] = api.coord([api.value(1), api.value(2)]), [width, height] = api.size([1, 1]);
  const shape = echarts.graphic.clipRectByRect({x: x - width / 2, y: y - height / 2, width: end - x + width - gap, height: height - gap}, params.coordSys);
  return shape && {type: "rect", shape, style: {fill: color(api.value(3))}, emphasis: {style: {stroke: style("ink"), lineWidth: 1}}};
}

function mapView(run) {
  if (!run.layers.length || !run.points.at.length) return {title: "Levels", missing: "This record has no layers yet."};
  const kinds = kindsOf(run), colors = levelColors(kinds), place = new Map(kinds.map((kind, at) => [kind.key, at]));
  const boxes = boxesOf(run, place), fills = kinds.map((kind) => colors.get(kind.key));
  const rows = Math.min(run.layers.length, 62), long = Math.max(...run.layers.map((layer) => layer.name.length));
  const left = Math.min(innerWidth < 640 ? 110 : 220, 18 + 6.4 * long), many = run.layers.length > rows;
  return {
    title: mapTitle(run, kinds), takeaway: `What each layer sent in each ${run.points.unit}; the reason is shown under the pointer.`,
    legend: kinds.map((kind) => element("span", {class: "entry"}, swatch(colors.get(kind.key)), kind.name)),
    height: 84 + rows * (rows > 30 ? 11 : rows > 14 ? 17 : 24),
    option: {
      grid: {left, right: many ? 40 : 14, top: 8, bottom: 48},
      xAxis: axisStyle({type: "category", name: run.points.unit, data: run.points.at.map(String), splitLine: {show: false}, splitArea: {show: false}}),
      yAxis: axisStyle({type: "category", inverse: true, data: run.layers.map((layer) => layer.name), splitLine: {show: false},
                        axisLabel: {...axisStyle().axisLabel, fontSize: rows > 30 ? 9.5 : 11, width: left - 12, overflow: "truncate", interval: rows > 45 && !many ? "auto" : 0}}),
      dataZoom: [...zoom(run.points.at.length, 1e9),
                 ...(many ? [{id: "rows", type: "slider", yAxisIndex: 0, filterMode: "filter", startValue: 0, endValue: rows - 1, width: 14, right: 8, showDetail: false, brushSelect: false,
                              borderColor: style("line"), fillerColor: style("line"), dataBackground: {lineStyle: {opacity: 0}, areaStyle: {opacity: 0}}}] : [])],
      tooltip: {formatter: (item) => {
        const [from, to, y] = item.value, layer = run.layers[y], state = run.states[layer.state[from]], at = run.points.at;
        return tip(layer.name, [[capital(run.points.unit), from === to ? String(at[from]) : `${at[from]} to ${at[to]}`], ["Codec", state.codec],
                                ...(state.may !== undefined ? [["The controller's level", String(state.may)]] : [])], capital(state.reason) + ".");
      }},
      series: [{id: "levels", type: "custom", data: boxes, encode: {x: [0, 1], y: 2}, progressive: 0,
                renderItem: (params, api) => drawBox(params, api, (kind) => fills[kind], run.points.at.length > 80 || rows > 40 ? 0 : 1)}],
    },
    table: {columns: [run.points.unit, "layer", "level", "codec", "reason", "critical"],
            rows: run.layers.flatMap((layer) => run.points.at.map((point, at) => {
              const state = run.states[layer.state[at]];
              return [point, layer.name, state?.level ?? null, state?.codec ?? "", state?.reason ?? "", criticalText(state)];
            }))},
  };
}

function bytesView(run, redraw) {
  if (!run.bytes_known) return {title: "Bytes of each layer", missing: "This record does not count bytes by layer: an older version wrote it."};
  const all = run.layers.map((layer) => ({layer, sent: layer.bytes || 0, dense: denseBytes(run, layer)})).sort((a, b) => b.sent - a.sent);
  const total = sum(all.map((each) => each.sent)), dense = sum(all.map((each) => each.dense));
  const shown = layerChoice.bytes === "all" ? all : all.slice(0, 12);
  const share = (each) => (each.dense > 0 ? percent(each.sent / each.dense, each.sent / each.dense < 0.1 ? 1 : 0) : "");
  const long = Math.max(...shown.map((each) => each.layer.name.length), 4), left = Math.min(innerWidth < 640 ? 110 : 220, 18 + 6.6 * long);
  return {
    title: all.length && total > 0 ? `Bytes: ${all[0].layer.name} is ${percent(all[0].sent / total)} of what was sent` : "Bytes of each layer",
    takeaway: `${bytes(total)} in all from one worker, ${percent(total / dense, 1)} of the ${bytes(dense)} that plain gradients are.`,
    controls: all.length > 12 ? [choices("Show", {largest: "12 largest", ...(all.length <= 300 ? {all: "all " + all.length} : {})}, layerChoice.bytes, (key) => { layerChoice.bytes = key; redraw(); })] : [],
    legend: [["accent", "sent"], ["plain", "plain gradients"]].map(([color, name]) => element("span", {class: "entry"}, swatch(style(color)), name)),
    height: 60 + shown.length * 24,
    option: {
      grid: {left, right: 96, top: 6, bottom: 30},
      xAxis: axisStyle({type: "value", axisLabel: {...axisStyle().axisLabel, formatter: bytes}}),
      yAxis: axisStyle({type: "category", inverse: true, data: shown.map((each) => each.layer.name), splitLine: {show: false},
                        axisLabel: {...axisStyle().axisLabel, interval: 0, width: left - 12, overflow: "truncate"}}),
      tooltip: {trigger: "axis", axisPointer: {type: "shadow"}, formatter: (items) => {
        const each = shown[items[0].dataIndex];
        return tip(each.layer.name, [["Sent", bytes(each.sent)], ["Plain gradients", bytes(each.dense)], ["Share", share(each)]]);
      }},
      series: [{id: "dense", name: "plain gradients", type: "bar", barWidth: "64%", color: style("plain"), data: shown.map((each) => each.dense), silent: true,
                label: {show: true, position: "right", color: style("soft"), fontSize: 11.5, formatter: (item) => `${bytes(shown[item.dataIndex].sent)} · ${share(shown[item.dataIndex])}`}},
               {id: "sent", name: "sent", type: "bar", barWidth: "64%", barGap: "-100%", color: style("accent"), data: shown.map((each) => each.sent)}],
    },
    table: {columns: ["layer", "elements", "payload_bytes", "dense_bytes"], rows: all.map((each) => [each.layer.name, each.layer.elements, each.sent, each.dense])},
  };
}
