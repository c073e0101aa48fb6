"use strict";
// Words for numbers, and elements for words. Text from a record only ever becomes a text node: none of it is markup.

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function digits(value, count = 3) {
  if (!isNumber(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(count - 1);
  const places = Math.max(0, count - 1 - Math.floor(Math.log10(size)));
  return value.toFixed(Math.min(places, 8)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

function bytes(value) {
  if (!isNumber(value)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  for (; Math.abs(value) >= 1000 && at + 1 < units.length; ++at) value /= 1000;
  return (at === 0 ? String(Math.round(value)) : value.toFixed(value < 10 ? 2 : 1)) + " " + units[at];
}

function seconds(value) {
  if (!isNumber(value)) return "–";
  if (value < 120) return digits(value, 3) + " s";
  return value < 7200 ? (value / 60).toFixed(1) + " min" : (value / 3600).toFixed(1) + " h";
}

const percent = (value, places = 0) => (isNumber(value) ? (100 * value).toFixed(places) + " %" : "–");
const plural = (count, word) => count + " " + word + (count === 1 ? "" : "s");
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const sum = (values) => values.reduce((total, value) => total + (isNumber(value) ? value : 0), 0);

// A spreadsheet takes text that begins like this for a formula.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? "'" + value : String(value);
  return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

const csvText = (table) => [table.columns, ...table.rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n";

function download(name, text) {
  const link = element("a", {href: URL.createObjectURL(new Blob([text], {type: "text/csv"})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
