// The same numbers as a real table, for readers and for copying; long texts show the rows around the pinned one.
import { html } from "./view.js";
import { inkOn, weightColour } from "./colour.js";
import { pinAt } from "./doing.js";
import { HALF } from "./numbers.js";
import { axisLength, clipped, labelOf } from "./record.js";
import { scaleTop } from "./legend.js";

const MOST_FIELDS = 40;

function around(pinned, count) {
  if (count <= MOST_FIELDS) return [0, count];
  const first = Math.min(Math.max(0, (pinned ?? 0) - MOST_FIELDS / 2), count - MOST_FIELDS);
  return [first, first + MOST_FIELDS];
}

export function TableView({ run, look, weights, pin, letter }) {
  const rows = run.rows(look);
  const columns = run.columns(look);
  const [fromRow, toRow] = around(pin?.row, axisLength(rows));
  const [fromColumn, toColumn] = around(pin?.column, axisLength(columns));
  const top = scaleTop(weights);
  const places = Array.from({ length: toColumn - fromColumn }, (_, i) => fromColumn + i);
  const part = (from, to, count) => (to - from < count ? ` ${from + 1} to ${to} of ${count}` : ` ${count}`);
  return html`<div class="tablebox" tabindex="0" role="region" aria-label="Table of weights"><table>
    <caption>Per cent; rows${part(fromRow, toRow, axisLength(rows))}, columns${part(fromColumn, toColumn, axisLength(columns))}</caption>
    <thead><tr><td></td>${places.map((c) => html`<th scope="col"><bdi>${clipped(labelOf(columns, c), 20)}</bdi></th>`)}</tr></thead>
    <tbody>${Array.from({ length: toRow - fromRow }, (_, i) => fromRow + i).map((r) => html`<tr>
      <th scope="row"><button class="quiet" onClick=${() => pinAt(r, null, "row", letter)}><bdi>${clipped(labelOf(rows, r), 24)}</bdi></button></th>
      ${places.map((c) => {
        const weight = HALF[weights.bits[r * weights.columns + c]];
        return html`<td style=${{ background: weightColour(weight, undefined, top), color: inkOn(weight, undefined, top) }}>${(100 * weight).toFixed(1)}</td>`;
      })}</tr>`)}</tbody></table></div>`;
}
