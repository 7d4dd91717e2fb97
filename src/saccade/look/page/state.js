// What the page shows: one table, changed by `set`; whoever draws is told once per frame.

// No head is chosen yet.
export function nothingChosen() {
  return { A: { look: -1, plane: -1 }, M: { look: -1, plane: -1 } };
}

export const state = {
  live: false,
  models: [],
  model: "",
  other: "",
  text: "",
  file: null, // {name, bytes, url}
  beam: "",
  seed: 0,
  runs: {}, // by letter: A as it is, B changed, C gone on from a candidate, M the other model
  showing: "A",
  beside: "", // a second run that is shown beside the first
  chosen: nothingChosen(),
  part: 0,
  pin: null, // {row, column, side: "row" | "column"}
  step: 0,
  view: "both",
  panel: "step",
  changes: [],
  undone: [],
  sort: "place",
  stretched: false,
  words: false,
  busy: null, // {id, letter, text}
  sweep: null, // {run, total, rows, pieces, done}
  inside: null,
  error: "",
  said: "", // for screen readers
  note: "",
  theme: "",
  dialog: "", // share or keys
  full: "", // the run whose card fills the screen
  tour: -1,
};

const listeners = new Set();
let waiting = false;

export function set(patch) {
  Object.assign(state, patch);
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    for (const listener of listeners) listener(state);
  });
}

export function onChange(listener) {
  listeners.add(listener);
}

// What the pointer is over, apart from all else: it changes with every frame, and only canvases hear of it.
export const hover = { row: null, column: null, letter: "A" };
const hoverers = new Set();
let hovering = false;

export function setHover(row, column, letter) {
  if (hover.row === row && hover.column === column && hover.letter === letter) return;
  hover.row = row;
  hover.column = column;
  hover.letter = letter;
  if (hovering) return;
  hovering = true;
  requestAnimationFrame(() => {
    hovering = false;
    for (const listener of hoverers) listener(hover);
  });
}

export function onHover(listener) {
  hoverers.add(listener);
  return () => hoverers.delete(listener);
}

export function slot(letter) {
  return letter === "M" ? "M" : "A";
}

export function chosenOf(letter) {
  return state.chosen[slot(letter)];
}

export function shownRun() {
  return state.runs[state.showing] ?? state.runs.A;
}
