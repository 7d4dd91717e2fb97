// Views of several runs are linked by what is pointed at: by number where the pieces agree, else by where they stand in
// the same text. Where the texts differ nothing is linked.
import { axisLength } from "./record.js";
import { chosenOf, hover, state } from "./state.js";

const known = new WeakMap();

// Where each piece begins, counted in letters without spaces, and the whole text.
function spansOf(axis) {
  if (!axis.pieces) return null;
  if (!known.has(axis)) {
    const starts = [];
    let text = "";
    for (const piece of axis.pieces) {
      starts.push(text.length);
      text += piece.mark ? "" : piece.text.replace(/\s+/g, "");
    }
    known.set(axis, { starts, text });
  }
  return known.get(axis);
}

function mapped(place, from, to) {
  if (place === null || place === undefined || from === to) return place ?? null;
  const [one, other] = [spansOf(from), spansOf(to)];
  if (!one || !other) return axisLength(from) === axisLength(to) ? place : null;
  if (one.text !== other.text) return null;
  if (from.pieces[place]?.mark) {
    const found = to.pieces.findIndex((piece) => piece.mark && piece.text === from.pieces[place].text);
    return found < 0 ? null : found;
  }
  const start = one.starts[place];
  let found = null;
  other.starts.forEach((begin, i) => {
    if (begin <= start && !to.pieces[i].mark) found = i;
  });
  return found;
}

// What is looked at now in the view of a run: what the pointer is over, else what was pinned.
export function focus(letter) {
  const at = hover.row !== null || hover.column !== null ? hover : state.pin;
  if (!at) return { row: null, column: null };
  const home = at.letter ?? state.showing;
  if (home === letter) return { row: at.row ?? null, column: at.column ?? null };
  const [run, mine] = [state.runs[home], state.runs[letter]];
  const [look, other] = [chosenOf(home).look, chosenOf(letter).look];
  if (!run || !mine || look < 0 || other < 0) return { row: null, column: null };
  return {
    row: mapped(at.row, run.rows(look), mine.rows(other)),
    column: mapped(at.column, run.columns(look), mine.columns(other)),
  };
}

// Whether two runs that stand side by side are linked by text, and not by number.
export function linkedByText(one, other) {
  const [a, b] = [spansOf(one), spansOf(other)];
  return Boolean(a && b && a.text === b.text && one.pieces.length !== other.pieces.length);
}
