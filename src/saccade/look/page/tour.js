// Five steps for a first visitor: each points at a part of the page, and may be skipped.
import { html } from "./view.js";
import { set, state } from "./state.js";

const STOPS = [
  [".ask", "Type", "Type a sentence and press Enter. The output is written step by step; other models stand in the list at the top."],
  [".strips", "Hover a word", "Point at a word of the output: the words it looked at light up, in the text and in the matrix below. Click to pin it."],
  [".grid", "Pick a head", "Each small picture is one head of one layer; the last of a row is the mean. Click one to see it large."],
  [".headtools:last-of-type, .heads", "Switch it off", "Switch off the head, or pin an input word and hide it. The new output stands below the old one, with what it does to the probability."],
  [".doors", "Share", "Share writes this page with all its looks into one file that opens anywhere, without a network."],
];

export function Tour() {
  const { tour } = state;
  if (tour < 0 || tour >= STOPS.length) {
    for (const one of document.querySelectorAll(".toured")) one.classList.remove("toured");
    return null;
  }
  const [where, title, text] = STOPS[tour];
  const target = document.querySelector(where);
  for (const one of document.querySelectorAll(".toured")) if (one !== target) one.classList.remove("toured");
  if (target && !target.classList.contains("toured")) {
    target.classList.add("toured");
    target.scrollIntoView({ block: "nearest" });
  }
  return html`<div class="tour" role="dialog" aria-labelledby="tour">
    <h2 id="tour">${tour + 1} of ${STOPS.length} · ${title}</h2><p>${text}</p>
    <div class="headtools"><button class="quiet" onClick=${() => set({ tour: -1 })}>Skip</button>
      ${tour > 0 && html`<button onClick=${() => set({ tour: tour - 1 })}>Back</button>`}
      <button class="main" onClick=${() => set({ tour: tour + 1 < STOPS.length ? tour + 1 : -1 })}>${tour + 1 < STOPS.length ? "Next" : "Done"}</button></div>
  </div>`;
}
