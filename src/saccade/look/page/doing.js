// What a visitor does: run, change, undo, go on from a candidate, compare, pin.
import { axisLength, labelOf, shortName, shownText } from "./record.js";
import { HALF, percent } from "./numbers.js";
import { newId, runModel, stopRun, sweepHeads, wantPlane } from "./server.js";
import { chosenOf, set, shownRun, slot, state } from "./state.js";
import { base64OfBytes } from "./wire.js";
import { keepLink } from "./links.js";

let control = null;

function question(letter, more = {}) {
  const model = state.models.find((one) => one.name === state.model);
  const takesFile = model && !["text", "pair"].includes(model.takes);
  return {
    id: newId(letter),
    model: state.model,
    text: state.text,
    ...(takesFile && state.file ? { file: base64OfBytes(state.file.bytes) } : {}),
    ...(state.beam ? { beam: Number(state.beam) } : {}),
    ...(state.seed ? { seed: state.seed } : {}),
    ...more,
  };
}

async function perform(letter, values) {
  if (state.busy) {
    stopRun(state.busy.id);
    control?.abort();
  }
  const mine = new AbortController();
  control = mine;
  set({ busy: { id: values.id, letter, text: "", step: 0 }, error: "" });
  try {
    const run = await runModel(
      values,
      (step) => {
        if (control === mine) set({ busy: { id: values.id, letter, text: step.text, step: step.step } });
      },
      mine.signal,
    );
    return control === mine ? run : null; // a late reply is of another input
  } catch (error) {
    if (control === mine && error.name !== "AbortError") set({ error: error.message });
    return null;
  } finally {
    if (control === mine) {
      control = null;
      set({ busy: null });
    }
  }
}

export function cancel() {
  if (!state.busy) return false;
  stopRun(state.busy.id);
  control?.abort();
  control = null;
  set({ busy: null, said: "stopped" });
  return true;
}

// The input through the model; what was changed before is taken back.
export async function run(keepChanges = false) {
  if (!state.live) return;
  const run = await perform("A", question("A"));
  if (!run) return;
  const changes = keepChanges ? state.changes : [];
  set({
    runs: { A: run },
    showing: "A",
    beside: "",
    changes,
    undone: [],
    part: 0,
    pin: null,
    step: 0,
    sweep: null,
    inside: null,
    said: `A: ${run.run.text}`,
  });
  choosePlane(run, "A");
  keepLink();
  if (changes.length) await runChanged();
  if (state.other) await runOther();
}

// The layer and head that are shown first: the mean of the layer whose rows look at the most different things.
function choosePlane(run, letter) {
  const known = chosenOf(letter);
  const one = run.looks[known.look];
  const fits = one && known.plane <= one.heads && one.part === state.part;
  if (fits && letter !== "M") {
    if (letter === "A") set({ chosen: { ...state.chosen, A: known } });
    return;
  }
  const first = run.groups(state.part)[0];
  if (!first) return set({ chosen: { ...state.chosen, [slot(letter)]: { look: -1, plane: -1 } } });
  const layers = run.group(first.kind, first.memory, state.part);
  const sharpest = layers.reduce((best, look) =>
    (run.entropy(look, run.looks[look].heads) ?? 1) < (run.entropy(best, run.looks[best].heads) ?? 1) ? look : best,
  );
  set({ chosen: { ...state.chosen, [slot(letter)]: { look: sharpest, plane: run.looks[sharpest].heads } } });
}

export function chooseFirst(run, letter) {
  choosePlane(run, letter);
}

async function runChanged() {
  if (!state.changes.length) {
    const { B, ...others } = state.runs;
    set({ runs: others, showing: "A", beside: state.beside === "B" ? "" : state.beside, said: "no changes: A is shown" });
    keepLink();
    return;
  }
  const before = state.runs.A.run;
  const run = await perform("B", {
    ...question("B"),
    model: before.model,
    text: before.input.text,
    seed: before.seed,
    parent: before.id,
    changes: state.changes,
  });
  if (!run) return;
  const same = run.run.text === before.text;
  const delta = run.record.weighed ? `; log-probability of A’s text ${run.record.weighed.change.toFixed(2)}` : "";
  set({
    runs: { ...state.runs, B: run },
    showing: "B",
    inside: null,
    said: same ? `changed, same words${delta}` : `changed output: ${run.run.text}${delta}`,
  });
  keepLink();
}

function sameChange(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}

export function toggleChange(change) {
  if (!state.live || !state.runs.A) return set({ note: "Changing the model needs the model: saccade view" });
  const there = state.changes.some((one) => sameChange(one, change));
  const changes = there ? state.changes.filter((one) => !sameChange(one, change)) : [...state.changes, change];
  set({ changes, undone: [] });
  runChanged();
}

export function isChanged(change) {
  return state.changes.some((one) => sameChange(one, change));
}

export function undo() {
  if (!state.changes.length) return;
  set({ changes: state.changes.slice(0, -1), undone: [...state.undone, state.changes.at(-1)] });
  runChanged();
}

export function redo() {
  if (!state.undone.length) return;
  set({ changes: [...state.changes, state.undone.at(-1)], undone: state.undone.slice(0, -1) });
  runChanged();
}

export function resetChanges() {
  set({ changes: [], undone: [...state.changes].reverse() });
  runChanged();
}

// The head or layer that is shown is switched off, or on again.
export function switchHead(whole = false) {
  const run = shownRun();
  const { look, plane } = chosenOf(state.showing);
  const one = run?.looks[look];
  if (!one || one.site === "rollout") return set({ note: "Choose a head first: a roll-out has none" });
  if (whole) return toggleChange({ kind: "layer", site: one.site });
  if (plane >= one.heads) return set({ note: "This is the mean of all heads: choose one, or switch off the layer" });
  toggleChange({ kind: "head", site: one.site, head: plane });
}

export function hideablePlace() {
  const run = shownRun();
  const { look } = chosenOf(state.showing);
  const one = run?.looks[look];
  if (!one || !state.pin) return null;
  if (state.pin.side === "column" || one.kind === "encoder") {
    const place = state.pin.side === "column" ? state.pin.column : state.pin.row;
    return place === null ? null : { memory: one.memory, place, axis: run.axes[one.columns] };
  }
  return null;
}

export function hidePinned() {
  const found = hideablePlace();
  if (!found) return set({ note: "Pin a word of the input first: click it, or go to it with the arrow keys" });
  toggleChange({ kind: "hide", memory: found.memory, place: found.place });
}

// The pieces of the word that a piece belongs to.
export function wordPlaces({ axis, place }) {
  const word = axis.pieces?.[place]?.word;
  if (word === undefined) return [place];
  return axis.pieces.flatMap((piece, i) => (piece.word === word ? [i] : []));
}

export function hideWord() {
  const found = hideablePlace();
  if (!found) return;
  const more = wordPlaces(found).map((place) => ({ kind: "hide", memory: found.memory, place }));
  set({ changes: [...state.changes, ...more.filter((one) => !isChanged(one))], undone: [] });
  runChanged();
}

export function describeChange(change, run) {
  if (change.kind === "hide") {
    const look = run?.looks.find((one) => one.memory === change.memory);
    const label = look ? labelOf(run.axes[look.columns], change.place) : String(change.place + 1);
    return `${label} hidden`;
  }
  const one = run?.looks.find((look) => look.site === change.site);
  const where = one ? shortName(one) : change.site;
  return change.kind === "layer" ? `${where} layer ${one?.layer ?? ""} off` : `${where} head ${one?.layer ?? ""}.${change.head + 1} off`;
}

// From a candidate the model goes on as run C.
export async function goOn(prefix) {
  const before = state.runs.A?.run;
  if (!state.live || !before) return set({ note: "Going on from here needs the model: saccade view" });
  const run = await perform("C", {
    ...question("C"),
    model: before.model,
    text: before.input.text,
    parent: before.id,
    prefix,
  });
  if (run) set({ runs: { ...state.runs, C: run }, showing: "C", inside: null, said: `C: ${run.run.text}` });
}

export async function runOther() {
  if (!state.other || !state.runs.A) return;
  const before = state.runs.A.run;
  const run = await perform("M", { ...question("M"), model: state.other, text: before.input.text });
  if (!run) return;
  set({ runs: { ...state.runs, M: run }, beside: "M", said: `${state.other}: ${run.run.text}` });
  choosePlane(run, "M");
}

export async function runSweep() {
  const run = state.runs.A;
  if (!run || !state.live) return;
  const id = newId("sweep");
  set({ sweep: { run: run.run.id, id, rows: [], total: 0, pieces: [], done: false, running: true }, panel: "effect" });
  try {
    for await (const frame of sweepHeads(run, id)) {
      if (state.sweep?.id !== id) return;
      if (frame.total) set({ sweep: { ...state.sweep, total: frame.total, pieces: frame.pieces } });
      if (frame.row) set({ sweep: { ...state.sweep, rows: [...state.sweep.rows, frame.row] } });
      if (frame.done || frame.stopped) set({ sweep: { ...state.sweep, running: false, done: Boolean(frame.done) } });
    }
  } catch (error) {
    set({ error: error.message, sweep: state.sweep && { ...state.sweep, running: false } });
  }
}

export function stopSweep() {
  if (state.sweep) {
    stopRun(state.sweep.id);
    set({ sweep: { ...state.sweep, running: false } });
  }
}

export function pinAt(row, column, side, letter = state.showing) {
  const run = state.runs[letter] ?? shownRun();
  const { look } = chosenOf(letter);
  const step = row !== null && row !== undefined ? run?.stepOfRow(look, row) : null;
  set({
    pin: row === null && column === null ? null : { row, column, side, letter },
    ...(step !== null && step !== undefined ? { step } : {}),
    said: row === null && column === null ? "unpinned" : spokenPlace(run, letter, row, column),
    inside: null,
  });
}

export function choose(look, plane, letter = state.showing) {
  const run = state.runs[letter] ?? shownRun();
  const one = run.looks[look];
  const before = run.looks[chosenOf(letter).look];
  const sameAxes = before && before.rows === one.rows && before.columns === one.columns;
  set({
    chosen: { ...state.chosen, [slot(letter)]: { look, plane } },
    pin: sameAxes ? state.pin : null,
    inside: null,
    said: `${planeName(one, plane)} is shown`,
  });
  keepLink();
}

export function planeName(one, plane) {
  if (one.site === "rollout") return `roll-out, ${one.title}`;
  if (one.heads === 1) return `layer ${one.layer}, its only head`;
  return plane >= one.heads ? `layer ${one.layer}, mean of ${one.heads} heads` : `layer ${one.layer}, head ${plane + 1}`;
}

// "Row gato, 2 of 6: cat 71 %, this 12 %, rest 17 %."
export function spokenPlace(run, letter, row, column) {
  const { look, plane } = chosenOf(letter);
  const found = run && look >= 0 ? wantPlane(run, look, plane) : null;
  if (!found) return "";
  const rows = run.rows(look);
  const columns = run.columns(look);
  if (row !== null && row !== undefined) {
    const weights = Array.from(found.bits.subarray(row * found.columns, (row + 1) * found.columns), (bits) => HALF[bits]);
    if (column !== null && column !== undefined) {
      return `${labelOf(rows, row)} looks at ${labelOf(columns, column)}: ${percent(weights[column])}`;
    }
    const best = weights.map((weight, place) => [weight, place]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    const rest = Math.max(0, weights.reduce((a, b) => a + b, 0) - best.reduce((a, [weight]) => a + weight, 0));
    const said = best.map(([weight, place]) => `${labelOf(columns, place)} ${percent(weight)}`).join(", ");
    return `${labelOf(rows, row)}, ${row + 1} of ${axisLength(rows)}: ${said}, rest ${percent(rest)}`;
  }
  if (column === null || column === undefined) return "";
  const best = Array.from({ length: found.rows }, (_, r) => [HALF[found.bits[r * found.columns + column]], r])
    .sort((a, b) => b[0] - a[0])
    .slice(0, 3);
  const said = best.map(([weight, place]) => `${labelOf(rows, place)} ${percent(weight)}`).join(", ");
  return `${shownText(labelOf(columns, column))}, ${column + 1} of ${axisLength(columns)}, is looked at by ${said}`;
}
