// Puts the page together, keeps it in step with theme and size, and, where it is served, with the run.

let data = JSON.parse(document.getElementById("data").textContent);
const chosen = {run: 0};
const sections = new Map();  // What is made anew when the data is: a function for each.

function optionOf(run, name) {
  return run?.config?.options?.[name];
}

function describe() {
  const first = data.runs[0], model = optionOf(first, "model"), set = optionOf(first, "data");
  const title = model && set ? `${model} on ${set}` : "Accordion report";
  document.title = title + " · Accordion";
  document.getElementById("title").textContent = title;
  const workers = first?.config?.workers, epochs = Math.max(0, ...data.runs.map((run) => run.epochs.epoch.length));
  document.getElementById("subtitle").textContent = [
    plural(data.settings.length, "setting"), plural(data.runs.length, "run"), workers ? plural(workers, "worker") : "", plural(epochs, "epoch")].filter(Boolean).join(" · ");
  document.getElementById("footer").textContent = `Made by accordion ${data.version}. Charts: Apache ECharts. Everything on this page is in this file.`;
}

// What a reader should know before looking at charts.
function notes() {
  const told = [...data.problems];
  for (const run of data.runs) {
    const name = runName(data, run);
    if (run.status !== "finished")
      told.push(`${name}: ${run.status}${run.summary?.reason ? ` (${run.summary.reason})` : ""}; its charts show what was recorded.`);
    for (const problem of run.problems) told.push(`${name}: ${problem}. What it held is missing here.`);
    for (const [metric, count] of gapsOf(run))
      told.push(`${name}: ${METRICS[metric].name.toLowerCase()} is ${run.config.tensors ? "not told" : "not a finite number"} in ${plural(count, "epoch")}; the charts leave them out.`);
    const dropped = sum(run.epochs.dropped_steps);
    if (dropped) told.push(`${name}: ${plural(dropped, "step")} with gradients that are not finite, not used.`);
  }
  if (!data.runs.length) told.push("There is no run to show yet.");
  const shown = told.slice(0, 8);
  if (told.length > shown.length) shown.push(`… and ${told.length - shown.length} more notes of this kind.`);
  return shown.map((text) => element("p", {class: "note"}, text));
}

function summary() {
  const parts = [];
  if (data.comparison && data.settings.length > 1) parts.push(comparisonSentence(data));
  if (data.comparison) parts.push(...comparisonTable(data));
  else if (data.runs.length) parts.push(element("p", {class: "lead"}, "No run has finished with a test result, so there is no table of results yet."));
  return [...notes(), ...parts];
}

const zoomHelp = () => [element("p", {class: "lead", id: "zoom-help"}, "Charts zoom with Ctrl and the wheel, or with two fingers; with a chart in focus + and − zoom, the arrows move, 0 shows all.")];

function runPicker() {
  const picker = element("select", {id: "run", onchange: (event) => { chosen.run = Number(event.target.value); redrawRun(); }},
    data.runs.map((run, at) => element("option", {value: at}, runName(data, run))));
  picker.value = String(chosen.run);
  return element("div", {class: "runs"}, element("label", {for: "run"}, "Run: "), picker);
}

// A run whose levels change has more to show than one whose levels do not.
function mostTelling() {
  const kinds = data.runs.map((run) => new Set(run.states.map((state) => state.level)).size + (run.guard.length ? 1 : 0));
  return Math.max(0, kinds.indexOf(Math.max(...kinds)));
}

function list(entries) {
  return element("dl", {}, entries.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

const plainText = (value) => (typeof value === "string" ? value : JSON.stringify(value) ?? "");

function commandBox(id, command) {
  const box = element("pre", {id}, command);
  const copied = (event) => navigator.clipboard?.writeText(command).then(() => { event.target.textContent = "Copied"; }, () => getSelection().selectAllChildren(box));
  return [box, element("button", {type: "button", class: "copy", "data-choice": "copy-" + id, onclick: copied}, "Copy the command")];
}

function comparisonCommands() {
  return data.comparisons.filter((made) => made.command).flatMap((made, at) => [
    element("h3", {}, "Comparison " + made.folder), element("p", {class: "lead"}, `All of its runs again, by the recipe ${made.recipe}; what is finished in its folder is kept:`),
    ...commandBox("comparison-command-" + at, made.command)]);
}

function configuration() {
  const run = data.runs[chosen.run];
  if (!run) return comparisonCommands();
  const {machine, options, workers, threads, started, version, torch} = run.config;
  const facts = [["Folder", run.folder], ["Status", run.status], ["Started", started], ["Version", version && torch ? `accordion ${version}, torch ${torch}` : version],
                 ["Machine", machine ? `${machine.cpu}, ${plural(machine.cores, "core")}` : ""], ["Workers", workers && `${workers}, ${plural(threads, "thread")} each`]];
  const settings = Object.entries(options && typeof options === "object" ? options : {});
  return [
    ...comparisonCommands(),
    element("h3", {}, runName(data, run)),
    list(facts.filter(([, value]) => value).map(([name, value]) => [name, plainText(value)])),
    run.command ? [element("p", {class: "lead"}, "This run again:"), commandBox("command", run.command)].flat()
                : element("p", {class: "lead"}, "The command that started this run is not known."),
    element("details", {}, element("summary", {}, `All ${settings.length} options`), list(settings.map(([name, value]) => [name, plainText(value)]))),
  ].flat();
}

function section(id, title, fill) {
  const box = element("section", {id, "aria-label": title}, title ? element("h2", {}, title) : "");
  let inside = element("div");
  box.append(inside);
  document.getElementById("main").append(box);
  // What would say the same stays: a list that the reader has open is not closed by an epoch that changes nothing in it.
  sections.set(id, () => {
    const next = element("div", {}, fill()), focused = focusIn(inside);
    const open = inside.querySelector("details")?.open;
    if (open) next.querySelector("details")?.setAttribute("open", "");
    if (next.isEqualNode(inside)) return;
    inside.replaceWith(next);
    inside = next;
    focusOn(inside, focused);
  });
  sections.get(id)();
}

const NO_RUN = {title: "", missing: "There is no run to show."};
const ofRun = (view) => (redraw) => (data.runs[chosen.run] ? view(data.runs[chosen.run], redraw) : NO_RUN);

function build() {
  chosen.run = mostTelling();
  describe();
  section("summary", "", summary);
  section("results", "Results", zoomHelp);
  const results = document.getElementById("results");
  addFigure(results, "results", (redraw) => resultView(data, redraw));
  section("inside", "Inside one run", () => [runPicker()]);
  const inside = document.getElementById("inside");
  for (const [id, view] of Object.entries({levels: mapView, norms: normView, schedule: scheduleView, bytes: bytesView, split: splitView, guard: guardView}))
    addFigure(inside, id, ofRun(view));
  section("configuration", "Configuration, machine, commands", configuration);
}

function redrawRun() {
  for (const [id, figure] of figures) if (id !== "results") figure.draw();
  sections.get("configuration")();
}

function redraw() {
  chosen.run = Math.min(chosen.run, Math.max(0, data.runs.length - 1));
  describe();
  for (const fill of sections.values()) fill();
  for (const figure of figures.values()) figure.draw();
}

// Theme: the system's, unless the reader says otherwise.
const THEMES = ["system", "light", "dark"];
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let theme = "system";

function applyTheme(printing = false) {
  const dark = !printing && (theme === "dark" || (theme === "system" && prefersDark.matches));
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("theme").textContent = "Theme: " + theme;
}

function setTheme(name) {
  theme = name;
  try { localStorage.setItem("accordion-theme", name); } catch { /* Pages from disk may have no storage. */ }
  applyTheme();
  redraw();
}

function start() {
  try { theme = THEMES.find((name) => name === localStorage.getItem("accordion-theme")) ?? "system"; } catch { /* The same. */ }
  applyTheme();
  build();
  document.getElementById("theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]));
  prefersDark.addEventListener("change", () => { applyTheme(); redraw(); });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; eachChart((chart) => chart.resize()); } });
  // Paper is light, and narrower than most screens.
  addEventListener("beforeprint", () => { applyTheme(true); redraw(); eachChart((chart) => chart.resize({width: Math.min(700, innerWidth)})); });
  addEventListener("afterprint", () => { applyTheme(); redraw(); });
  if (document.body.dataset.kind === "live") follow();
}

// Asks the server for what has been added, as long as the run goes on.
function follow() {
  const sign = element("p", {class: "live", role: "status"}, "Live");
  document.getElementById("subtitle").after(sign);
  let known = "";
  const ask = async () => {
    try {
      const answer = await fetch("/data.json", {headers: known ? {"If-None-Match": known} : {}, cache: "no-store"});
      if (answer.status === 200) {
        known = answer.headers.get("ETag") ?? "";
        const shown = data.runs[chosen.run]?.folder;
        data = await answer.json();
        chosen.run = shown ? Math.max(0, data.runs.findIndex((run) => run.folder === shown)) : mostTelling();
        redraw();
      }
      sign.className = "live";
      sign.textContent = data.over ? "The run has ended." : "Live: grows with every epoch that is recorded.";
      if (!data.over) setTimeout(ask, 2000);
    } catch {
      sign.className = "live lost";
      sign.textContent = "The server does not answer; this is what it last said.";
      setTimeout(ask, 4000);
    }
  };
  ask();
}

start();
// For tests, and for the curious in a console.
window.accordion = {data: () => data, charts: () => Object.fromEntries([...figures].map(([id, figure]) => [id, figure.chart])),
                    tables: () => Object.fromEntries([...figures].map(([id, figure]) => [id, figure.table])), csv: (id) => csvText(figures.get(id).table)};
