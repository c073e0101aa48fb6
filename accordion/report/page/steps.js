// Steps: their batch and learning rate, where their time went, and what the guard foresaw of it.

function changeText(values, text) {
  const known = values.filter(isNumber);
  if (!known.length) return "unknown";
  const low = Math.min(...known), high = Math.max(...known);
  return low === high ? text(low) : `${text(known[0])} to ${text(known[known.length - 1])}`;
}

function scheduleView(run) {
  const epochs = run.epochs;
  if (!epochs.epoch.length) return {title: "Learning rate and batch size", missing: "No epoch has been recorded yet."};
  const count = epochs.epoch.length, line = (id, name, values, axis, color) => ({
    id, name, type: "line", step: "end", xAxisIndex: axis, yAxisIndex: axis, symbol: "circle", symbolSize: 5, showSymbol: count <= 25, color: style(color),
    lineStyle: {width: 2}, emphasis: {disabled: true}, data: values.map((value, at) => [epochs.epoch[at], isNumber(value) ? value : null])});
  const x = (index, name) => axisStyle({gridIndex: index, type: "value", name, min: epochs.epoch[0], max: Math.max(epochs.epoch[count - 1], epochs.epoch[0] + 1), minInterval: 1, splitLine: {show: false}});
  const y = (index, name) => axisStyle({gridIndex: index, type: "value", name, nameGap: 48, min: 0, splitNumber: 3, axisLabel: {...axisStyle().axisLabel, formatter: (value) => digits(value, 3)}});
  return {
    title: `Learning rate ${changeText(epochs.lr, (value) => digits(value, 3))}, batch ${changeText(epochs.global_batch, String)}`,
    takeaway: "At each epoch's first step; the batch is that of all workers.",
    height: 380,
    option: {
      grid: [{left: 72, right: 20, top: 14, height: 130}, {left: 72, right: 20, top: 190, height: 130}],
      xAxis: [x(0, ""), x(1, "epoch")], yAxis: [y(0, "learning rate"), y(1, "batch")],
      axisPointer: {link: [{xAxisIndex: "all"}]},
      dataZoom: zoom(count, 1e9, "xAxisIndex", [0, 1]),
      tooltip: {trigger: "axis", formatter: (items) => {
        const at = epochs.epoch.indexOf(Math.round(items[0].axisValue));
        if (at < 0) return "";
        return tip("Epoch " + epochs.epoch[at], [["Learning rate", digits(epochs.lr[at], 4)], ["Batch", String(epochs.global_batch[at])]],
                   epochs.batch_reason[at] ? capital(epochs.batch_reason[at]) + "." : "");
      }},
      series: [line("lr", "learning rate", epochs.lr, 0, "c0"), line("batch", "batch", epochs.global_batch, 1, "c1")],
    },
    table: {columns: ["epoch", "lr", "schedule_lr", "global_batch", "batch_reason"],
            rows: epochs.epoch.map((epoch, at) => [epoch, epochs.lr[at], epochs.schedule_lr[at], epochs.global_batch[at], epochs.batch_reason[at] ?? ""])},
  };
}

const PARTS = {compute: "forward, backward, optimizer", input: "waiting for input", encode: "encoding", wire: "wire", decode: "decoding and between messages"};

function splitView(run) {
  const split = splitOf(run), known = split.filter(Boolean);
  if (!known.length) return {title: "Time of a step", missing: "This record has no times of the parts of a step: an older version wrote it, or no step followed another one."};
  const parts = Object.keys(PARTS).filter((part) => known.some((each) => each[part] > 0));
  const mean = (of) => sum(known.map(of)) / known.length, whole = (each) => sum(Object.keys(PARTS).map((part) => each[part]));
  const exposed = mean((each) => each.encode + each.wire + each.decode), hidden = run.epochs.hidden_share.filter(isNumber);
  return {
    title: `Time of a step: ${percent(exposed / mean(whole))} is exchange that nothing hides`,
    takeaway: `A step takes ${digits(mean(whole), 3)} ms in the mean, ${digits(exposed, 3)} ms of them after the last gradient is there. ` +
              (hidden.length ? `${percent(sum(hidden) / hidden.length)} of communication hides behind backward.` : ""),
    legend: parts.map((part) => element("span", {class: "entry"}, swatch(style(part)), PARTS[part])),
    height: 320,
    option: {
      grid: {left: 60, right: 20, top: 14, bottom: split.length > 40 ? 74 : 50},
      xAxis: axisStyle({type: "category", name: "epoch", data: run.epochs.epoch.map(String), splitLine: {show: false}}),
      yAxis: axisStyle({type: "value", axisLabel: {...axisStyle().axisLabel, formatter: (value) => digits(value, 3) + " ms"}}),
      dataZoom: zoom(split.length),
      tooltip: {trigger: "axis", axisPointer: {type: "shadow"}, formatter: (items) => {
        const each = split[items[0].dataIndex];
        if (!each) return "";
        return tip("Epoch " + each.epoch, [...parts.map((part) => [PARTS[part], digits(each[part], 3) + " ms", style(part)]), ["step", digits(whole(each), 3) + " ms"],
                                           ["on the wire in all, hidden or not", digits(each.busyWire, 3) + " ms"]]);
      }},
      series: parts.map((part) => ({id: part, name: PARTS[part], type: "bar", stack: "step", color: style(part), barMaxWidth: 34, emphasis: {disabled: true},
                                    data: split.map((each) => (each ? each[part] : null))})),
    },
    table: {columns: ["epoch", ...Object.keys(PARTS).map((part) => part + "_ms"), "busy_wire_ms"],
            rows: known.map((each) => [each.epoch, ...Object.keys(PARTS).map((part) => each[part]), each.busyWire])},
  };
}

function guardView(run) {
  const title = "The guard: what it foresaw of a step, and what came", events = run.guard;
  if (!events.length) return {title, missing: "This run had no guard: nobody changed levels for the sake of time (train --guard harmless)."};
  const told = events.filter((event) => isNumber(event.predicted_ms) || isNumber(event.measured_ms));
  const checks = events.filter((event) => event.event === "check" && isNumber(event.predicted_ms) && isNumber(event.measured_ms));
  const off = checks.map((event) => Math.abs(event.predicted_ms / event.measured_ms - 1)).sort((a, b) => a - b);
  const points = (key) => told.filter((event) => isNumber(event[key])).map((event) => [event.step, event[key], events.indexOf(event)]);
  const falls = events.filter((event) => event.event === "fall back").length;
  return {
    title, takeaway: `${plural(events.filter((event) => event.event === "decide").length, "decision")}; it went back to plain gradients ${falls === 1 ? "once" : falls + " times"}. ` +
                     (off.length ? `Steps that were held against a prediction differ from it by ${percent(off[Math.floor(off.length / 2)])} in the median.` : ""),
    legend: [["c0", "measured"], ["c1", "predicted"]].map(([color, name]) => element("span", {class: "entry"}, swatch(style(color)), name)),
    height: 320,
    option: {
      grid: {left: 60, right: 20, top: 14, bottom: 50},
      xAxis: axisStyle({type: "value", name: "step", min: 0, minInterval: 1, splitLine: {show: false}}),
      yAxis: axisStyle({type: "value", scale: true, axisLabel: {...axisStyle().axisLabel, formatter: (value) => digits(value, 3) + " ms"}}),
      dataZoom: zoom(told.length, 1e9),
      tooltip: {formatter: (item) => {
        const event = events[item.value[2]];
        return tip(`Step ${event.step}: ${event.event}`, [["Predicted", isNumber(event.predicted_ms) ? digits(event.predicted_ms, 4) + " ms" : "–"],
                   ["Measured", isNumber(event.measured_ms) ? digits(event.measured_ms, 4) + " ms" : "–"]], capital(event.reason) + ".");
      }},
      series: [{id: "measured", name: "measured", type: "scatter", symbolSize: 9, color: style("c0"), data: points("measured_ms")},
               {id: "predicted", name: "predicted", type: "scatter", symbol: "diamond", symbolSize: 11, color: style("c1"), data: points("predicted_ms")}],
    },
    table: {columns: ["epoch", "step", "event", "predicted_ms", "measured_ms", "reason"],
            rows: events.map((event) => [event.epoch, event.step, event.event, event.predicted_ms, event.measured_ms, event.reason])},
  };
}
