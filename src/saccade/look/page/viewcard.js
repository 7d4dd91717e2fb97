// One run's looks: the two texts (or the picture, or the sound) with tints, then one head as matrix, lines or table.
import { html } from "./view.js";
import { Matrix } from "./matrix.js";
import { Lines } from "./lines.js";
import { Picture } from "./picture.js";
import { Sound } from "./sound.js";
import { Strip } from "./strip.js";
import { TableView } from "./tableview.js";
import { hidePinned, hideWord, hideablePlace, isChanged, pinAt, planeName, wordPlaces } from "./doing.js";
import { Legend, Readout } from "./legend.js";
import { linkedByText } from "./linked.js";
import { axisLength, groupName, labelOf } from "./record.js";
import { wantPlane } from "./server.js";
import { chosenOf, set, state } from "./state.js";

const VIEWS = { both: "Matrix + lines", matrix: "Matrix", lines: "Lines", table: "Table" };
const MOST_LINES = 2_200;
const MOST_BESIDE = 20;

export function ViewCard({ run, letter }) {
  const { look, plane } = chosenOf(letter);
  const one = run.looks[look];
  if (!one) return html`<section class="card"><p class="faint">No attention, no looks: ${run.run.notes.join(" ")}</p></section>`;
  const rows = run.rows(look);
  const columns = run.columns(look);
  const weights = wantPlane(run, look, plane);
  const small = weights && columns.kind !== "grid" && columns.kind !== "time" && !(state.beside && state.runs[state.beside]) && Math.max(weights.rows, weights.columns) <= MOST_BESIDE;
  const view = state.view === "both" && !small ? "matrix" : VIEWS[state.view] ? state.view : "matrix";
  const shared = { run, letter, look, plane, weights, theme: state.theme, full: state.full, pin: state.pin, stretched: state.stretched };
  const mate = state.beside && letter === state.beside ? state.runs[state.showing] : null;
  const byText = mate && chosenOf(state.showing).look >= 0 && linkedByText(columns, mate.columns(chosenOf(state.showing).look));
  const self = one.rows === one.columns;
  const full = state.full === letter;
  const stale = state.busy?.letter === letter || state.busy?.letter === "A";
  return html`<section class=${`card ${letter === "B" ? "isB" : ""} ${full ? "full" : ""} ${stale ? "stale" : ""}`} aria-label=${`Looks of ${letter}`}>
    <div class="cardhead">
      <span class="letter small" aria-hidden="true">${letter}</span>
      <h2>${groupName(one)} <span class="faint">${planeName(one, plane)}</span></h2>
      ${letter === "B" && html`<span class="stamp">CHANGED</span>`}
      ${stale && html`<span class="faint">previous input</span>`}
      <div class="tabs" role="group" aria-label="View">
        ${Object.entries(VIEWS).map(([key, name]) => html`<button aria-pressed=${view === key} disabled=${key === "both" && !small} onClick=${() => set({ view: key })}>${name}</button>`)}
        <button aria-pressed=${full} aria-label=${full ? "Leave full screen" : "Full screen"} title=${full ? "Leave full screen (Esc)" : "Full screen"} onClick=${() => set({ full: full ? "" : letter })}>⤢</button>
      </div>
    </div>
    <div class="strips">
      ${columns.kind === "grid"
        ? html`<${Picture} ...${shared} axis=${columns} />`
        : columns.kind === "time"
          ? html`<${Sound} ...${shared} axis=${columns} />`
          : html`<${Strip} ...${shared} axis=${columns} side="column" name=${self ? "is looked at" : one.kind === "decoder" ? "its past" : "input"} />`}
      ${rows.kind !== "grid" && rows.kind !== "time" && html`<${Strip} ...${shared} axis=${rows} side="row" name=${self ? "looks" : "output"} />`}
    </div>
    ${byText && html`<p class="faint small">The two models cut the text differently: pieces are linked by where they stand in it.</p>`}
    <${Pinned} run=${run} letter=${letter} look=${look} />
    ${!weights
      ? html`<p class="faint waitplane">${state.live ? "…" : "This head is not in the file: only its small picture is. It needs the model: saccade view"}</p>`
      : view === "both"
        ? html`<div class="both"><${Matrix} ...${shared} /><${Lines} ...${shared} /></div>`
        : view === "matrix"
        ? html`<${Matrix} ...${shared} />`
        : view === "lines"
          ? axisLength(rows) + axisLength(columns) > 2 * MOST_LINES
            ? html`<p class="faint">Too many for lines: the matrix shows them.</p>`
            : html`<${Lines} ...${shared} />`
          : html`<${TableView} ...${shared} />`}
    <${Legend} weights=${weights} sure=${run.steps.length > 0 && one.kind !== "encoder"} />
    <${Readout} ...${shared} />
  </section>`;
}

// What can be done with the word that is pinned.
function Pinned({ run, letter, look }) {
  const { pin, live } = state;
  if (!pin || letter !== state.showing) return null;
  const side = pin.side ?? "row";
  const axis = side === "row" ? run.rows(look) : run.columns(look);
  const place = side === "row" ? pin.row : pin.column;
  if (place === null || place === undefined || place >= axisLength(axis)) return null;
  const found = hideablePlace();
  const hidden = found && isChanged({ kind: "hide", memory: found.memory, place: found.place });
  return html`<div class="pinned" role="group" aria-label="The pinned word">
    <span>Pinned: <b><bdi>${labelOf(axis, place)}</bdi></b></span>
    ${found && html`<button disabled=${!live} title=${live ? "H" : "needs the model: saccade view"} onClick=${hidePinned}>${hidden ? "Show it again" : "Hide it from the model"}</button>`}
    ${found && !hidden && wordPlaces(found).length > 1 && html`<button disabled=${!live} onClick=${hideWord}>Hide the whole word</button>`}
    ${side === "row" && run.stepOfRow(look, place) !== null && html`<button onClick=${() => set({ panel: "step" })}>What else could stand here</button>`}
    ${side === "row" && html`<button onClick=${() => set({ panel: "inspect" })}>Its numbers</button>`}
    <button class="quiet" onClick=${() => pinAt(null, null)}>Unpin</button>
  </div>`;
}
