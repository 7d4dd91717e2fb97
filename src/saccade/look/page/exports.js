// What can be taken away: the page in one file, the head as picture or drawing, its numbers, a link. B is always stamped.
import { weightColour, weightPixels } from "./colour.js";
import { describeChange, planeName } from "./doing.js";
import { HALF } from "./numbers.js";
import { axisLength, clipped, groupName, labelOf } from "./record.js";
import { sharedPage, wantPlane } from "./server.js";
import { linkParameters } from "./links.js";
import { chosenOf, set, shownRun, state } from "./state.js";

const CELL = 40;
const LARGEST_DRAWING = 40_000;

function save(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  set({ dialog: "", note: `${name} was saved${name.endsWith(".html") ? ": it opens in any browser, without a network" : ""}.` });
}

function caption(run, look, plane) {
  const changed = run.run.changes.map((change) => describeChange(change, state.runs.A)).join(", ");
  const stamp = changed ? `CHANGED (${changed}): ` : "";
  return `${stamp}${run.run.model}: ${groupName(run.looks[look])}, ${planeName(run.looks[look], plane)}`;
}

function current() {
  const run = shownRun();
  const { look, plane } = chosenOf(state.showing);
  const weights = look >= 0 ? wantPlane(run, look, plane) : null;
  if (!weights) set({ note: "This head is not here yet", dialog: "" });
  return { run, look, plane, weights };
}

export function exportJson() {
  const { run, look, plane, weights } = current();
  if (!weights) return;
  const label = (axis) => Array.from({ length: axisLength(axis) }, (_, i) => labelOf(axis, i));
  const rows = Array.from({ length: weights.rows }, (_, r) =>
    Array.from(weights.bits.subarray(r * weights.columns, (r + 1) * weights.columns), (bits) => Number(HALF[bits].toPrecision(4))),
  );
  const content = { changed: run.run.changes.length > 0, run: run.run, title: caption(run, look, plane), rows: label(run.rows(look)), columns: label(run.columns(look)), weights: rows, steps: run.steps };
  save("saccade.json", JSON.stringify(content, null, 1), "application/json");
}

export function exportPicture(kind) {
  const { run, look, plane, weights } = current();
  if (!weights) return;
  if (kind === "svg") return exportDrawing(run, look, plane, weights);
  const cell = Math.max(1, Math.min(CELL, Math.floor(1600 / Math.max(weights.rows, weights.columns))));
  const left = 150;
  const above = 110;
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(left + cell * weights.columns + 90, 560);
  canvas.height = above + cell * weights.rows + 40;
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  const table = weightPixels("light");
  const pixels = new Uint32Array(weights.bits.length);
  for (let i = 0; i < pixels.length; i++) pixels[i] = table[weights.bits[i]];
  const small = new OffscreenCanvas(weights.columns, weights.rows);
  small.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), weights.columns, weights.rows), 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, left, above, cell * weights.columns, cell * weights.rows);
  context.strokeStyle = "#d0d7de";
  context.strokeRect(left, above, cell * weights.columns, cell * weights.rows);
  context.fillStyle = "#1b1f24";
  context.textBaseline = "middle";
  context.font = "14px system-ui, sans-serif";
  for (let r = 0; r < weights.rows && cell >= 12; r++) {
    context.textAlign = "right";
    context.fillText(clipped(labelOf(run.rows(look), r), 20), left - 8, above + (r + 0.5) * cell);
  }
  for (let c = 0; c < weights.columns && cell >= 12; c++) {
    context.save();
    context.translate(left + (c + 0.5) * cell, above - 8);
    context.rotate(-Math.PI / 4);
    context.textAlign = "left";
    context.fillText(clipped(labelOf(run.columns(look), c), 16), 0, 0);
    context.restore();
  }
  context.textAlign = "left";
  context.fillStyle = run.run.changes.length ? "#9a3412" : "#59636e";
  context.fillText(caption(run, look, plane), 8, canvas.height - 16, canvas.width - 16);
  canvas.toBlob((blob) => save("saccade.png", blob, "image/png"));
}

// Made of nodes, not of text: a label cannot become markup.
function exportDrawing(run, look, plane, weights) {
  if (weights.bits.length > LARGEST_DRAWING) return set({ note: "A drawing of so many fields would be too large: take the picture", dialog: "" });
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.implementation.createDocument(space, "svg", null);
  const root = drawing.documentElement;
  const add = (name, attributes, text) => {
    const node = drawing.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
    if (text !== undefined) node.textContent = text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
    root.append(node);
  };
  const [left, above] = [150, 110];
  const width = Math.max(left + CELL * weights.columns + 90, 560);
  root.setAttribute("width", String(width));
  root.setAttribute("height", String(above + CELL * weights.rows + 40));
  root.setAttribute("font-family", "system-ui, sans-serif");
  root.setAttribute("font-size", "14");
  for (let r = 0; r < weights.rows; r++) {
    for (let c = 0; c < weights.columns; c++) {
      add("rect", { x: left + c * CELL, y: above + r * CELL, width: CELL, height: CELL, fill: weightColour(HALF[weights.bits[r * weights.columns + c]], "light"), stroke: "#d0d7de", "stroke-width": 0.5 });
    }
    add("text", { x: left - 8, y: above + (r + 0.5) * CELL + 5, "text-anchor": "end" }, clipped(labelOf(run.rows(look), r), 20));
  }
  for (let c = 0; c < weights.columns; c++) {
    const x = left + (c + 0.5) * CELL;
    add("text", { x, y: above - 8, transform: `rotate(-45 ${x} ${above - 8})` }, clipped(labelOf(run.columns(look), c), 16));
  }
  add("text", { x: 8, y: above + CELL * weights.rows + 26, fill: run.run.changes.length ? "#9a3412" : "#59636e" }, caption(run, look, plane));
  save("saccade.svg", new XMLSerializer().serializeToString(drawing), "image/svg+xml");
}

export async function shareFile() {
  try {
    const { page, left_out: leftOut } = await sharedPage(Object.values(state.runs));
    save("saccade.html", page, "text/html");
    if (leftOut) set({ note: `Not all is in the file: ${leftOut}` });
  } catch (error) {
    set({ error: error.message, dialog: "" });
  }
}

export async function copyLink() {
  const link = `#${linkParameters()}`;
  try {
    await navigator.clipboard.writeText(location.origin + location.pathname + link);
    set({ note: "The link was copied. It opens in this browser as long as `saccade view` runs.", dialog: "" });
  } catch {
    set({ note: `The link is the address of this page: it holds input, model and changes.`, dialog: "" });
  }
}
