// What charts show, from what the page was given: pure functions of the data.

const METRICS = {
  test_accuracy: {name: "Test accuracy", text: (value) => percent(value, 2), scale: 100, unit: "%", better: 1},
  test_perplexity: {name: "Test perplexity", text: (value) => digits(value, 4), scale: 1, unit: "", better: -1},
  test_loss: {name: "Test loss", text: (value) => digits(value, 4), scale: 1, unit: "", better: -1},
  train_loss: {name: "Training loss", text: (value) => digits(value, 4), scale: 1, unit: "", better: -1},
};

const ABSCISSAS = {
  epoch: {name: "Epochs", axis: "epochs trained", text: (value) => digits(value, 4)},
  data: {name: "Data sent", axis: "data sent by a worker", text: bytes},
  time: {name: "Time", axis: "time of training", text: seconds},
};

const metricsOf = (data) =>
  Object.keys(METRICS).filter((metric) => data.runs.some((run) => run.epochs[metric].some(isNumber)));

function running(values) {
  let total = 0;
  return values.map((value) => (total += isNumber(value) ? value : 0));
}

function abscissa(run, kind) {
  if (kind === "data") return running(run.epochs.wire_bytes);
  if (kind === "time") return running(run.epochs.seconds);
  return run.epochs.epoch.map((epoch) => epoch + 1);
}

// A setting's runs, epoch by epoch: the mean of what they have, and between what it lies. A record may lack any epoch, so
// that places in two records do not belong together.
function resultSeries(data, metric, kind) {
  return data.settings.map((name, setting) => {
    const epochs = new Map();
    for (const run of data.runs.filter((run) => run.setting === setting)) {
      const places = abscissa(run, kind);
      run.epochs.epoch.forEach((epoch, at) => {
        const value = run.epochs[metric][at];
        if (!isNumber(value)) return;
        if (!epochs.has(epoch)) epochs.set(epoch, {values: [], places: []});
        epochs.get(epoch).values.push(value);
        epochs.get(epoch).places.push(places[at]);
      });
    }
    const points = [...epochs].sort(([a], [b]) => a - b).map(([epoch, {values, places}]) => (
      {epoch, x: sum(places) / places.length, mean: sum(values) / values.length, low: Math.min(...values), high: Math.max(...values),
       runs: values.length}));
    return {name, setting, points};
  });
}

// The share of layers that were critical at each point of a run.
function criticalShares(run, layers) {
  return run.points.at.map((_, at) => {
    let critical = 0, known = 0;
    for (const layer of layers) {
      const state = run.states[layer.state[at]];
      if (!state || state.critical === null) continue;
      ++known;
      critical += state.critical ? 1 : 0;
    }
    return known ? critical / known : 0;
  });
}

// Neighbours with the same share become one stretch: [first, last, share].
function stretches(shares) {
  const found = [];
  shares.forEach((share, at) => {
    const rounded = Math.ceil(10 * share) / 10;
    const last = found[found.length - 1];
    if (last && last[2] === rounded && last[1] === at - 1) last[1] = at;
    else if (rounded > 0) found.push([at, at, rounded]);
  });
  return found;
}

// What became of a layer, as one of the kinds that the map has a colour for.
function kindOf(state) {
  if (!state) return null;
  if (state.level < 0) return {key: "dense", name: "dense, by the guard"};
  if (state.codec === "none") return {key: "plain", name: "not compressed"};
  return {key: "level" + state.level, level: state.level, name: state.codec};
}

// The kinds that occur, mildest first.
function kindsOf(run) {
  const kinds = new Map();
  for (const state of run.states) {
    const kind = kindOf(state);
    if (!kinds.has(kind.key)) kinds.set(kind.key, kind);
  }
  const place = (kind) => (kind.level === undefined ? (kind.key === "dense" ? -1 : 1e6) : kind.level);
  return [...kinds.values()].sort((a, b) => place(a) - place(b));
}

const denseBytes = (run, layer) => 4 * layer.elements * sum(run.epochs.steps);

function splitOf(run) {
  const split = run.epochs.split;
  return run.epochs.epoch.map((epoch, at) => {
    if (!isNumber(split.compute_ms[at])) return null;
    const steps = run.epochs.steps[at];
    const waited = steps > 0 ? (1000 * (run.epochs.input_wait_seconds[at] || 0)) / steps : 0;
    const input = Math.min(waited, split.compute_ms[at]);
    return {epoch, input, compute: split.compute_ms[at] - input, encode: split.encode_ms[at], wire: split.wire_ms[at],
            decode: split.decode_ms[at], busyWire: split.busy_wire_ms[at]};
  });
}

// In how many epochs a number is not there that should be: [metric, epochs]. `train` writes all that it measures; what a script
// says of itself it may say now and then, but not never.
function gapsOf(run) {
  const epochs = run.epochs, known = (metric) => epochs[metric].some(isNumber), tested = known("test_accuracy") || known("test_perplexity");
  const expected = run.config.tensors ? known
    : (metric) => ({train_loss: true, test_loss: tested || known("test_loss"),
                    test_perplexity: known("test_perplexity") || (known("test_loss") && !tested)}[metric] ?? known(metric));
  return Object.keys(METRICS).filter(expected).map((metric) => [metric, epochs[metric].filter((value) => !isNumber(value)).length]).filter(([, count]) => count);
}

const runName = (data, run) => data.settings[run.setting] + ", seed " + run.seed;
